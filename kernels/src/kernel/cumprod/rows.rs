//! The gradient of 16 lines beside each other, so that vectors go across them. Along the last axis blocks of the lines are
//! turned on their way in and out.

use super::CumProd;
use crate::array::scratch::Scratch;
use crate::kernel::axis::Axis;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_or_add};

/// Lines beside each other, and elements of a block.
pub(super) const SIDE: usize = 16;

type LineBlock<T> = [[T; SIDE]; SIDE];

pub(super) fn backward<T: SimdReal>(c: &CumProd, x: &[T], gy: &[T], gx: SendPtr<T>, add: bool) {
    if !x.is_empty() {
        dispatch(LineRows { c, x, gy, gx, add });
    }
}

/// The gradients of all lines.
#[derive(Clone, Copy)]
struct LineRows<'a, T> {
    c: &'a CumProd,
    x: &'a [T],
    gy: &'a [T],
    gx: SendPtr<T>,
    add: bool,
}

impl<T: SimdReal> Choose<T> for LineRows<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let Axis { outer, n, inner } = self.c.at;
        // Lines that are neighbours: all of them, or those of one place in the axes before.
        let (neighbours, across) = if inner == 1 { (outer, 1) } else { (inner, outer) };
        let groups = neighbours.div_ceil(SIDE);
        tasks::share(across * groups, self.x.len(), |task| {
            let line = task % groups * SIDE;
            let first = if inner == 1 { line * n } else { task / groups * n * inner + line };
            // SAFETY: L is what the machine has; each line is one task's.
            unsafe { L::enter(LineGroup { all: self, first, lines: SIDE.min(neighbours - line) }) };
        });
    }
}

/// Some lines, of which the first begins at number `first`.
struct LineGroup<'a, T> {
    all: LineRows<'a, T>,
    first: usize,
    lines: usize,
}

impl<T: SimdReal> LineGroup<'_, T> {
    /// Where the block is that has the elements number `k` of the work and some more, and how many.
    #[inline(always)]
    fn block(&self, k: usize) -> (usize, usize) {
        let Axis { n, inner, .. } = self.all.c.at;
        let len = SIDE.min(n - k);
        (self.first + if self.all.c.reverse { n - k - len } else { k } * inner, len)
    }

    /// Where in a block of `len` elements number `j` of the work is.
    #[inline(always)]
    fn place(&self, j: usize, len: usize) -> usize {
        if self.all.c.reverse { len - 1 - j } else { j }
    }

    /// The lines' elements from `at` on, side by side.
    ///
    /// # Safety
    /// Inside `enter` of L; so many elements are there.
    #[inline(always)]
    unsafe fn load<L: Lanes<T>>(&self, x: &[T], (at, len): (usize, usize), to: &mut LineBlock<T>) {
        let Axis { inner, .. } = self.all.c.at;
        if inner > 1 {
            for j in 0..len {
                let x = &x[at + j * inner..][..self.lines];
                match x.first_chunk::<SIDE>() {
                    Some(x) => to[j] = *x,
                    None => to[j][..x.len()].copy_from_slice(x),
                }
            }
            return;
        }
        let (src, dst) = (x[at..].as_ptr(), to.as_mut_ptr().cast());
        let all =
            TransposeBlock { src, src_stride: self.all.c.at.n, rows: self.lines, cols: len, dst, dst_stride: SIDE };
        // SAFETY: the caller's promise.
        unsafe { transpose_or_add::<T, L>(all, false) }
    }

    /// The way back, into the gradient.
    ///
    /// # Safety
    /// As for `load`.
    #[inline(always)]
    unsafe fn store<L: Lanes<T>>(&self, from: &LineBlock<T>, (at, len): (usize, usize)) {
        let Axis { inner, .. } = self.all.c.at;
        if inner > 1 {
            for (j, from) in from.iter().enumerate().take(len) {
                // SAFETY: the caller's promise.
                let to = unsafe { self.all.gx.slice(at + j * inner, self.lines) };
                match self.all.add {
                    true => to.iter_mut().zip(from).for_each(|(to, &v)| *to += v),
                    false => to.copy_from_slice(&from[..self.lines]),
                }
            }
            return;
        }
        let (src, dst) = (from.as_ptr().cast(), self.all.gx.add(at).0);
        let all =
            TransposeBlock { src, src_stride: SIDE, rows: len, cols: self.lines, dst, dst_stride: self.all.c.at.n };
        // SAFETY: the caller's promise.
        unsafe { transpose_or_add::<T, L>(all, self.all.add) }
    }
}

impl<T: SimdReal> WithLanes<T> for LineGroup<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let LineRows { c, x: xs, gy: gys, .. } = self.all;
        let none = [[T::ZERO; SIDE]; SIDE];
        let (mut x, mut gy, mut to) = (none, none, none);
        // For each element the product of those before it.
        let mut before = Scratch::filled(c.at.n, [T::ZERO; SIDE]);
        let mut product = [1.0; SIDE];
        for k in (0..c.at.n).step_by(SIDE) {
            let at = self.block(k);
            // SAFETY: the caller's promise.
            unsafe { self.load::<L>(xs, at, &mut x) };
            for (j, before) in before[k..k + at.1].iter_mut().enumerate() {
                *before = narrow(product);
                product = zip(product, wide(x[self.place(j, at.1)]), |p, x| p * x);
            }
        }
        // The element behind, its gradient, and the sum there.
        let (mut x_behind, mut gy_behind, mut sum) = ([0.0; SIDE], [0.0; SIDE], [0.0; SIDE]);
        for k in (0..c.at.n).step_by(SIDE).rev() {
            let at = self.block(k);
            // SAFETY: the caller's promise.
            unsafe {
                self.load::<L>(xs, at, &mut x);
                self.load::<L>(gys, at, &mut gy);
            }
            for (j, before) in before[k..k + at.1].iter().enumerate().rev() {
                let place = self.place(j, at.1);
                let own = wide(gy[place]);
                let added = if c.exclusive { gy_behind } else { own };
                sum = zip(zip(x_behind, sum, |x, s| x * s), added, |s, g| s + g);
                to[place] = narrow(zip(wide(*before), sum, |b, s| b * s));
                (x_behind, gy_behind) = (wide(x[place]), own);
            }
            // SAFETY: the caller's promise.
            unsafe { self.store::<L>(&to, at) };
        }
    }
}

#[inline(always)]
fn wide<T: SimdReal>(x: [T; SIDE]) -> [f64; SIDE] {
    let mut y = [0.0; SIDE];
    for g in 0..SIDE {
        y[g] = x[g].to_f64();
    }
    y
}

#[inline(always)]
fn narrow<T: SimdReal>(x: [f64; SIDE]) -> [T; SIDE] {
    let mut y = [T::ZERO; SIDE];
    for g in 0..SIDE {
        y[g] = T::from_f64(x[g]);
    }
    y
}

#[inline(always)]
fn zip(a: [f64; SIDE], b: [f64; SIDE], f: impl Fn(f64, f64) -> f64) -> [f64; SIDE] {
    let mut y = [0.0; SIDE];
    for g in 0..SIDE {
        y[g] = f(a[g], b[g]);
    }
    y
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::array::Output;

    unit_test!(speed_of_cumulative_products, ignore = "prints a measurement");
    /// `cargo test --release --features emulate -- --ignored --nocapture speed_of_cumulative_products`
    fn speed_of_cumulative_products() {
        let n = 1000;
        let (x, gy, mut gx) = (vec![1.001f32; n * n], vec![1f32; n * n], vec![0f32; n * n]);
        let c = CumProd::new(&[n, n].into(), 1, false, false);
        let mut gradient = || super::super::cpu::backward(&c, &x, &gy, &mut gx, Output::Accumulate);
        let best = (0..50).map(|_| (std::time::Instant::now(), gradient()).0.elapsed()).min();
        println!("{:.3} ns an element", best.unwrap().as_secs_f64() * 1e9 / (n * n) as f64);
    }
}
