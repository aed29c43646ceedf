//! An activation of x and of -x, concatenated along an axis: formulas over the axes (outer, 2, inner), where x repeats along
//! the middle one and the signs 1, -1 along the others.

use super::ops;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::kernel::range::cuda::range;
use crate::shape::Shape;
use crate::simd::SimdReal;
use crate::tile::Walk;
use crate::tile::formula::{RowsInput, apply_rows};
use crate::with_real;
use smallvec::smallvec;

/// An activation of x and of -x.
pub struct Halves {
    /// Elements before the axis, and from it on.
    pub outer: usize,
    pub inner: usize,
    /// The output, from x and the half's sign.
    pub half: Formula,
    /// The gradient of x, from both halves of y and then of its gradient; `None` if y does not tell it.
    pub whole: Option<Formula>,
}

/// Shape of the signs against (outer, 2, inner).
pub const SIGNS: [usize; 3] = [1, 2, 1];

impl Halves {
    pub fn all(&self, halves: usize) -> Shape {
        Shape::from([self.outer, halves, self.inner])
    }
}

/// Elements of rows that are worth a run of their own.
const ROW: usize = 128;

/// 1 and -1, in the type to compute in.
fn signs(place: Place, dtype: DType) -> Result<Data> {
    let signs = Data::new_at(place, dtype, 2)?;
    match place {
        Place::Gpu(_) => range(&signs, 1.0, -2.0, -1.0)?,
        Place::Host => with_real!(dtype, T => signs.as_mut_slice::<T>().copy_from_slice(&[1.0, -1.0])),
    }
    Ok(signs)
}

/// The halves of y, or of its gradient, `n` elements of each row.
fn halves<'a, T: SimdReal>(v: &'a View, n: usize) -> [RowsInput<'a, T>; 2] {
    let all = v.data.as_slice::<T>();
    match v.is_constant() {
        true => [RowsInput::Number(all[0]); 2],
        false => [RowsInput::Rows(all, 2 * n), RowsInput::Rows(&all[n..], 2 * n)],
    }
}

impl Call for Halves {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (over, y) = (self.all(2), &y[0].data);
        let signs = signs(y.place(), run.dtype)?;
        let x = (&x[0].data, Walk::new(&self.all(1), &over));
        ops::formula(&self.half, &[x, (&signs, Walk::new(&Shape::from(SIGNS), &over))], y, Output::Write)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        self.whole.as_ref().map(|_| Needs { x: 0, y: 1 })
    }

    fn takes_constants(&self) -> bool {
        true
    }

    fn backward(&self, _run: &Run, Gradients { y, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(whole), Some(y), Some(gy), Some(gx)) = (&self.whole, &y[0], &gy[0], &gx[0]) else { return Ok(()) };
        if gx.data.is_empty() {
            return Ok(());
        }
        let n = self.inner;
        if gx.data.place() == Place::Host && n >= ROW {
            with_real!(gx.data.dtype(), T => {
                let ([y, below], [gy, gy_below]) = (halves(y, n), halves(gy, n));
                apply_rows::<T>(whole, &[y, below, gy, gy_below], gx.data.as_mut_slice(), n, gx.output);
            });
            return Ok(());
        }
        let walk = || Walk::Strided(0, smallvec![(self.outer, 2 * self.inner as isize), (self.inner, 1)]);
        let second = y.data.after(self.inner);
        let (below, of_gy) = match gy.is_constant() {
            true => (gy.data.clone(), Walk::Splat),
            false => (gy.data.after(self.inner), walk()),
        };
        let inputs = [(&y.data, walk()), (&second, walk()), (&gy.data, of_gy.clone()), (&below, of_gy)];
        ops::formula(whole, &inputs, &gx.data, gx.output)
    }
}
