//! Sums over contiguous numbers, in four vectors side by side. All functions are to be called inside `enter`.

use crate::cpu::conv::lanes::Lanes;
use crate::dtype::Real;

/// Lanes of four vectors, at most.
const MOST: usize = 64;

/// The sum of all lanes.
#[inline(always)]
unsafe fn fold<T: Real, L: Lanes<T>>(v: [L::V; 4]) -> T {
    let mut all = [T::ZERO; 16];
    // SAFETY: the caller is inside `enter`; a vector has 16 lanes at most.
    unsafe {
        let one = L::splat(T::ONE);
        let sum = L::fma(L::fma(v[0], one, v[1]), one, L::fma(v[2], one, v[3]));
        L::store(all.as_mut_ptr(), sum);
    }
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            all[i] += all[i + width];
        }
    }
    all[0]
}

/// The last numbers, followed by `fill`.
#[inline(always)]
fn padded<T: Real>(x: &[T], fill: T) -> [T; MOST] {
    let mut all = [fill; MOST];
    all[..x.len()].copy_from_slice(x);
    all
}

/// How many of `n` numbers fill steps of four vectors.
#[inline(always)]
fn whole<T: Real, L: Lanes<T>>(n: usize) -> usize {
    n - n % (4 * L::N)
}

/// The sum of x.
#[inline(always)]
pub(super) unsafe fn sum<T: Real, L: Lanes<T>>(x: &[T]) -> T {
    let whole = whole::<T, L>(x.len());
    let rest = padded(&x[whole..], T::ZERO);
    // SAFETY: every step reads four vectors of x or of its padded rest.
    unsafe {
        let mut s = [L::splat(T::ZERO); 4];
        for i in (0..whole).step_by(4 * L::N) {
            add::<T, L>(x.as_ptr().add(i), &mut s);
        }
        if whole < x.len() {
            add::<T, L>(rest.as_ptr(), &mut s);
        }
        fold::<T, L>(s)
    }
}

#[inline(always)]
unsafe fn add<T: Real, L: Lanes<T>>(p: *const T, s: &mut [L::V; 4]) {
    for (k, s) in s.iter_mut().enumerate() {
        // SAFETY: the caller has four vectors there.
        unsafe { *s = L::fma(L::load(p.add(k * L::N)), L::splat(T::ONE), *s) }
    }
}

/// The sums of x - m and of its square.
#[inline(always)]
pub(super) unsafe fn deviations<T: Real, L: Lanes<T>>(x: &[T], m: T) -> (T, T) {
    let whole = whole::<T, L>(x.len());
    let rest = padded(&x[whole..], m);
    // SAFETY: as in `sum`.
    unsafe {
        let (mut s, mut q) = ([L::splat(T::ZERO); 4], [L::splat(T::ZERO); 4]);
        for i in (0..whole).step_by(4 * L::N) {
            deviate::<T, L>(x.as_ptr().add(i), m, &mut s, &mut q);
        }
        if whole < x.len() {
            deviate::<T, L>(rest.as_ptr(), m, &mut s, &mut q);
        }
        (fold::<T, L>(s), fold::<T, L>(q))
    }
}

#[inline(always)]
unsafe fn deviate<T: Real, L: Lanes<T>>(p: *const T, m: T, s: &mut [L::V; 4], q: &mut [L::V; 4]) {
    for k in 0..4 {
        // SAFETY: the caller has four vectors there.
        unsafe {
            let d = L::fma(L::load(p.add(k * L::N)), L::splat(T::ONE), L::splat(-m));
            s[k] = L::fma(d, L::splat(T::ONE), s[k]);
            q[k] = L::fma(d, d, q[k]);
        }
    }
}

/// The sums of g and of g * (x - m).
#[inline(always)]
pub(super) unsafe fn products<T: Real, L: Lanes<T>>(g: &[T], x: &[T], m: T) -> (T, T) {
    let whole = whole::<T, L>(x.len());
    let (rest_g, rest_x) = (padded(&g[whole..], T::ZERO), padded(&x[whole..], m));
    // SAFETY: as in `sum`.
    unsafe {
        let (mut s, mut q) = ([L::splat(T::ZERO); 4], [L::splat(T::ZERO); 4]);
        for i in (0..whole).step_by(4 * L::N) {
            multiply::<T, L>(g.as_ptr().add(i), x.as_ptr().add(i), m, &mut s, &mut q);
        }
        if whole < x.len() {
            multiply::<T, L>(rest_g.as_ptr(), rest_x.as_ptr(), m, &mut s, &mut q);
        }
        (fold::<T, L>(s), fold::<T, L>(q))
    }
}

#[inline(always)]
unsafe fn multiply<T: Real, L: Lanes<T>>(g: *const T, x: *const T, m: T, s: &mut [L::V; 4], q: &mut [L::V; 4]) {
    for k in 0..4 {
        // SAFETY: the caller has four vectors in both places.
        unsafe {
            let g = L::load(g.add(k * L::N));
            let d = L::fma(L::load(x.add(k * L::N)), L::splat(T::ONE), L::splat(-m));
            s[k] = L::fma(g, L::splat(T::ONE), s[k]);
            q[k] = L::fma(g, d, q[k]);
        }
    }
}
