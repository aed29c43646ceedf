//! Sums over contiguous numbers, in four vectors side by side. All functions are to be called inside `enter`.

// Loops run over vectors side by side.
#![allow(clippy::needless_range_loop)]

use crate::dtype::Real;
use crate::simd::lanes::{Lanes, TransposeBlock};

/// Lanes of a vector at most.
pub(super) const SIDE: usize = 16;

/// A sum in the making: four vectors.
pub(super) struct VectorAccumulator<V>([V; 4]);

impl<V: Copy> VectorAccumulator<V> {
    #[inline(always)]
    pub unsafe fn new<T: Real, L: Lanes<T, V = V>>() -> Self {
        // SAFETY: the caller is inside `enter`.
        VectorAccumulator([unsafe { L::splat(T::ZERO) }; 4])
    }

    /// The sums of the lanes.
    #[inline(always)]
    pub unsafe fn lanes<T: Real, L: Lanes<T, V = V>>(&self) -> V {
        let v = &self.0;
        // SAFETY: the caller is inside `enter`.
        unsafe {
            let one = L::splat(T::ONE);
            L::fma(L::fma(v[0], one, v[1]), one, L::fma(v[2], one, v[3]))
        }
    }

    #[inline(always)]
    pub unsafe fn total<T: Real, L: Lanes<T, V = V>>(&self) -> T {
        let mut all = [T::ZERO; 16];
        // SAFETY: the caller is inside `enter`; a vector has 16 lanes at most.
        unsafe { L::store(all.as_mut_ptr(), self.lanes::<T, L>()) };
        for width in [8, 4, 2, 1] {
            for i in 0..width {
                all[i] += all[i + width];
            }
        }
        all[0]
    }
}

/// The sums of the lanes of as many rows as a vector has numbers, which are turned, and added up together.
#[inline(always)]
pub(super) unsafe fn totals<T: Real, L: Lanes<T>>(rows: &[T; SIDE * SIDE]) -> [T; SIDE] {
    let (mut turned, mut sums) = ([T::ZERO; SIDE * SIDE], [T::ZERO; SIDE]);
    let (src, dst) = (rows.as_ptr(), turned.as_mut_ptr());
    // SAFETY: the caller is inside `enter`; both arrays have room for as many vectors.
    unsafe {
        L::transpose(TransposeBlock { src, src_stride: L::N, rows: L::N, cols: L::N, dst, dst_stride: L::N }, false);
        let (one, mut lanes) = (L::splat(T::ONE), [L::splat(T::ZERO); SIDE]);
        for k in 0..L::N {
            lanes[k] = L::load(dst.add(k * L::N));
        }
        // In halves, which loses less than a chain.
        let mut width = L::N;
        while width > 1 {
            width /= 2;
            for k in 0..width {
                lanes[k] = L::fma(lanes[k], one, lanes[k + width]);
            }
        }
        L::store(sums.as_mut_ptr(), lanes[0]);
    }
    sums
}

/// Where steps of four vectors end, and where single vectors do.
#[inline(always)]
fn ends<T: Real, L: Lanes<T>>(n: usize) -> (usize, usize) {
    (n - n % (4 * L::N), n - n % L::N)
}

/// Adds the numbers of x.
#[inline(always)]
pub(super) unsafe fn add<T: Real, L: Lanes<T>>(x: &[T], s: &mut VectorAccumulator<L::V>) {
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x.
    unsafe {
        let (p, one) = (x.as_ptr(), L::splat(T::ONE));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                s.0[k] = L::fma(L::load(p.add(i + k * L::N)), one, s.0[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            s.0[0] = L::fma(L::load(p.add(i)), one, s.0[0]);
        }
        if ones < x.len() {
            s.0[1] = L::fma(L::load_part(p.add(ones), x.len() - ones), one, s.0[1]);
        }
    }
}

/// Adds the products of the numbers of a and as many of b.
#[inline(always)]
pub(super) unsafe fn dot<T: Real, L: Lanes<T>>(a: &[T], b: &[T], s: &mut VectorAccumulator<L::V>) {
    let (n, b) = (a.len(), &b[..a.len()]);
    let (fours, ones) = ends::<T, L>(n);
    // SAFETY: all vectors lie within a and b.
    unsafe {
        let (pa, pb) = (a.as_ptr(), b.as_ptr());
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                s.0[k] = L::fma(L::load(pa.add(i + k * L::N)), L::load(pb.add(i + k * L::N)), s.0[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            s.0[0] = L::fma(L::load(pa.add(i)), L::load(pb.add(i)), s.0[0]);
        }
        if ones < n {
            let m = L::mask(0, n - ones);
            s.0[1] = L::fma(L::load_masked(pa.add(ones), m), L::load_masked(pb.add(ones), m), s.0[1]);
        }
    }
}

/// Adds x - m and its square.
#[inline(always)]
pub(super) unsafe fn deviate<T: Real, L: Lanes<T>>(
    x: &[T],
    m: T,
    s: &mut VectorAccumulator<L::V>,
    q: &mut VectorAccumulator<L::V>,
) {
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x.
    unsafe {
        let (p, one, minus) = (x.as_ptr(), L::splat(T::ONE), L::splat(-m));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                let d = L::fma(L::load(p.add(i + k * L::N)), one, minus);
                s.0[k] = L::fma(d, one, s.0[k]);
                q.0[k] = L::fma(d, d, q.0[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            let d = L::fma(L::load(p.add(i)), one, minus);
            s.0[0] = L::fma(d, one, s.0[0]);
            q.0[0] = L::fma(d, d, q.0[0]);
        }
        if ones < x.len() {
            // Nothing in the lanes behind the last number.
            let (mask, minus) = (L::mask(0, x.len() - ones), [-m; 16]);
            let d = L::fma(L::load_masked(p.add(ones), mask), one, L::load_masked(minus.as_ptr(), mask));
            s.0[1] = L::fma(d, one, s.0[1]);
            q.0[1] = L::fma(d, d, q.0[1]);
        }
    }
}

/// Adds g and g * (x - m), for as many numbers of g as of x; with `by`, g times that.
#[inline(always)]
pub(super) unsafe fn multiply<T: Real, L: Lanes<T>>(
    g: &[T],
    by: Option<&[T]>,
    x: &[T],
    m: T,
    s: &mut VectorAccumulator<L::V>,
    q: &mut VectorAccumulator<L::V>,
) {
    let (g, by) = (&g[..x.len()], by.map(|by| by[..x.len()].as_ptr()));
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x, g and by.
    unsafe {
        let (pg, px, one, minus) = (g.as_ptr(), x.as_ptr(), L::splat(T::ONE), L::splat(-m));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                let g = times::<T, L>(L::load(pg.add(i + k * L::N)), by, i + k * L::N);
                let d = L::fma(L::load(px.add(i + k * L::N)), one, minus);
                s.0[k] = L::fma(g, one, s.0[k]);
                q.0[k] = L::fma(g, d, q.0[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            let g = times::<T, L>(L::load(pg.add(i)), by, i);
            let d = L::fma(L::load(px.add(i)), one, minus);
            s.0[0] = L::fma(g, one, s.0[0]);
            q.0[0] = L::fma(g, d, q.0[0]);
        }
        if ones < x.len() {
            // Zeros of g in the lanes behind the last number.
            let mask = L::mask(0, x.len() - ones);
            let g = times_masked::<T, L>(L::load_masked(pg.add(ones), mask), by, ones, mask);
            let d = L::fma(L::load_masked(px.add(ones), mask), one, minus);
            s.0[1] = L::fma(g, one, s.0[1]);
            q.0[1] = L::fma(g, d, q.0[1]);
        }
    }
}

/// `g * by[at..]`, or g alone.
#[inline(always)]
unsafe fn times<T: Real, L: Lanes<T>>(g: L::V, by: Option<*const T>, at: usize) -> L::V {
    match by {
        // SAFETY: the caller is inside `enter`, and has a vector there.
        Some(by) => unsafe { L::fma(g, L::load(by.add(at)), L::splat(T::ZERO)) },
        None => g,
    }
}

/// As `times`, of the mask's numbers.
#[inline(always)]
unsafe fn times_masked<T: Real, L: Lanes<T>>(g: L::V, by: Option<*const T>, at: usize, m: L::M) -> L::V {
    match by {
        // SAFETY: as in `times`.
        Some(by) => unsafe { L::fma(g, L::load_masked(by.add(at), m), L::splat(T::ZERO)) },
        None => g,
    }
}
