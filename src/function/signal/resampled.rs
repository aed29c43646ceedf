//! What functions that resample axes share, and the internal function that their gradients are.

use crate::function;
use crate::function::array::List;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::resample::{Forward, Resample, Sampling, Transposed, Way};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// Sizes along an axis at most: their products stay whole numbers in double.
const MOST: i64 = 1 << 31;

/// The place of element j of an axis that was resampled is `(scale j + shift) / by`, or, where it is cut, what [`Sampling`] says.
pub struct Line {
    pub scale: f64,
    pub shift: f64,
    pub by: f64,
}

impl Line {
    pub fn new(scale: f64, shift: f64, by: f64) -> Line {
        Line { scale, shift, by }
    }

    /// All at the first element.
    pub const START: Line = Line { scale: 0.0, shift: 0.0, by: 1.0 };

    /// Of an axis of `n` that becomes `m`, so that the first and the last elements stay.
    pub fn corners(n: usize, m: usize) -> Line {
        if m > 1 { Line::new(n as f64 - 1.0, 0.0, m as f64 - 1.0) } else { Line::START }
    }

    /// The middles of elements are at 1/2 on the axis.
    pub fn middles(n: usize, m: usize) -> Line {
        Line::new(2.0 * n as f64, n as f64 - m as f64, 2.0 * m as f64)
    }

    pub fn sampling(self, n: usize, m: usize, way: Way) -> Sampling {
        Sampling { n, m, scale: self.scale, shift: self.shift, by: self.by, way, cubic: 0.0, cut: false }
    }
}

/// Sizes that axes get: numbers from 1 on.
pub fn sizes(name: &str, given: &[i64]) -> Result<SmallVec<[usize; 3]>> {
    if given.iter().any(|n| !(1..=MOST).contains(n)) {
        let expected = format!("sizes from 1 to {MOST}");
        return Err(Error::arg(name, expected).actual(format!("{given:?}")));
    }
    Ok(given.iter().map(|&n| n as usize).collect())
}

/// The call that resamples the axes of `x` from `first` on, and the result's shape.
pub fn resample(x: &Shape, first: usize, axes: SmallVec<[Sampling; 3]>, beyond: f64) -> Result<(Shape, Resample)> {
    let last = first + axes.len();
    if axes.iter().any(|s| s.n == 0 || s.n.max(s.m) > MOST as usize) {
        return Err(Error::shape("x", format!("sizes from 1 to {MOST} along the axes that are resampled")).actual(x));
    }
    let y: Shape =
        x[..first].iter().copied().chain(axes.iter().map(|s| s.m)).chain(x[last..].iter().copied()).collect();
    let call = Resample { outer: x.size_to(first), axes, inner: x.size_from(last), beyond };
    Ok((y.checked()?, call))
}

function! {
    /// Resamples axes as a list of numbers says, or adds each element to those that it was made of: both derivatives of functions
    /// that resample.
    Resampled resampled in Special, any_device
    inputs { x: "N-D array." }
    args {
        shape: List, "Shape of the result.";
        first: i64, "The first axis that is resampled.";
        axes: Vec<f64>, "Eight numbers an axis: sizes before and after, scale, shift, divisor, way, coefficient, cut.";
        transposed: bool = true, "The transpose, from sizes after to sizes before."
    }
    outputs { y: "N-D array of the given shape." }
}

const WAYS: [Way; 7] =
    [Way::Floor, Way::Ceil, Way::NearestFirst, Way::NearestSecond, Way::Linear, Way::Cubic, Way::CubicInside];

impl Resampled {
    /// The transpose of a call over arrays of shape `x`.
    pub fn of(x: &Shape, first: usize, r: &Resample) -> Resampled {
        let numbers = |s: &Sampling| {
            let sizes = [s.n as f64, s.m as f64, s.scale, s.shift, s.by];
            sizes.into_iter().chain([s.way as u8 as f64, s.cubic, s.cut as u8 as f64])
        };
        let axes = r.axes.iter().flat_map(numbers).collect();
        Resampled { shape: x[..].into(), first: first as i64, axes, transposed: true }
    }

    fn samplings(&self) -> SmallVec<[Sampling; 3]> {
        let sampling = |v: &[f64]| Sampling {
            n: v[0] as usize,
            m: v[1] as usize,
            scale: v[2],
            shift: v[3],
            by: v[4],
            way: WAYS[(v[5] as usize).min(WAYS.len() - 1)],
            cubic: v[6],
            cut: v[7] != 0.0,
        };
        self.axes.chunks_exact(8).map(sampling).collect()
    }
}

/// The gradient of a function whose call is over arrays of the shape of its input.
pub fn gradient(g: &Grad, first: usize) -> Result<Vec<Option<Variable>>> {
    let args = Resampled::of(&g.x[0].shape(), first, &g.call::<Forward>().0);
    Ok(vec![Some(resampled(&g.gy[0], args)?)])
}

impl Function for Resampled {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shape: Shape = self.shape.iter().map(|&n| n.max(0) as usize).collect();
        let (first, axes) = (self.first.max(0) as usize, self.samplings());
        let (small, expected) = if self.transposed { (&shape, "of the result") } else { (&x[0], "of x") };
        let last = first + axes.len();
        if last > small.ndim() || (first..last).any(|a| small[a] != axes[a - first].n) {
            return Err(Error::arg("axes", format!("sizes {expected}, {small}")).actual(format!("{:?}", self.axes)));
        }
        let (large, call) = resample(small, first, axes, 0.0)?;
        let other = if self.transposed { &x[0] } else { &shape };
        if large != *other {
            return Err(Error::shape("x", format!("shape {large}")).actual(other));
        }
        Ok(if self.transposed { Resolved::one(shape, Transposed(call)) } else { Resolved::one(shape, Forward(call)) })
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.x[0].shape()[..].into();
        let back = Resampled { shape, transposed: !self.transposed, ..self.clone() };
        Ok(vec![Some(resampled(&g.gy[0], back)?)])
    }
}
