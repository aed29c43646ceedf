//! Pooling of one plane: an output row is folded from shifted input rows.

use super::{Axis, Divisor, Task, Window};
use crate::cpu::conv::scratch;
use crate::cpu::gemm::Output;
use crate::dtype::Real;

/// What is the same for every plane.
pub(super) struct Planes {
    pub axes: [Axis; 3],
    pub inner: usize,
    pub kernel: [usize; 3],
    pub pad: [usize; 3],
    pub task: Task,
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
    pub fn max<T: Real>(&self, x: &[T], y: &mut [T]) {
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
    pub fn max_backward<T: Real>(&self, gy: &[T], x: &[T], gx: &mut [T], output: Output) {
        if self.pairs() {
            return self.max_pairs_backward(gy, x, gx, output);
        }
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let width = self.width();
        // Largest numbers, and after them the places where they were found.
        assert!(x.len() <= u32::MAX as usize, "a plane of more than 2^32 numbers");
        let (mut best, mut place) = (vec![T::ZERO; width], vec![NOWHERE; width]);
        self.each_row(|row, d, h| {
            place.fill(NOWHERE);
            self.each_source(d, h, |at, first| {
                self.all_spans(|s, start| find(x, at + s.x, &s, first && start, &mut best, &mut place))
            });
            for (&g, &at) in gy[row * width..][..width].iter().zip(&place) {
                if at != NOWHERE {
                    gx[at as usize] += g;
                }
            }
        });
    }

    /// Divides each number of a row.
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
    pub fn sum<T: Real>(&self, x: &[T], y: &mut [T], divisor: Divisor) {
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
    pub fn sum_backward<T: Real>(&self, gy: &[T], gx: &mut [T], divisor: Divisor, output: Output) {
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
    pub fn pairs(&self) -> bool {
        let [d, h, w] = &self.axes;
        let whole = |a: &Axis| a.stride == 2 && a.windows.iter().all(|w| w.to - w.from == 2);
        self.inner == 1 && self.kernel == [1, 2, 2] && self.pad == [0; 3] && d.stride == 1 && whole(h) && whole(w)
    }

    #[inline(always)]
    pub fn max_pairs<T: Real>(&self, x: &[T], y: &mut [T]) {
        let (width, row) = (self.width(), self.axes[2].input);
        self.each_row(|r, d, h| {
            let at = (d.from * self.axes[1].input + h.from) * row;
            let (a, b) = (&x[at..][..2 * width], &x[at + row..][..2 * width]);
            let y = &mut y[r * width..][..width];
            let larger = |m: T, v: T| if v > m { v } else { m };
            for ((a, b), y) in a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0).zip(y) {
                *y = larger(larger(larger(a[0], a[1]), b[0]), b[1]);
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
            let g = &gy[r * width..][..width];
            let x = a.as_chunks::<2>().0.iter().zip(b.as_chunks::<2>().0);
            let to = ga[..2 * width].as_chunks_mut::<2>().0.iter_mut().zip(gb[..2 * width].as_chunks_mut::<2>().0);
            let all = x.zip(to).zip(g);
            match output {
                Output::Write => all.for_each(|(((a, b), (ga, gb)), &g)| {
                    let v = share([a[0], a[1], b[0], b[1]], g);
                    (*ga, *gb) = ([v[0], v[1]], [v[2], v[3]]);
                }),
                Output::Accumulate => all.for_each(|(((a, b), (ga, gb)), &g)| {
                    let v = share([a[0], a[1], b[0], b[1]], g);
                    (*ga, *gb) = ([ga[0] + v[0], ga[1] + v[1]], [gb[0] + v[2], gb[1] + v[3]]);
                }),
            }
        });
    }
}

/// No place: the window sees only padding.
const NOWHERE: u32 = u32::MAX;

/// Notes the numbers of a span that are larger than the best ones so far, or all of them with `take`.
#[inline(always)]
fn find<T: Real>(x: &[T], from: usize, s: &Span, take: bool, best: &mut [T], place: &mut [u32]) {
    let old = best[s.y..][..s.count].iter_mut().zip(&mut place[s.y..][..s.count]);
    let mut note = |(i, ((best, place), &v)): (usize, ((&mut T, &mut u32), &T))| {
        let larger = take | (v > *best);
        *best = if larger { v } else { *best };
        *place = if larger { (from + i * s.step) as u32 } else { *place };
    };
    match s.step {
        1 => old.zip(&x[from..][..s.count]).enumerate().for_each(&mut note),
        2 => {
            old.zip(x[from..].as_chunks::<2>().0.iter().map(|c| &c[0]).chain(x.last())).enumerate().for_each(&mut note)
        }
        step => old.zip(x[from..].iter().step_by(step)).enumerate().for_each(&mut note),
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
