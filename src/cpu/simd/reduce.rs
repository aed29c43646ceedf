//! Reductions and updates over slices. Each has one order of operations, whatever the instruction set: 32 lanes over a block of 1024
//! elements, the lanes folded in halves, the blocks added in pairs. So the bits are the same everywhere, and the error of a sum grows
//! with the logarithm of its length.

use crate::dtype::Real;

const LANES: usize = 32;
pub const BLOCK: usize = 1024;

/// Folds in 32 lanes; lane i takes every 32nd element from i on.
#[inline(always)]
fn lanes<T: Real>(start: T, a: &[T], b: &[T], step: impl Fn(T, T, T) -> T, join: impl Fn(T, T) -> T) -> T {
    let mut acc = [start; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            acc[i] = step(acc[i], a[i], b[i]);
        }
    }
    for (i, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
        acc[i] = step(acc[i], a, b);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            acc[i] = join(acc[i], acc[i + width]);
        }
        width /= 2;
    }
    acc[0]
}

/// Adds up numbers in pairs, as they come: equally long runs first.
pub struct Pairwise<T> {
    runs: [T; 64],
    count: usize,
}

impl<T: Real> Pairwise<T> {
    #[inline(always)]
    pub fn new() -> Self {
        Pairwise { runs: [T::ZERO; 64], count: 0 }
    }
    #[inline(always)]
    pub fn push(&mut self, v: T) {
        let (mut v, mut top) = (v, self.count.count_ones() as usize);
        for _ in 0..self.count.trailing_ones() {
            top -= 1;
            v = self.runs[top] + v;
        }
        self.runs[top] = v;
        self.count += 1;
    }
    #[inline(always)]
    pub fn total(&self) -> T {
        let runs = &self.runs[..self.count.count_ones() as usize];
        runs.iter().rev().copied().reduce(|acc, v| v + acc).unwrap_or(T::ZERO)
    }
}

#[inline(always)]
fn blocked<T: Real>(a: &[T], b: &[T], step: impl Fn(T, T, T) -> T) -> T {
    let mut sum = Pairwise::new();
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        sum.push(lanes(T::ZERO, a, b, &step, |a, b| a + b));
    }
    sum.total()
}

#[inline(always)]
pub fn sum<T: Real>(x: &[T]) -> T {
    blocked(x, x, |acc, x, _| acc + x)
}

#[inline(always)]
pub fn sum_abs<T: Real>(x: &[T]) -> T {
    blocked(x, x, |acc, x, _| acc + x.abs())
}

#[inline(always)]
pub fn sum_squares<T: Real>(x: &[T]) -> T {
    blocked(x, x, |acc, x, _| acc + x * x)
}

#[inline(always)]
pub fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    blocked(a, b, |acc, a, b| acc + a * b)
}

#[inline(always)]
pub fn max<T: Real>(x: &[T]) -> T {
    let larger = |a, b| if b > a { b } else { a };
    lanes(-T::INFINITY, x, x, |acc, x, _| larger(acc, x), larger)
}

#[inline(always)]
pub fn min<T: Real>(x: &[T]) -> T {
    let smaller = |a, b| if b < a { b } else { a };
    lanes(T::INFINITY, x, x, |acc, x, _| smaller(acc, x), smaller)
}

#[inline(always)]
pub fn axpy<T: Real>(y: &mut [T], a: T, x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += a * x);
}

#[inline(always)]
pub fn add_assign<T: Real>(y: &mut [T], x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += x);
}

#[inline(always)]
pub fn scale<T: Real>(y: &mut [T], a: T) {
    y.iter_mut().for_each(|y| *y = *y * a);
}

#[inline(always)]
pub fn add_scalar<T: Real>(y: &mut [T], a: T) {
    y.iter_mut().for_each(|y| *y += a);
}
