//! Max, sum and average pooling and their gradients.
//!
//! An output row is folded from shifted input rows, so the inner loops run over whole rows; windows of 2 x 2 with
//! stride 2 have loops of their own. The maximum of a window is its first largest number, or its last NaN (in NNabla NaN
//! only where it comes first).

mod across;
mod pairs;
mod planes;
#[cfg(feature = "emulate")]
mod tests;
mod turned;

use crate::array::Output;
use crate::array::scratch::{counted, reserve};
use crate::dtype::{DType, Real};
use crate::error::{Error, Result};
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use planes::{Planes, max_backward_to};
use std::ops::Range;

/// Whether a number takes the place of the largest one so far.
#[inline(always)]
#[allow(clippy::eq_op)] // is NaN, as a vector would ask
pub(super) fn wins<T: Real>(v: T, largest: T) -> bool {
    (v > largest) | (v != v)
}

#[inline(always)]
fn larger<T: Real>(largest: T, v: T) -> T {
    if wins(v, largest) { v } else { largest }
}

/// What becomes of windows that reach over the far border (`ignore_border`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// They are left out: `(in + 2 pad - kernel) / stride + 1` outputs.
    Ignore,
    /// They are cut off: `ceil((in + pad) / stride)` outputs.
    Keep,
}

/// What an average divides by (`including_pad`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// Nothing: the sum.
    One,
    /// Positions of the window within the padded input.
    Padded,
    /// Positions of the window within the input.
    Inside,
}

/// Sizes of a pooling over arrays of `outer` x `input` x `inner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooling {
    /// Batch, times the channels where they come before the spatial axes.
    pub outer: usize,
    /// The channels where they come last, otherwise 1.
    pub inner: usize,
    pub input: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub pad: [usize; 3],
    pub border: Border,
}

impl Pooling {
    pub fn output(&self) -> [usize; 3] {
        std::array::from_fn(|i| match self.border {
            Border::Ignore => {
                let room = self.input[i] + 2 * self.pad[i];
                if room < self.kernel[i] { 0 } else { (room - self.kernel[i]) / self.stride[i] + 1 }
            }
            Border::Keep => (self.input[i] + self.pad[i]).div_ceil(self.stride[i]),
        })
    }

    pub fn input_len(&self) -> usize {
        self.outer * self.input.iter().product::<usize>() * self.inner
    }

    pub fn output_len(&self) -> usize {
        self.outer * self.output().iter().product::<usize>() * self.inner
    }

    /// Bytes of the rows that tasks work in, `each` for a number of an output row.
    pub fn rows(&self, each: usize) -> usize {
        counted(self.output()[2] * self.inner * each) * pool::num_threads().min(self.tasks().0)
    }

    /// How many tasks there are, and planes of each.
    fn tasks(&self) -> (usize, usize) {
        let outer = self.outer.max(1);
        let each = (TASK / ((self.input_len() + self.output_len()) / outer).max(1)).clamp(1, outer);
        (self.outer.div_ceil(each), each)
    }

    /// The largest number of each window; a window that sees only padding gives minus infinity.
    pub fn max_forward<T: SimdReal>(&self, x: &[T], y: &mut [T]) {
        self.run(x, y, x, NO_PLACES, PoolingTask::Max);
    }

    /// In what `max_forward_keeping` keeps places: numbers within pairs of rows, or within planes.
    pub fn place_type(&self) -> Result<DType> {
        match self.input_len() / self.outer.max(1) {
            _ if self.pairs_of(PoolingTask::MaxKeeping) => Ok(DType::U8),
            n if n < u16::MAX as usize => Ok(DType::U16),
            n if n < u32::MAX as usize => Ok(DType::U32),
            _ => Err(Error::unsupported("the maxima of samples of 2^32 elements and more have no gradient")),
        }
    }

    fn check_places<I>(&self, places: &[I]) {
        assert_eq!(places.len(), self.output_len(), "one place for each window");
        let is_known = self.place_type().is_ok_and(|t| t.size() <= size_of::<I>());
        assert!(is_known, "numbers that have room for the places");
    }

    /// Outputs along the last axis that lie side by side and see an input at a position of their windows: that position,
    /// which outputs, and whether they see an input for the first time.
    fn runs(&self) -> impl Iterator<Item = (usize, Range<usize>, bool)> + '_ {
        let mut known = self.output()[2];
        let runs = (0..self.kernel[2]).flat_map(move |k| {
            let seen = self.seen(k);
            let new = seen.start..seen.end.min(known);
            let again = new.end..seen.end;
            known = known.min(seen.start);
            [(k, new, true), (k, again, false)]
        });
        runs.filter(|(_, outputs, _)| !outputs.is_empty())
    }

    /// Outputs along the last axis whose window has its position `k` inside the input.
    fn seen(&self, k: usize) -> Range<usize> {
        let (n, pad, stride) = (self.output()[2], self.pad[2], self.stride[2]);
        let from = pad.saturating_sub(k).div_ceil(stride).min(n);
        let to = (self.input[2] + pad).saturating_sub(k).div_ceil(stride);
        from..to.clamp(from, n)
    }

    /// Whether outputs side by side are one span of numbers, and not one for each.
    fn is_one_span(&self) -> bool {
        self.stride[2] == 1 || self.inner == 1
    }

    /// As `max_forward`; keeps where each maximum is. `I`: [`Self::place_type`], or wider.
    pub fn max_forward_keeping<T: SimdReal, I: WindowIndex>(&self, x: &[T], y: &mut [T], places: &mut [I]) {
        self.check_places(places);
        self.run(x, y, x, SendPtr(places.as_mut_ptr()), PoolingTask::MaxKeeping);
    }

    /// Adds each gradient to that of its window's maximum, where `max_forward_keeping` has found it.
    pub fn max_backward_to<T: SimdReal, I: WindowIndex>(&self, gy: &[T], places: &[I], gx: &mut [T], output: Output) {
        self.check_places(places);
        self.run(gy, gx, gy, SendPtr::of(places), PoolingTask::MaxBackwardTo(output));
    }

    /// Adds each gradient to that of its window's first largest number.
    pub fn max_backward<T: SimdReal>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        self.run(gy, gx, x, NO_PLACES, PoolingTask::MaxBackward(output));
    }

    /// The sum of each window, over the divisor.
    pub fn sum_forward<T: SimdReal>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
        self.run(x, y, x, NO_PLACES, PoolingTask::Sum(divisor));
    }

    /// Adds each gradient, over the divisor, to those of its window.
    pub fn sum_backward<T: SimdReal>(&self, gy: &[T], gx: &mut [T], divisor: Divisor, output: Output) {
        self.run(gy, gx, gy, NO_PLACES, PoolingTask::SumBackward(divisor, output));
    }

    fn run<T: SimdReal, I: WindowIndex>(
        &self,
        from: &[T],
        to: &mut [T],
        x: &[T],
        places: SendPtr<I>,
        task: PoolingTask,
    ) {
        let mut want = (self.input_len(), self.output_len());
        if task.is_backward() {
            want = (want.1, want.0);
        }
        assert_eq!((from.len(), to.len()), want, "the slices do not have the pooling's sizes");
        assert!(
            !matches!(task, PoolingTask::MaxBackward(_)) || x.len() == self.input_len(),
            "x does not have the input's size"
        );
        if to.is_empty() {
            return;
        }
        if self.is_turned(task) {
            return self.run_turned(from, to, x, task);
        }
        if !self.pairs_of(task) && self.goes_across() {
            match task {
                PoolingTask::Max => return self.max_across::<T, I>(from, to, None),
                PoolingTask::MaxKeeping => return self.max_across(from, to, Some(places)),
                _ => {}
            }
        }
        let planes = Planes::new(self, task);
        let (from, to, x) = (SendPtr::of(from), SendPtr(to.as_mut_ptr()), SendPtr::of(x));
        dispatch(ChunkedPooling { p: self, planes, from, to, x, places });
    }
}

#[derive(Clone, Copy, Debug)]
enum PoolingTask {
    Max,
    MaxKeeping,
    MaxBackward(Output),
    MaxBackwardTo(Output),
    Sum(Divisor),
    SumBackward(Divisor, Output),
}

impl PoolingTask {
    fn is_backward(self) -> bool {
        matches!(self, PoolingTask::MaxBackward(_) | PoolingTask::MaxBackwardTo(_) | PoolingTask::SumBackward(..))
    }
}

/// The place of a maximum.
pub trait WindowIndex: Copy + Send + Sync {
    /// None: the window sees only padding.
    const NOWHERE: Self;
    fn new(i: u32) -> Self;
    fn get(self) -> u32;
}

macro_rules! window_index {
    ($($t:ident)*) => {
        $(impl WindowIndex for $t {
            const NOWHERE: $t = $t::MAX;
            #[inline(always)]
            fn new(i: u32) -> $t {
                i as $t
            }
            #[inline(always)]
            fn get(self) -> u32 {
                self as u32
            }
        })*
    };
}
window_index!(u8 u16 u32);

/// For tasks that have nothing to do with places: these are bytes then.
const NO_PLACES: SendPtr<u8> = SendPtr(std::ptr::null_mut());

/// One axis: for each output the inputs that it sees, and how many positions there are with padding.
#[derive(Clone)]
struct PoolingAxis {
    windows: Vec<Window>,
    input: usize,
}

#[derive(Clone, Copy)]
struct Window {
    from: usize,
    to: usize,
    padded: usize,
}

impl PoolingAxis {
    fn new(p: &Pooling, i: usize) -> Self {
        let (input, pad, stride) = (p.input[i], p.pad[i], p.stride[i]);
        let window = |o: usize| {
            let (from, to) = (o * stride, o * stride + p.kernel[i]);
            let inside = |v: usize| v.saturating_sub(pad).min(input);
            Window { from: inside(from), to: inside(to), padded: to.min(input + 2 * pad).saturating_sub(from) }
        };
        let mut windows = Vec::new();
        reserve(&mut windows, p.output()[i]);
        windows.extend((0..p.output()[i]).map(window));
        PoolingAxis { windows, input }
    }
}

/// Numbers that are worth a task.
const TASK: usize = 1 << 15;

/// The whole pooling, cut into chunks of planes.
struct ChunkedPooling<'a, T, I> {
    p: &'a Pooling,
    planes: Planes,
    from: SendPtr<T>,
    to: SendPtr<T>,
    x: SendPtr<T>,
    places: SendPtr<I>,
}

impl<T: SimdReal, I: WindowIndex> Choose<T> for ChunkedPooling<'_, T, I> {
    fn with<L: Lanes<T>>(self) {
        let (x, y) = (self.p.input_len() / self.p.outer.max(1), self.p.output_len() / self.p.outer.max(1));
        let (from, to) = if self.planes.task.is_backward() { (y, x) } else { (x, y) };
        let (tasks, each) = self.p.tasks();
        pool::run(tasks, &|t| {
            let (first, n) = (t * each, each.min(self.p.outer - t * each));
            // SAFETY: the sizes were checked; each task writes its own planes; L is what the machine has.
            unsafe {
                let (from, to) = (self.from.read(first * from, n * from), self.to.slice(first * to, n * to));
                let x = if matches!(self.planes.task, PoolingTask::MaxBackward(_)) {
                    self.x.read(first * x, n * x)
                } else {
                    &[]
                };
                let places = self.places.add(first * y);
                L::enter(Some { planes: &self.planes, n, from, to, x, places });
            }
        });
    }
}

/// Some planes of a pooling.
struct Some<'a, T, I> {
    planes: &'a Planes,
    n: usize,
    from: &'a [T],
    to: &'a mut [T],
    x: &'a [T],
    places: SendPtr<I>,
}

impl<T: SimdReal, I: WindowIndex> WithLanes<T> for Some<'_, T, I> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (f, t, x) = (self.from.len() / self.n, self.to.len() / self.n, self.x.len() / self.n);
        if let (PoolingTask::MaxBackwardTo(output), 2..) = (self.planes.task, size_of::<I>()) {
            // SAFETY: there is a place for each of the task's gradients.
            let places = unsafe { self.places.read(0, self.from.len()) };
            return max_backward_to((self.n, self.planes.apart), self.from, places, self.to, output);
        }
        for i in 0..self.n {
            let (from, to) = (&self.from[i * f..][..f], &mut self.to[i * t..][..t]);
            match self.planes.task {
                PoolingTask::MaxKeeping => {
                    // SAFETY: there is a place for each of the task's results, and it is the task's alone.
                    let places = unsafe { self.places.slice(i * t, t) };
                    self.planes.max_keeping(from, to, places)
                }
                PoolingTask::MaxBackwardTo(o) => {
                    // SAFETY: there is a place for each of the task's gradients.
                    let places = unsafe { self.places.read(i * f, f) };
                    self.planes.max_pairs_backward_to(from, places, to, o)
                }
                // So the others are not compiled for each type of places.
                _ if size_of::<I>() != 1 => unreachable!("a task without places"),
                PoolingTask::Max if self.planes.pairs => self.planes.max_pairs(from, to),
                PoolingTask::Max => self.planes.max(from, to),
                PoolingTask::MaxBackward(o) => self.planes.max_backward(from, &self.x[i * x..][..x], to, o),
                PoolingTask::Sum(d) => self.planes.sum(from, to, d),
                PoolingTask::SumBackward(d, o) => self.planes.sum_backward(from, to, d, o),
            }
        }
    }
}
