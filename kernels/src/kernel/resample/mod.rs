//! Axes of an array resampled to other sizes: nearest elements, or linear or cubic interpolation; and the transpose.
//! Axes are independent, so each is a pass of its own.

mod cpu;
mod cuda;

use crate::array::scratch::counted;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::ops;
use crate::pool;
use crate::with_real;
use smallvec::SmallVec;

/// Which elements around a place make the result; the numbers are those of `Way` in `cuda/resample.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The one before the place.
    Floor,
    /// The one behind it.
    Ceil,
    /// The nearest; in the middle of two the first, or the second.
    NearestFirst,
    NearestSecond,
    /// Two, by distance.
    Linear,
    /// Four, by a cubic polynomial; those beyond the ends are the elements at the ends, or left out.
    Cubic,
    CubicInside,
}

/// How an axis of `n` elements becomes one of `m`: element j is at the place `(scale j + shift) / by` of the axis; where the axis
/// is cut, at `shift (n - 1) + j scale (n - 1) / by`, in single precision, since NNabla decides so what is at an element or beyond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    pub n: usize,
    pub m: usize,
    pub scale: f64,
    pub shift: f64,
    pub by: f64,
    pub way: Way,
    /// The coefficient of the cubic polynomial.
    pub cubic: f64,
    /// Places beyond the ends have no elements.
    pub cut: bool,
}

/// The elements that make one of the result: those of weight 0 may be left out.
pub struct Taps {
    pub count: usize,
    pub at: [usize; 4],
    pub weight: [f64; 4],
}

impl Sampling {
    fn place(&self, j: usize) -> f64 {
        if self.cut {
            let [j, last, scale, shift, by] =
                [j as f32, (self.n - 1) as f32, self.scale as f32, self.shift as f32, self.by as f32];
            return (shift * last + j * scale * last / by) as f64;
        }
        (self.scale * j as f64 + self.shift) / self.by
    }

    /// Whether element j lies beyond the ends of an axis that is cut there.
    pub fn is_outside(&self, j: usize) -> bool {
        let place = self.place(j);
        self.cut && !(place >= 0.0 && place <= (self.n - 1) as f64)
    }

    /// Each element stays what and where it is.
    pub fn is_identity(&self) -> bool {
        self.n == self.m && self.scale == if self.cut { 1.0 } else { self.by } && self.shift == 0.0
    }

    fn clamped(&self, i: f64) -> usize {
        i.clamp(0.0, (self.n - 1) as f64) as usize
    }

    /// How many elements each is made of.
    pub fn count(&self) -> usize {
        match self.way {
            Way::Linear => 2,
            Way::Cubic | Way::CubicInside => 4,
            _ => 1,
        }
    }

    /// What element j is made of.
    pub fn taps(&self, j: usize) -> Taps {
        let place = self.place(j);
        let one = |i: f64| Taps { count: 1, at: [self.clamped(i); 4], weight: [1.0, 0.0, 0.0, 0.0] };
        if self.is_outside(j) {
            return Taps { count: self.count(), at: [0; 4], weight: [0.0; 4] };
        }
        match self.way {
            Way::Floor => one(place.floor()),
            Way::Ceil => one(place.ceil()),
            Way::NearestFirst => one((place - 0.5).ceil()),
            Way::NearestSecond => one((place + 0.5).floor()),
            Way::Linear => {
                let (i, t) = (place.floor(), place - place.floor());
                let at = [self.clamped(i), self.clamped(i + 1.0), 0, 0];
                Taps { count: 2, at, weight: [1.0 - t, t, 0.0, 0.0] }
            }
            Way::Cubic | Way::CubicInside => self.cubic_taps(place),
        }
    }

    fn cubic_taps(&self, place: f64) -> Taps {
        let (i, t) = (place.floor(), place - place.floor());
        let mut weight = cubic(self.cubic, t);
        if self.way == Way::CubicInside {
            let inside = |k: usize| (0.0..self.n as f64).contains(&(i + k as f64 - 1.0));
            (0..4).filter(|&k| !inside(k)).for_each(|k| weight[k] = 0.0);
            let sum: f64 = weight.iter().sum();
            weight.iter_mut().for_each(|w| *w /= sum);
        }
        Taps { count: 4, at: std::array::from_fn(|k| self.clamped(i + k as f64 - 1.0)), weight }
    }
}

/// Weights of the four elements around a place, `t` behind the second of them, with coefficient `a` (Keys, 1981).
fn cubic(a: f64, t: f64) -> [f64; 4] {
    let near = |t: f64| ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    let far = |t: f64| ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// Sizes of the arrays: those of the axes, with `outer` elements before and `inner` behind them.
#[derive(Clone, Debug)]
pub struct Resample {
    pub outer: usize,
    pub axes: SmallVec<[Sampling; 3]>,
    pub inner: usize,
    /// What the result is where an axis is cut.
    pub beyond: f64,
}

/// A pass over one axis: an array of `(before, from, behind)` elements to one of `(before, to, behind)`.
struct AxisPass {
    sampling: Sampling,
    transposed: bool,
    before: usize,
    behind: usize,
}

impl AxisPass {
    fn from(&self) -> usize {
        if self.transposed { self.sampling.m } else { self.sampling.n }
    }

    fn to(&self) -> usize {
        if self.transposed { self.sampling.n } else { self.sampling.m }
    }

    fn result(&self) -> usize {
        self.before * self.to() * self.behind
    }
}

impl Resample {
    /// The passes over `images` arrays, those first that leave the fewest elements to the next ones.
    fn passes(&self, images: usize, transposed: bool) -> SmallVec<[AxisPass; 3]> {
        let sizes = |s: &Sampling| if transposed { (s.m, s.n) } else { (s.n, s.m) };
        let mut now: SmallVec<[usize; 3]> = self.axes.iter().map(|s| sizes(s).0).collect();
        let mut order: SmallVec<[usize; 3]> = (0..now.len()).filter(|&a| !self.axes[a].is_identity()).collect();
        // Lines are slower than rows: among equals they are done where there are fewer elements.
        if self.axes.last().map(sizes).is_some_and(|(from, to)| from < to) {
            order.reverse();
        }
        order.sort_by(|&a, &b| {
            let ((na, ma), (nb, mb)) = (sizes(&self.axes[a]), sizes(&self.axes[b]));
            (ma as u128 * nb as u128).cmp(&(mb as u128 * na as u128))
        });
        let pass = |a: usize| {
            let (before, behind) = (now[..a].iter().product::<usize>(), now[a + 1..].iter().product::<usize>());
            now[a] = sizes(&self.axes[a]).1;
            AxisPass { sampling: self.axes[a], transposed, before: before * images, behind: behind * self.inner }
        };
        order.into_iter().map(pass).collect()
    }

    /// Elements of an array before and after.
    fn sizes(&self) -> (usize, usize) {
        let size = |f: fn(&Sampling) -> usize| self.axes.iter().map(f).product::<usize>() * self.inner;
        (size(|s| s.n), size(|s| s.m))
    }

    fn run(&self, x: &Data, y: &Data, transposed: bool, output: Output) -> Result<()> {
        if self.axes.iter().all(Sampling::is_identity) {
            return ops::put(y, x, output);
        }
        if let Place::Gpu(_) = y.place() {
            return cuda::resample(self, x, y, transposed, output);
        }
        with_real!(y.dtype(), T => cpu::resample(self, x.as_slice::<T>(), y.as_mut_slice(), transposed, output));
        Ok(())
    }

    /// Bytes of what the passes hand to each other, and of their tables, in one direction.
    fn buffers(&self, transposed: bool, size: usize) -> usize {
        let group = cpu::group(self);
        let largest = |p: &[AxisPass]| p.iter().map(AxisPass::result).max().unwrap_or(0);
        let passes = self.passes(group, transposed);
        let buffers = if passes.len() > 2 { 2 } else { 1 };
        let between = passes.split_last().map_or(0, |(_, before)| buffers * counted(largest(before) * size));
        let moved = self.axes.iter().filter(|s| !s.is_identity());
        let threads = pool::num_threads().min(self.outer.div_ceil(group.max(1)).max(1));
        let turned = passes.iter().map(|p| cpu::turned(p, size)).max().unwrap_or(0);
        (between + turned) * threads + moved.map(|s| cpu::table(s, transposed, size)).sum::<usize>()
    }
}

/// Resamples axes.
pub struct Forward(pub Resample);

impl Call for Forward {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.run(&x[0].data, &y[0].data, false, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.buffers(false, dtype.size()), self.0.buffers(true, dtype.size())]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        self.0.run(&gy.data, &gx.data, true, gx.output)
    }
}

/// Adds each element to those that it was made of, by their weights.
pub struct Transposed(pub Resample);

impl Call for Transposed {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.run(&x[0].data, &y[0].data, true, Output::Write)
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        [self.0.buffers(true, dtype.size()), self.0.buffers(false, dtype.size())]
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        // The derivative of a linear map: what lies beyond the ends has none.
        Resample { beyond: 0.0, ..self.0.clone() }.run(&gy.data, &gx.data, false, gx.output)
    }
}
