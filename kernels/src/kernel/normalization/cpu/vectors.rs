//! Sums over contiguous numbers, in four vectors side by side. All functions are to be called inside `enter`.

use crate::dtype::Real;
use crate::simd::lanes::Lanes;

/// A sum in the making: four vectors, and what did not fill one.
pub(super) struct VectorAccumulator<T, V> {
    lanes: [V; 4],
    rest: T,
}

impl<T: Real, V: Copy> VectorAccumulator<T, V> {
    #[inline(always)]
    pub(super) unsafe fn new<L: Lanes<T, V = V>>() -> Self {
        // SAFETY: the caller is inside `enter`.
        VectorAccumulator { lanes: [unsafe { L::splat(T::ZERO) }; 4], rest: T::ZERO }
    }

    #[inline(always)]
    pub(super) unsafe fn total<L: Lanes<T, V = V>>(&self) -> f64 {
        let (mut all, v) = ([T::ZERO; 16], &self.lanes);
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
        (all[0] + self.rest).to_f64()
    }
}

/// Where steps of four vectors end, and where single vectors do.
#[inline(always)]
fn ends<T: Real, L: Lanes<T>>(n: usize) -> (usize, usize) {
    (n - n % (4 * L::N), n - n % L::N)
}

/// Adds the numbers of x.
#[inline(always)]
pub(super) unsafe fn add<T: Real, L: Lanes<T>>(x: &[T], s: &mut VectorAccumulator<T, L::V>) {
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x.
    unsafe {
        let (p, one) = (x.as_ptr(), L::splat(T::ONE));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                s.lanes[k] = L::fma(L::load(p.add(i + k * L::N)), one, s.lanes[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            s.lanes[0] = L::fma(L::load(p.add(i)), one, s.lanes[0]);
        }
    }
    for &v in &x[ones..] {
        s.rest += v;
    }
}

/// Adds x - m and its square.
#[inline(always)]
pub(super) unsafe fn deviate<T: Real, L: Lanes<T>>(
    x: &[T],
    m: T,
    s: &mut VectorAccumulator<T, L::V>,
    q: &mut VectorAccumulator<T, L::V>,
) {
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x.
    unsafe {
        let (p, one, minus) = (x.as_ptr(), L::splat(T::ONE), L::splat(-m));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                let d = L::fma(L::load(p.add(i + k * L::N)), one, minus);
                s.lanes[k] = L::fma(d, one, s.lanes[k]);
                q.lanes[k] = L::fma(d, d, q.lanes[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            let d = L::fma(L::load(p.add(i)), one, minus);
            s.lanes[0] = L::fma(d, one, s.lanes[0]);
            q.lanes[0] = L::fma(d, d, q.lanes[0]);
        }
    }
    for &v in &x[ones..] {
        let d = v - m;
        s.rest += d;
        q.rest += d * d;
    }
}

/// Adds g and g * (x - m), for as many numbers of g as of x.
#[inline(always)]
pub(super) unsafe fn multiply<T: Real, L: Lanes<T>>(
    g: &[T],
    x: &[T],
    m: T,
    s: &mut VectorAccumulator<T, L::V>,
    q: &mut VectorAccumulator<T, L::V>,
) {
    let g = &g[..x.len()];
    let (fours, ones) = ends::<T, L>(x.len());
    // SAFETY: all vectors lie within x and g.
    unsafe {
        let (pg, px, one, minus) = (g.as_ptr(), x.as_ptr(), L::splat(T::ONE), L::splat(-m));
        for i in (0..fours).step_by(4 * L::N) {
            for k in 0..4 {
                let g = L::load(pg.add(i + k * L::N));
                let d = L::fma(L::load(px.add(i + k * L::N)), one, minus);
                s.lanes[k] = L::fma(g, one, s.lanes[k]);
                q.lanes[k] = L::fma(g, d, q.lanes[k]);
            }
        }
        for i in (fours..ones).step_by(L::N) {
            let g = L::load(pg.add(i));
            let d = L::fma(L::load(px.add(i)), one, minus);
            s.lanes[0] = L::fma(g, one, s.lanes[0]);
            q.lanes[0] = L::fma(g, d, q.lanes[0]);
        }
    }
    for (&g, &x) in g[ones..].iter().zip(&x[ones..]) {
        s.rest += g;
        q.rest += g * (x - m);
    }
}
