//! Reductions and updates over slices. Each has one order of operations, whatever the instruction set: 64 lanes over a block of 1024
//! elements, the lanes folded in halves, the blocks added in pairs. So the bits are the same everywhere, and the error of a sum grows
//! with the logarithm of its length.

use crate::dtype::Real;

use super::vector::Vector;

pub const LANES: usize = 64;
pub const BLOCK: usize = 1024;

/// One reduction: where it starts, how a lane takes one more element (of one array or two), how two lanes become one.
pub trait VectorReduction {
    const START: f64;
    fn step<V: Vector>(acc: V, a: V, b: V) -> V;
    fn join<V: Vector>(a: V, b: V) -> V;
    fn join_scalars<T: Real>(a: T, b: T) -> T;
}

/// Sums of a term.
macro_rules! sums {
    ($($name:ident($acc:ident, $a:ident, $b:ident) = $step:expr;)*) => {$(
        pub struct $name;
        impl VectorReduction for $name {
            const START: f64 = 0.0;
            #[inline(always)]
            fn step<V: Vector>($acc: V, $a: V, $b: V) -> V { $step }
            #[inline(always)]
            fn join<V: Vector>(a: V, b: V) -> V { a + b }
            #[inline(always)]
            fn join_scalars<T: Real>(a: T, b: T) -> T { a + b }
        }
    )*};
}
sums! {
    Sum(acc, a, _b) = acc + a;
    SumAbs(acc, a, _b) = acc + a.abs();
    SumSquares(acc, a, _b) = acc + a * a;
    Dot(acc, a, b) = acc + a * b;
}

/// Extremes: the order of the operands leaves out NaN.
macro_rules! extremes {
    ($($name:ident $start:expr, $method:ident $op:tt;)*) => {$(
        pub struct $name;
        impl VectorReduction for $name {
            const START: f64 = $start;
            #[inline(always)]
            fn step<V: Vector>(acc: V, a: V, _b: V) -> V { a.$method(acc) }
            #[inline(always)]
            fn join<V: Vector>(a: V, b: V) -> V { b.$method(a) }
            #[inline(always)]
            fn join_scalars<T: Real>(a: T, b: T) -> T { if b $op a { b } else { a } }
        }
    )*};
}
extremes! {
    Max f64::NEG_INFINITY, max >;
    Min f64::INFINITY, min <;
}

/// One step of all lanes: lane i takes element i.
///
/// # Safety
/// The pointers must be good for LANES elements.
#[inline(always)]
unsafe fn step<V: Vector, R: VectorReduction>(acc: &mut [V; LANES / 4], a: *const V::E, b: *const V::E) {
    for (k, acc) in acc[..LANES / V::N].iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (V::load(a.add(k * V::N)), V::load(b.add(k * V::N))) };
        *acc = R::step(*acc, a, b);
    }
}

/// As `step`, for the last `n < LANES` elements: the others are 0, which changes no sum.
///
/// # Safety
/// The pointers must be good for `n` elements.
#[inline(always)]
unsafe fn last_step<V: Vector, R: VectorReduction>(acc: &mut [V; LANES / 4], a: *const V::E, b: *const V::E, n: usize) {
    let mut k = 0;
    while k * V::N < n {
        let (first, some) = (k * V::N, V::N.min(n - k * V::N));
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (V::load_part(a.add(first), some), V::load_part(b.add(first), some)) };
        acc[k] = R::step(acc[k], a, b);
        k += 1;
    }
}

/// Folds in lanes: lane i takes every 64th element from i on. b is as long as a.
#[inline(always)]
fn lanes<V: Vector<E: Real>, R: VectorReduction>(a: &[V::E], b: &[V::E]) -> V::E {
    // Vectors have four lanes at least; with more, fewer of them are used.
    let mut acc = [V::splat(R::START); LANES / 4];
    let whole = a.len() - a.len() % LANES;
    for i in (0..whole).step_by(LANES) {
        // SAFETY: i + LANES <= whole.
        unsafe { step::<V, R>(&mut acc, a.as_ptr().add(i), b.as_ptr().add(i)) };
    }
    if whole < a.len() && R::START == 0.0 {
        // SAFETY: what is left of both.
        unsafe { last_step::<V, R>(&mut acc, a.as_ptr().add(whole), b.as_ptr().add(whole), a.len() - whole) };
    } else if whole < a.len() && a.len() >= V::N {
        let last = a.len() - V::N;
        for (k, acc) in acc[..LANES / V::N].iter_mut().enumerate() {
            if whole + k * V::N < a.len() {
                // An extreme may see elements twice.
                let at = (whole + k * V::N).min(last);
                // SAFETY: at + V::N <= a.len(), and b is as long.
                let (a, b) = unsafe { (V::load(a.as_ptr().add(at)), V::load(b.as_ptr().add(at))) };
                *acc = R::step(*acc, a, b);
            }
        }
    } else if whole < a.len() {
        let (a, b) = (padded::<V::E, R>(&a[whole..]), padded::<V::E, R>(&b[whole..]));
        // SAFETY: both have LANES elements.
        unsafe { step::<V, R>(&mut acc, a.as_ptr(), b.as_ptr()) };
    }
    fold::<V, R>(acc)
}

/// The last elements, followed by ones that change nothing.
#[inline(always)]
fn padded<T: Real, R: VectorReduction>(x: &[T]) -> [T; LANES] {
    let mut all = [T::from_f64(R::START); LANES];
    all[..x.len()].copy_from_slice(x);
    all
}

/// Lane i with lane i + 32, then with i + 16, and so on.
#[inline(always)]
fn fold<V: Vector<E: Real>, R: VectorReduction>(mut acc: [V; LANES / 4]) -> V::E {
    let mut count = LANES / V::N;
    while count > 1 {
        count /= 2;
        for k in 0..count {
            acc[k] = R::join(acc[k], acc[k + count]);
        }
    }
    let mut last = [V::E::ZERO; LANES];
    // SAFETY: a vector has at most LANES lanes.
    unsafe { acc[0].store(last.as_mut_ptr()) };
    let mut width = V::N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            last[i] = R::join_scalars(last[i], last[i + width]);
        }
    }
    last[0]
}

/// A sum in blocks.
#[inline(always)]
pub fn blocked<V: Vector<E: Real>, R: VectorReduction>(a: &[V::E], b: &[V::E]) -> V::E {
    if a.len() <= BLOCK {
        return lanes::<V, R>(a, b);
    }
    let mut sum = Pairwise::new();
    let mut i = 0;
    while i < a.len() {
        let end = (i + BLOCK).min(a.len());
        sum.push(lanes::<V, R>(&a[i..end], &b[i..end]));
        i = end;
    }
    sum.total()
}

/// An extreme, for which the order does not matter.
#[inline(always)]
pub fn extreme<V: Vector<E: Real>, R: VectorReduction>(x: &[V::E]) -> V::E {
    lanes::<V, R>(x, x)
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
