//! Elementary functions on vectors of f32, as polynomials. The bounds in ULP are those the tests hold; coefficients are our own minimax fits.

use super::vector::{F32Vector, Vector};

const LN2_HIGH: f64 = 0.693145751953125; // few bits, so that its product with an exponent is exact
const LN2_LOW: f64 = 1.428606765330187e-6;

/// `x = n ln 2 + r` with |r| <= ln(2) / 2; for |x| < 200.
#[inline(always)]
fn reduce_exp<V: Vector>(x: V) -> (V, V) {
    let n = (x * V::splat(std::f64::consts::LOG2_E)).rint();
    let r = n.fma(V::splat(-LN2_HIGH), x);
    (n, n.fma(V::splat(-LN2_LOW), r))
}

/// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2.
#[inline(always)]
fn exp_tail<V: Vector>(r: V) -> V {
    r.poly(&[0.5, 0.1666653, 0.0416664, 0.008367876, 0.0013940942])
}

/// e^x, 1 ULP.
#[inline(always)]
pub fn exp<V: F32Vector>(x: V) -> V {
    // Beyond these it is inf or 0 all the same. NaN comes through both.
    let x = V::splat(-105.0).max(V::splat(90.0).min(x));
    let (n, r) = reduce_exp(x);
    let p = exp_tail(r).fma(r, V::splat(1.0)).fma(r, V::splat(1.0));
    p.scale2(n)
}

/// e^x - 1, 3 ULP.
#[inline(always)]
pub fn expm1<V: F32Vector>(x: V) -> V {
    // Such that n <= 128.
    let clamped = V::splat(-20.0).max(V::splat(89.0).min(x));
    let (n, r) = reduce_exp(clamped);
    let p = (exp_tail(r) * r).fma(r, r);
    // 2^n p + (2^n - 1), all of it halved until the end, because 2^128 is not a float.
    let half = V::splat(0.5).scale2(n);
    let y = half.fma(p, half - V::splat(0.5));
    V::select(x.eq(V::splat(0.0)), x, y + y)
}

/// log(2^e (1 + f)), for f between sqrt(1/2) - 1 and sqrt(2) - 1.
#[inline(always)]
fn log_parts<V: Vector>(f: V, e: V) -> V {
    let p = f.poly(&[
        0.3333331,
        -0.24999988,
        0.20002252,
        -0.16669182,
        0.14217749,
        -0.12384957,
        0.11882069,
        -0.11790408,
        0.06893158,
    ]);
    let tail = (p * f).fma(f, f * V::splat(-0.5)) * f;
    e.fma(V::splat(LN2_HIGH), e.fma(V::splat(LN2_LOW), tail) + f)
}

/// The natural logarithm, 1 ULP.
#[inline(always)]
pub fn log<V: F32Vector>(x: V) -> V {
    let (m, e) = x.split();
    log_parts(m - V::splat(1.0), e)
}

/// log(1 + x), 2 ULP.
#[inline(always)]
pub fn log1p<V: F32Vector>(x: V) -> V {
    let one = V::splat(1.0);
    let u = one + x;
    let (m, e) = u.split();
    // What the sum lost, in m's scale. Where x is huge, it is nothing; where u is 0 or infinite, e says all.
    let lost = V::select(x.lt(V::splat(1e9)), x - (u - one), V::splat(0.0));
    let finite = V::select(e.abs().lt(V::splat(200.0)), e, V::splat(0.0));
    let f = (m - one) + lost.scale2(-finite);
    V::select(x.eq(V::splat(0.0)), x, log_parts(f, e))
}

/// The hyperbolic tangent, 2 ULP, where a vector type has no better way.
#[inline(always)]
pub fn tanh<V: F32Vector>(x: V) -> V {
    let (a, one) = (x.abs(), V::splat(1.0));
    let z = a * a;
    let p = z.poly(&[-0.33333284, 0.13331485, -0.053743005, 0.020649103, -0.005715499]);
    let small = (p * z).fma(a, a);
    // 1 - 2 / (e^2a + 1); past 10 it is 1.
    let (n, r) = reduce_exp(V::splat(20.0).min(a + a));
    let e = exp_tail(r).fma(r, one).fma(r, one).scale2(n);
    let large = one - V::splat(2.0) / (e + one);
    V::select(a.lt(V::splat(0.625)), small, large).copysign(x)
}

/// 1 / (1 + e^-x), 2 ULP; denormal results too.
#[inline(always)]
pub fn sigmoid<V: F32Vector>(x: V) -> V {
    let one = V::splat(1.0);
    let e = exp(-x.abs());
    let sum = one + e;
    let above = V::select(x.lt(V::splat(0.0)), e, one);
    let inverse = sum.rough_inverse();
    let y = above * inverse;
    // What is left of the numerator, by the sum and what that lost.
    let left = (-y).fma(e - (sum - one), (-y).fma(sum, above));
    left.fma(inverse, y)
}

/// The error function, 2 ULP.
#[inline(always)]
pub fn erf<V: F32Vector>(x: V) -> V {
    let (a, one) = (x.abs(), V::splat(1.0));
    let p =
        (x * x).poly(&[0.12837917, -0.3761263, 0.11283618, -0.026855126, 0.005190734, -0.00080307614, 7.920368e-05]);
    let small = p.fma(x, x);
    // log(1 - erf) as a polynomial; past 4 it is 1 - 1.5e-8, which rounds to 1.
    let q = V::splat(4.0).min(a).poly(&[
        0.00018850749,
        -1.1295805,
        -0.633216,
        -0.10842251,
        0.025210606,
        -0.004205386,
        0.00044149373,
        -2.1699474e-05,
    ]);
    let (n, r) = reduce_exp(q);
    let e = exp_tail(r).fma(r, one).fma(r, one).scale2(n);
    V::select(a.lt(one), small, (one - e).copysign(x))
}

/// Past this the products of the reduction are no longer exact.
const MAX_ANGLE: f64 = 1e5;

/// `x = n pi/2 + r + low`.
#[inline(always)]
fn reduce_angle<V: F32Vector>(x: V) -> (V, V, V) {
    let n = (x * V::splat(std::f64::consts::FRAC_2_PI)).rint();
    // pi/2 in three parts; the first step is exact, what the second rounds away goes to `low`.
    let (p1, p2, p3) =
        (V::splat(-1.5707963705062866), V::splat(4.371138828673793e-8), V::splat(1.7151245100058819e-15));
    let first = n.fma(p1, x);
    let (part, part_low) = (n * p2, n.fma(p2, -(n * p2)));
    // Knuth's sum with its error: after cancellation every bit counts.
    let r = first + part;
    let added = r - first;
    let low = (first - (r - added)) + (part - added);
    (n, r, n.fma(p3, low + part_low))
}

/// sin(x + quarter pi/2), for |x| <= MAX_ANGLE.
#[inline(always)]
fn sin_shifted<V: F32Vector>(x: V, quarter: f64) -> V {
    let (n, r, low) = reduce_angle(x);
    let z = r * r;
    let (s, c) =
        (z.poly(&[-0.16666655, 0.008332191, -0.00019518599]), z.poly(&[0.041666646, -0.0013887301, 2.4430668e-5]));
    let sin = r + (s * z).fma(r, low);
    let half = z * V::splat(-0.5);
    let cos = V::splat(1.0) + (half + (c * z).fma(z, -(r * low)));
    let (odd, sign) = V::quadrant(n + V::splat(quarter));
    V::select(odd, cos, sin).bit_xor(sign)
}

/// The lanes with huge angles, one by one in f64; the others keep `y`.
#[inline(always)]
pub fn mend_huge<V: F32Vector>(x: V, y: V, f: fn(f64) -> f64) -> V {
    let huge = x.abs().gt(V::splat(MAX_ANGLE));
    if V::any(huge) { V::select(huge, x.map(|v| f(v as f64) as f32), y) } else { y }
}

/// 2 ULP.
#[inline(always)]
pub fn sin<V: F32Vector>(x: V) -> V {
    let y = V::select(x.eq(V::splat(0.0)), x, sin_shifted(x, 0.0));
    mend_huge(x, y, f64::sin)
}

/// 2 ULP.
#[inline(always)]
pub fn cos<V: F32Vector>(x: V) -> V {
    mend_huge(x, sin_shifted(x, 1.0), f64::cos)
}
