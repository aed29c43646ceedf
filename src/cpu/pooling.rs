//! Max, sum and average pooling and their gradients.
//!
//! An output row is folded from shifted input rows, so the inner loops run over whole rows; windows of 2 x 2 with
//! stride 2 have loops of their own. The maximum of a window is its first largest number, and NaN only where that
//! comes first, as in NNabla.

use super::conv::SendPtr;
use super::conv::lanes::{Choose, Job, Lanes, dispatch};
use super::conv::scratch;
use super::gemm::Output;
use super::pool;
use crate::dtype::Real;

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

    /// The largest number of each window; a window that sees only padding gives minus infinity.
    pub fn max_forward<T: Real>(&self, x: &[T], y: &mut [T]) {
        self.run(x, y, x, Task::Max);
    }

    /// Adds each gradient to that of its window's first largest number.
    pub fn max_backward<T: Real>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        self.run(gy, gx, x, Task::MaxBackward(output));
    }

    /// The sum of each window, over the divisor.
    pub fn sum_forward<T: Real>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
        self.run(x, y, x, Task::Sum(divisor));
    }

    /// Adds each gradient, over the divisor, to those of its window.
    pub fn sum_backward<T: Real>(&self, gy: &[T], gx: &mut [T], divisor: Divisor, output: Output) {
        self.run(gy, gx, gy, Task::SumBackward(divisor, output));
    }

    fn run<T: Real>(&self, from: &[T], to: &mut [T], x: &[T], task: Task) {
        let mut want = (self.input_len(), self.output_len());
        if matches!(task, Task::MaxBackward(_) | Task::SumBackward(..)) {
            want = (want.1, want.0);
        }
        assert_eq!((from.len(), to.len()), want, "the slices do not have the pooling's sizes");
        assert!(
            !matches!(task, Task::MaxBackward(_)) || x.len() == self.input_len(),
            "x does not have the input's size"
        );
        if to.is_empty() {
            return;
        }
        let axes = [0, 1, 2].map(|i| Axis::new(self, i));
        let planes = Planes { axes, inner: self.inner, kernel: self.kernel, pad: self.pad, task };
        dispatch(Whole { p: self, planes, from: SendPtr::of(from), to: SendPtr(to.as_mut_ptr()), x: SendPtr::of(x) });
    }
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Max,
    MaxBackward(Output),
    Sum(Divisor),
    SumBackward(Divisor, Output),
}

/// One axis: for each output the inputs that it sees, and how many positions there are with padding.
#[derive(Clone)]
struct Axis {
    windows: Vec<Window>,
    input: usize,
    stride: usize,
}

#[derive(Clone, Copy)]
struct Window {
    from: usize,
    to: usize,
    padded: usize,
}

impl Axis {
    fn new(p: &Pooling, i: usize) -> Self {
        let (input, pad, stride) = (p.input[i], p.pad[i], p.stride[i]);
        let window = |o: usize| {
            let (from, to) = (o * stride, o * stride + p.kernel[i]);
            let inside = |v: usize| v.saturating_sub(pad).min(input);
            Window { from: inside(from), to: inside(to), padded: to.min(input + 2 * pad).saturating_sub(from) }
        };
        Axis { windows: (0..p.output()[i]).map(window).collect(), input, stride }
    }

    /// Outputs whose window has its position `k` inside the input.
    fn seen(&self, k: usize, pad: usize) -> std::ops::Range<usize> {
        let from = pad.saturating_sub(k).div_ceil(self.stride);
        let to = (self.input + pad).saturating_sub(k).div_ceil(self.stride);
        from.min(self.windows.len())..to.clamp(from.min(self.windows.len()), self.windows.len())
    }
}

/// Numbers that are worth a task.
const TASK: usize = 1 << 15;

/// The whole pooling, cut into chunks of planes.
struct Whole<'a, T> {
    p: &'a Pooling,
    planes: Planes,
    from: SendPtr<T>,
    to: SendPtr<T>,
    x: SendPtr<T>,
}

impl<T: Real> Choose<T> for Whole<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (x, y) = (self.p.input_len() / self.p.outer.max(1), self.p.output_len() / self.p.outer.max(1));
        let back = matches!(self.planes.task, Task::MaxBackward(_) | Task::SumBackward(..));
        let (from, to) = if back { (y, x) } else { (x, y) };
        let each = (TASK / (x + y).max(1)).clamp(1, self.p.outer.max(1));
        pool::run(self.p.outer.div_ceil(each), &|t| {
            let (first, n) = (t * each, each.min(self.p.outer - t * each));
            // SAFETY: the sizes were checked; each task writes its own planes; L is what the machine has.
            unsafe {
                let (from, to) = (self.from.slice(first * from, n * from), self.to.slice(first * to, n * to));
                let x = if matches!(self.planes.task, Task::MaxBackward(_)) {
                    self.x.slice(first * x, n * x)
                } else {
                    &mut []
                };
                L::enter(Some { planes: &self.planes, n, from, to, x });
            }
        });
    }
}

/// Some planes of a pooling.
struct Some<'a, T> {
    planes: &'a Planes,
    n: usize,
    from: &'a [T],
    to: &'a mut [T],
    x: &'a [T],
}

impl<T: Real> Job<T> for Some<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let (f, t, x) = (self.from.len() / self.n, self.to.len() / self.n, self.x.len() / self.n);
        for i in 0..self.n {
            let (from, to) = (&self.from[i * f..][..f], &mut self.to[i * t..][..t]);
            match self.planes.task {
                Task::Max if self.planes.pairs() => self.planes.max_pairs(from, to),
                Task::Max => self.planes.max(from, to),
                Task::MaxBackward(o) => self.planes.max_backward(from, &self.x[i * x..][..x], to, o),
                Task::Sum(d) => self.planes.sum(from, to, d),
                Task::SumBackward(d, o) => self.planes.sum_backward(from, to, d, o),
            }
        }
    }
}

/// What is the same for every plane.
struct Planes {
    axes: [Axis; 3],
    inner: usize,
    kernel: [usize; 3],
    pad: [usize; 3],
    task: Task,
}

/// A stretch of one output row and the input row's numbers that meet it.
struct Span {
    y: usize,
    x: usize,
    count: usize,
    step: usize,
}

impl Planes {
    /// Numbers of an output row.
    fn width(&self) -> usize {
        self.axes[2].windows.len() * self.inner
    }

    /// Calls `f` with each output row's number and its windows in depth and height.
    #[inline(always)]
    fn each_row(&self, mut f: impl FnMut(usize, Window, Window)) {
        let [d, h, _] = &self.axes;
        for (i, &wd) in d.windows.iter().enumerate() {
            for (j, &wh) in h.windows.iter().enumerate() {
                f(i * h.windows.len() + j, wd, wh);
            }
        }
    }

    /// Calls `f` with each input row of the windows, and whether it is the first.
    #[inline(always)]
    fn each_source(&self, d: Window, h: Window, mut f: impl FnMut(usize, bool)) {
        let row = self.axes[2].input * self.inner;
        for z in d.from..d.to {
            for y in h.from..h.to {
                f((z * self.axes[1].input + y) * row, z == d.from && y == h.from);
            }
        }
    }

    /// Calls `f` with the spans of the outputs `range` at position `k` of their windows.
    #[inline(always)]
    fn spans(&self, k: usize, range: std::ops::Range<usize>, mut f: impl FnMut(Span)) {
        if range.is_empty() {
            return;
        }
        let (c, s) = (self.inner, self.axes[2].stride);
        let x = |o: usize| (o * s + k - self.pad[2]) * c;
        if s == 1 || c == 1 {
            return f(Span { y: range.start * c, x: x(range.start), count: range.len() * c, step: s });
        }
        range.for_each(|o| f(Span { y: o * c, x: x(o), count: c, step: 1 }));
    }

    /// Calls `f` with every span of a row; the flag says that the outputs meet their row's first number.
    #[inline(always)]
    fn all_spans(&self, mut f: impl FnMut(Span, bool)) {
        let mut known = self.axes[2].windows.len();
        for k in 0..self.kernel[2] {
            let seen = self.axes[2].seen(k, self.pad[2]);
            let new = seen.start..seen.end.min(known);
            self.spans(k, new.clone(), |s| f(s, true));
            self.spans(k, new.end..seen.end, |s| f(s, false));
            known = known.min(seen.start);
        }
    }

    #[inline(always)]
    fn max<T: Real>(&self, x: &[T], y: &mut [T]) {
        let width = self.width();
        self.each_row(|row, d, h| {
            let y = &mut y[row * width..][..width];
            y.fill(-T::INFINITY);
            self.each_source(d, h, |at, first| {
                self.all_spans(|s, start| {
                    let take = first && start;
                    pairs(&mut y[s.y..][..s.count], &x[at + s.x..], s.step, |y, &x| {
                        *y = if take || x > *y { x } else { *y }
                    });
                });
            });
        });
    }

    #[inline(always)]
    fn max_backward<T: Real>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        if self.pairs() {
            return self.max_pairs_backward(gy, x, gx, output);
        }
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let width = self.width();
        // Largest numbers, and after them the places where they were found.
        let (mut best, mut place) = (vec![T::ZERO; width], vec![usize::MAX; width]);
        self.each_row(|row, d, h| {
            place.fill(usize::MAX);
            self.each_source(d, h, |at, first| {
                self.all_spans(|s, start| self.find(x, at, &s, first && start, &mut best, &mut place))
            });
            for (&g, &at) in gy[row * width..][..width].iter().zip(&place) {
                if at != usize::MAX {
                    gx[at] += g;
                }
            }
        });
    }

    #[inline(always)]
    fn find<T: Real>(&self, x: &[T], at: usize, s: &Span, take: bool, best: &mut [T], place: &mut [usize]) {
        let (best, place) = (&mut best[s.y..][..s.count], &mut place[s.y..][..s.count]);
        for i in 0..s.count {
            let from = at + s.x + i * s.step;
            if take || x[from] > best[i] {
                (best[i], place[i]) = (x[from], from);
            }
        }
    }

    /// One over the divisor of each number of a row.
    fn divide<T: Real>(&self, divisor: Divisor, d: Window, h: Window, row: &mut [T]) {
        let size = |w: &Window| if divisor == Divisor::Padded { w.padded } else { w.to - w.from };
        if divisor == Divisor::One {
            return;
        }
        for (w, row) in self.axes[2].windows.iter().zip(row.chunks_exact_mut(self.inner)) {
            let count = T::from_f64((size(&d) * size(&h) * size(w)) as f64);
            row.iter_mut().for_each(|v| *v = *v / count);
        }
    }

    #[inline(always)]
    fn sum<T: Real>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
        let width = self.width();
        self.each_row(|row, d, h| {
            let y = &mut y[row * width..][..width];
            y.fill(T::ZERO);
            self.each_source(d, h, |at, _| {
                self.all_spans(|s, _| pairs(&mut y[s.y..][..s.count], &x[at + s.x..], s.step, |y, &x| *y += x));
            });
            self.divide(divisor, d, h, y);
        });
    }

    #[inline(always)]
    fn sum_backward<T: Real>(&self, gy: &[T], gx: &mut [T], divisor: Divisor, output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let width = self.width();
        scratch::with(width, |g: &mut [T]| {
            self.each_row(|row, d, h| {
                g.copy_from_slice(&gy[row * width..][..width]);
                self.divide(divisor, d, h, g);
                self.each_source(d, h, |at, _| {
                    self.all_spans(|s, _| {
                        let gx = &mut gx[at + s.x..];
                        (0..s.count).for_each(|i| gx[i * s.step] += g[s.y + i]);
                    });
                });
            });
        });
    }

    /// Whether windows are 2 x 2 with stride 2, without padding, in planes of one channel.
    fn pairs(&self) -> bool {
        let [d, h, w] = &self.axes;
        let whole = |a: &Axis| a.stride == 2 && a.windows.iter().all(|w| w.to - w.from == 2);
        self.inner == 1 && self.kernel == [1, 2, 2] && self.pad == [0; 3] && d.stride == 1 && whole(h) && whole(w)
    }

    #[inline(always)]
    fn max_pairs<T: Real>(&self, x: &[T], y: &mut [T]) {
        let (width, row) = (self.width(), self.axes[2].input);
        self.each_row(|r, d, h| {
            let at = (d.from * self.axes[1].input + h.from) * row;
            let (a, b) = (&x[at..][..2 * width], &x[at + row..][..2 * width]);
            let y = &mut y[r * width..][..width];
            for i in 0..width {
                let larger = |m: T, v: T| if v > m { v } else { m };
                y[i] = larger(larger(larger(a[2 * i], a[2 * i + 1]), b[2 * i]), b[2 * i + 1]);
            }
        });
    }

    #[inline(always)]
    fn max_pairs_backward<T: Real>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        let (width, row) = (self.width(), self.axes[2].input);
        if output == Output::Write && (row != 2 * width || self.axes[1].input != 2 * self.axes[1].windows.len()) {
            gx.fill(T::ZERO);
        }
        self.each_row(|r, d, h| {
            let at = (d.from * self.axes[1].input + h.from) * row;
            let (a, b) = (&x[at..][..2 * width], &x[at + row..][..2 * width]);
            let (ga, gb) = gx[at..at + row + 2 * width].split_at_mut(row);
            let (ga, gb, g) = (&mut ga[..2 * width], &mut gb[..2 * width], &gy[r * width..][..width]);
            match output {
                Output::Write => (0..width).for_each(|i| {
                    let v = share([a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]], g[i]);
                    (ga[2 * i], ga[2 * i + 1], gb[2 * i], gb[2 * i + 1]) = (v[0], v[1], v[2], v[3]);
                }),
                Output::Accumulate => (0..width).for_each(|i| {
                    let v = share([a[2 * i], a[2 * i + 1], b[2 * i], b[2 * i + 1]], g[i]);
                    (ga[2 * i], ga[2 * i + 1]) = (ga[2 * i] + v[0], ga[2 * i + 1] + v[1]);
                    (gb[2 * i], gb[2 * i + 1]) = (gb[2 * i] + v[2], gb[2 * i + 1] + v[3]);
                }),
            }
        });
    }
}

/// `g` at the first largest of four numbers, zeros at the others.
#[inline(always)]
fn share<T: Real>(v: [T; 4], g: T) -> [T; 4] {
    let larger = |m: T, v: T| if v > m { v } else { m };
    let one = v[1] > v[0];
    let m = larger(v[0], v[1]);
    let two = v[2] > m;
    let three = v[3] > larger(m, v[2]);
    let at = |here: bool| if here { g } else { T::ZERO };
    [at(!one & !two & !three), at(one & !two & !three), at(two & !three), at(three)]
}

/// Calls `f` with the numbers of `y` and every `step`-th of `x`.
#[inline(always)]
fn pairs<T: Real>(y: &mut [T], x: &[T], step: usize, mut f: impl FnMut(&mut T, &T)) {
    match step {
        1 => y.iter_mut().zip(x).for_each(|(y, x)| f(y, x)),
        2 => (0..y.len()).for_each(|i| f(&mut y[i], &x[2 * i])),
        _ => (0..y.len()).for_each(|i| f(&mut y[i], &x[step * i])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few different numbers, so that there are ties.
    fn steps(n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + seed * 31 + i / 5 * 13) % 11) as f64 - 5.0).collect()
    }

    /// Every output's input places, in order, and the number of padded positions.
    fn windows(p: &Pooling) -> Vec<(Vec<usize>, usize)> {
        let (out, mut all) = (p.output(), Vec::new());
        for e in 0..p.output_len() {
            let (c, o) = (e % p.inner, e / p.inner);
            let at = [o / out[2] / out[1] % out[0], o / out[2] % out[1], o % out[2]];
            let from: [isize; 3] = std::array::from_fn(|i| (at[i] * p.stride[i]) as isize - p.pad[i] as isize);
            let (mut places, mut padded) = (Vec::new(), 0);
            for k in 0..p.kernel.iter().product::<usize>() {
                let t = [k / p.kernel[2] / p.kernel[1], k / p.kernel[2] % p.kernel[1], k % p.kernel[2]];
                let q: [isize; 3] = std::array::from_fn(|i| from[i] + t[i] as isize);
                padded += (0..3).all(|i| q[i] < (p.input[i] + p.pad[i]) as isize) as usize;
                if (0..3).all(|i| (0..p.input[i] as isize).contains(&q[i])) {
                    let plane = o / (out[0] * out[1] * out[2]);
                    let row = (plane * p.input[0] + q[0] as usize) * p.input[1] + q[1] as usize;
                    places.push((row * p.input[2] + q[2] as usize) * p.inner + c);
                }
            }
            all.push((places, padded));
        }
        all
    }

    fn same<T: Real>(what: &str, p: &Pooling, got: &[T], want: &[f64]) {
        for (i, (g, w)) in got.iter().zip(want).enumerate() {
            let g = g.to_f64();
            let equal = g == *w || (g.is_nan() && w.is_nan()) || (g - w).abs() < 1e-5 * (1.0 + w.abs());
            assert!(equal, "{what} of {p:?} at {i}: {g} for {w}");
        }
    }

    fn first_largest(places: &[usize], x: &[f64]) -> Option<usize> {
        places.iter().copied().reduce(|m, v| if x[v] > x[m] { v } else { m })
    }

    fn check<T: Real>(p: &Pooling) {
        let (x, gy, old) = (steps(p.input_len(), 1), steps(p.output_len(), 2), steps(p.input_len(), 3));
        let of = |v: &[f64]| v.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>();
        let windows = windows(p);
        let mut y = vec![T::ONE; gy.len()];
        let largest = windows.iter().map(|(w, _)| first_largest(w, &x));
        let want: Vec<f64> = largest.clone().map(|i| i.map_or(f64::NEG_INFINITY, |i| x[i])).collect();
        p.max_forward(&of(&x), &mut y);
        same("max", p, &y, &want);
        for output in [Output::Write, Output::Accumulate] {
            let start = if output == Output::Write { vec![0.0; old.len()] } else { old.clone() };
            let (mut want, mut gx) = (start.clone(), of(&old));
            largest.clone().zip(&gy).for_each(|(i, g)| {
                if let Option::Some(i) = i {
                    want[i] += g
                }
            });
            p.max_backward(&of(&gy), &of(&x), &mut gx, output);
            same("gradient of max", p, &gx, &want);
            for divisor in [Divisor::One, Divisor::Padded, Divisor::Inside] {
                let (mut want, mut gx) = (start.clone(), of(&old));
                let mut sums = Vec::new();
                for ((places, padded), g) in windows.iter().zip(&gy) {
                    let by = [1, *padded, places.len()][divisor as usize] as f64;
                    places.iter().for_each(|&i| want[i] += g / by);
                    sums.push(places.iter().map(|&i| x[i]).sum::<f64>() / by);
                }
                p.sum_forward(&of(&x), &mut y, divisor);
                same("sum", p, &y, &sums);
                p.sum_backward(&of(&gy), &mut gx, divisor, output);
                same("gradient of sum", p, &gx, &want);
            }
        }
    }

    #[test]
    fn windows_of_all_kinds() {
        for border in [Border::Ignore, Border::Keep] {
            for (outer, inner) in [(3, 1), (2, 5), (0, 1)] {
                for (input, kernel, stride, pad) in [
                    ([1, 4, 6], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                    ([1, 5, 7], [1, 2, 2], [1, 2, 2], [0, 0, 0]),
                    ([1, 7, 9], [1, 3, 3], [1, 2, 2], [0, 1, 1]),
                    ([1, 7, 20], [1, 3, 2], [1, 1, 1], [0, 1, 1]),
                    ([3, 5, 6], [2, 3, 2], [2, 1, 3], [1, 0, 1]),
                    ([1, 2, 2], [1, 2, 2], [1, 2, 2], [0, 2, 2]),
                    ([1, 1, 11], [1, 1, 3], [1, 1, 4], [0, 0, 2]),
                    ([1, 3, 3], [1, 5, 5], [1, 5, 5], [0, 3, 3]),
                ] {
                    let p = Pooling { outer, inner, input, kernel, stride, pad, border };
                    check::<f32>(&p);
                    check::<f64>(&p);
                }
            }
        }
    }

    #[test]
    fn sizes_as_nnabla_has_them() {
        let size = |n, k, s, p, border| {
            Pooling {
                outer: 1,
                inner: 1,
                input: [1, 1, n],
                kernel: [1, 1, k],
                stride: [1, 1, s],
                pad: [0, 0, p],
                border,
            }
            .output()[2]
        };
        // (input, kernel, stride, pad) and the sizes without and with the cut windows, as NNabla 1.39 gave them.
        for (n, k, s, p, ignore, keep) in
            [(4, 2, 1, 0, 3, 4), (4, 2, 2, 2, 4, 3), (7, 3, 2, 1, 4, 4), (7, 2, 3, 2, 4, 3), (5, 2, 3, 0, 2, 2)]
        {
            assert_eq!((size(n, k, s, p, Border::Ignore), size(n, k, s, p, Border::Keep)), (ignore, keep));
        }
    }

    #[test]
    fn not_a_number_wins_only_where_it_is_first() {
        for (kernel, n) in [([1, 2, 2], 2), ([1, 2, 4], 1)] {
            let p = Pooling {
                outer: 1,
                inner: 1,
                input: [1, 2, 4],
                kernel,
                stride: kernel,
                pad: [0; 3],
                border: Border::Ignore,
            };
            let x = [f32::NAN, 1.0, 2.0, f32::NAN, 1.0, 3.0, 2.0, 5.0];
            let (mut y, mut gx) = (vec![0.0; n], [0.0; 8]);
            p.max_forward(&x, &mut y);
            assert!(y[0].is_nan() && (n == 1 || y[1] == 5.0));
            p.max_backward(&[1.0, 2.0][..n], &x, &mut gx, Output::Write);
            assert_eq!(gx, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, if n == 2 { 2.0 } else { 0.0 }]);
        }
    }
}
