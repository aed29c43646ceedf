//! The loops over copied planes: what is made of all taps, and the sums for each of them.

use crate::dtype::Real;
use crate::simd::lanes::{Lanes, WithLanes};

/// Vectors of results that are made together.
pub(super) const TOGETHER: usize = 4;

/// Elements 0, 2, .. of `from`: pairs, since the compiler has vectors for these.
pub(super) fn every_second<T: Copy>(to: &mut [T], from: &[T]) {
    let (pairs, last) = from.as_chunks::<2>();
    to.iter_mut().zip(pairs).for_each(|(t, s)| *t = s[0]);
    if let (Some(t), Some(&s)) = (to.get_mut(pairs.len()), last.first()) {
        *t = s;
    }
}

/// The other way.
pub(super) fn to_every_second<T: Copy>(to: &mut [T], from: &[T]) {
    let (pairs, last) = to.as_chunks_mut::<2>();
    let n = pairs.len();
    pairs.iter_mut().zip(from).for_each(|(t, &s)| *t = [s, t[1]]);
    if let (Some(t), Some(&s)) = (last.first_mut(), from.get(n)) {
        *t = s;
    }
}

/// Rows of `width` elements with zeros between them, `pitch` elements apart, and behind them.
#[inline(always)]
pub(super) fn spread<T: Real>(from: &[T], width: usize, pitch: usize, to: &mut [T]) {
    let used = from.len() / width * pitch;
    for (from, to) in from.chunks_exact(width).zip(to.chunks_exact_mut(pitch)) {
        to[..width].copy_from_slice(from);
        to[width..].fill(T::ZERO);
    }
    to[used..].fill(T::ZERO);
}

/// `sums[q]`, for q up to `n` and a few more, is `start`, or what is there if `ADD`, and the sum over the taps of `w` times the number at
/// its distance. `from` has `SLACK` elements more than the taps reach, `sums` more than `n`.
pub(super) struct PlaneCorrelation<'a, T, const ADD: bool> {
    pub(super) from: &'a [T],
    pub(super) at: &'a [usize],
    pub(super) w: &'a [T],
    pub(super) start: T,
    pub(super) sums: &'a mut [T],
    pub(super) n: usize,
}

impl<T: Real, const ADD: bool> WithLanes<T> for PlaneCorrelation<'_, T, ADD> {
    #[allow(clippy::needless_range_loop)] // as in `some_products`
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        debug_assert!(self.at.len() == self.w.len() && self.sums.len() >= self.n + TOGETHER * L::N - 1);
        let (from, sums, w, taps) = (self.from.as_ptr(), self.sums.as_mut_ptr(), self.w.as_ptr(), self.at.len());
        let at = self.at.as_ptr();
        let mut q = 0;
        while q < self.n {
            // SAFETY: the caller's promise.
            unsafe {
                let to = sums.add(q);
                let mut v = [L::splat(self.start); TOGETHER];
                if ADD {
                    for i in 0..TOGETHER {
                        v[i] = L::load(to.add(i * L::N));
                    }
                }
                for k in 0..taps {
                    let (x, w) = (from.add(*at.add(k) + q), L::splat(*w.add(k)));
                    for i in 0..TOGETHER {
                        v[i] = L::fma(L::load(x.add(i * L::N)), w, v[i]);
                    }
                }
                for i in 0..TOGETHER {
                    L::store(to.add(i * L::N), v[i]);
                }
            }
            q += TOGETHER * L::N;
        }
    }
}

/// Adds to the vector of sums of each tap the products of what it reads and `y`. `from` has `SLACK` elements more than the taps reach, `y`
/// more than `n`, zeros; `sums` has a vector for each tap.
pub(super) struct Products<'a, T> {
    pub(super) from: &'a [T],
    pub(super) at: &'a [usize],
    pub(super) y: &'a [T],
    pub(super) n: usize,
    pub(super) sums: &'a mut [T],
}

impl<T: Real> WithLanes<T> for Products<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let Products { from, at, y, n, sums } = self;
        assert!(sums.len() >= at.len() * L::N, "a vector of sums for each tap");
        let (nine, rest) = at.as_chunks::<9>();
        let (three, one) = rest.as_chunks::<3>();
        let mut sums = sums.as_mut_ptr();
        // SAFETY: the caller's promise.
        unsafe {
            for at in nine {
                some_products::<T, L, 9>(from, at, y, n, sums);
                sums = sums.add(9 * L::N);
            }
            for at in three {
                some_products::<T, L, 3>(from, at, y, n, sums);
                sums = sums.add(3 * L::N);
            }
            for &at in one {
                some_products::<T, L, 1>(from, &[at], y, n, sums);
                sums = sums.add(L::N);
            }
        }
    }
}

/// # Safety
/// As [`Products`].
// Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
unsafe fn some_products<T: Real, L: Lanes<T>, const K: usize>(
    from: &[T],
    at: &[usize; K],
    y: &[T],
    n: usize,
    sums: *mut T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (from, y) = (from.as_ptr(), y.as_ptr());
        let mut v = [L::splat(T::ZERO); K];
        for k in 0..K {
            v[k] = L::load(sums.add(k * L::N));
        }
        let mut q = 0;
        while q < n {
            let g = L::load(y.add(q));
            for k in 0..K {
                v[k] = L::fma(L::load(from.add(at[k] + q)), g, v[k]);
            }
            q += L::N;
        }
        for k in 0..K {
            L::store(sums.add(k * L::N), v[k]);
        }
    }
}
