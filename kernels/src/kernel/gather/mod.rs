//! Slices of an array along an axis, picked by indices; and the way back, which adds.

pub mod cuda;
pub(crate) mod rows;

use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::pool::tasks::{Shared, share};
use crate::simd::SimdReal;
use crate::with_real;
use cuda::OutOfRange;

/// How rows are picked: in `batch` batches of `outer` blocks; of each block, which has `n` rows of `inner` elements, the
/// `picks` rows whose indices the batch has.
#[derive(Clone, Copy, Debug)]
pub struct Picks {
    pub batch: usize,
    pub outer: usize,
    pub n: usize,
    pub inner: usize,
    pub picks: usize,
}

/// Checks the indices.
fn checked(indices: &[i64], n: usize) -> Result<&[i64]> {
    match outside(indices, n) {
        Some(i) => {
            Err(Error::arg("Indices", format!("indices of 0 or more and below {n}, the size of the axis"))
                .actual_index(i))
        }
        None => Ok(indices),
    }
}

/// The first index that is not one of `n` places. Mostly there is none, so whether there is one is found out first, without a
/// branch for each: the sign of `i` or of `n - 1 - i` tells.
pub(super) fn outside(indices: &[i64], n: usize) -> Option<i64> {
    let last = n as i64 - 1;
    let signs = |part: &[i64]| part.iter().fold(0, |signs, &i| signs | i | last.wrapping_sub(i));
    let part = indices.chunks(1 << 12).find(|part| signs(part) < 0)?;
    part.iter().copied().find(|i| !(0..n as i64).contains(i))
}

impl Picks {
    /// Rows of one table.
    pub fn rows(n: usize, inner: usize, picks: usize) -> Picks {
        Picks { batch: 1, outer: 1, n, inner, picks }
    }

    /// Calls `f(batch's indices as offsets, place in x, place in y)` for each batch and outer position.
    fn each(&self, indices: &[i64], f: impl Fn(&[usize], usize, usize) + Sync) {
        let (picks, outer) = (self.picks, self.outer);
        let elements = self.batch * outer * picks * self.inner;
        let offsets = Scratch::each(indices.len(), |k| indices[k] as usize * self.inner);
        let offsets = &offsets[..];
        let call =
            |i: usize| f(&offsets[i / outer * picks..][..picks], i * self.n * self.inner, i * picks * self.inner);
        // Few positions: the rows of each are shared out instead.
        let count = self.batch * outer;
        if count < 8 { (0..count).for_each(call) } else { share(count, elements, call) }
    }

    /// Picks slices. An index that lies outside is an error on the host; a GPU gives NaN, since looking for one would make
    /// the host wait.
    pub fn pick(&self, x: &Data, indices: &Data, y: &Data) -> Result<()> {
        match y.place() {
            Place::Gpu(_) => cuda::gather(self, indices, x, y, OutOfRange::Nan),
            Place::Host => {
                let indices = checked(indices.as_slice(), self.n)?;
                with_real!(y.dtype(), T => self.pick_on_host(x.as_slice::<T>(), indices, y.as_mut_slice()));
                Ok(())
            }
        }
    }

    /// Adds the picked slices where they came from. On a GPU those whose index lies outside are left out.
    pub fn put_back(&self, y: &Data, indices: &Data, x: &Data, output: Output) -> Result<()> {
        match x.place() {
            Place::Gpu(_) => cuda::scatter(self, indices, y, x, output),
            Place::Host => {
                let indices = checked(indices.as_slice(), self.n)?;
                with_real!(x.dtype(), T => self.put_back_on_host(y.as_slice::<T>(), indices, x.as_mut_slice(), output));
                Ok(())
            }
        }
    }

    fn pick_on_host<T: SimdReal>(&self, x: &[T], indices: &[i64], y: &mut [T]) {
        let (rows, n) = (self.picks * self.inner, self.n * self.inner);
        let shared = Shared(y.as_mut_ptr());
        let shared = &shared;
        self.each(indices, move |at, from, to| {
            // SAFETY: this position's own part of y.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(to), rows) };
            rows::gather(&x[from..from + n], at, self.inner, y, Output::Write);
        });
    }

    fn put_back_on_host<T: SimdReal>(&self, y: &[T], indices: &[i64], x: &mut [T], output: Output) {
        if output == Output::Write {
            x.fill(T::ZERO);
        }
        let (rows, n) = (self.picks * self.inner, self.n * self.inner);
        let shared = Shared(x.as_mut_ptr());
        let shared = &shared;
        self.each(indices, move |at, from, to| {
            // SAFETY: this position's own part of x.
            let x = unsafe { std::slice::from_raw_parts_mut(shared.0.add(from), n) };
            rows::scatter(&y[to..to + rows], at, self.inner, x, Output::Accumulate);
        });
    }
}

/// `y[.., i, ..] = x[.., indices[i], ..]`, and back.
pub struct Gather {
    pub axis: usize,
    pub batch_dims: usize,
    pub picks: Picks,
}

impl Gather {
    /// Bytes of the indices as offsets.
    fn offsets(&self) -> usize {
        counted(self.picks.batch * self.picks.picks * size_of::<usize>())
    }
}

impl Call for Gather {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.picks.pick(&x[0].data, &x[1].data, &y[0].data)
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        [self.offsets(); 2]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 0b10, y: 0 })
    }

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(indices), Some(gy), Some(gx)) = (&x[1], &gy[0], &mut gx[0]) else { return Ok(()) };
        self.picks.put_back(&gy.data, &indices.data, &gx.data, gx.output)
    }
}

/// The way back as a function of its own.
pub struct Ungather(pub Gather);

impl Call for Ungather {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.picks.put_back(&x[0].data, &x[1].data, &y[0].data, Output::Write)
    }

    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        [self.0.offsets(), 0]
    }
}
