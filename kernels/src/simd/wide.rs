//! Elementary functions on f64 lanes, for f32 data: plain formulas, good to about 2^-36, so that rounding to f32 gives 1 ULP.

use super::vector::Vector;

/// 2^x for |x| <= 1000.
#[inline(always)]
fn exp2<V: Vector<E = f64>>(x: V) -> V {
    let n = x.rint();
    // Taylor's series of 2^r for |r| <= 1/2.
    let p = (x - n).poly(&[
        1.0,
        std::f64::consts::LN_2,
        0.2402265069591007,
        0.055504108664821576,
        0.009618129107628477,
        0.0013333558146428441,
        0.00015403530393381606,
        1.5252733804059838e-05,
        1.3215486790144305e-06,
        1.0178086009239696e-07,
    ]);
    p.scale2(n)
}

/// Results beyond f32 need not be told apart. NaN comes through.
#[inline(always)]
fn exp2_clamped<V: Vector<E = f64>>(x: V) -> V {
    exp2(V::splat(-300.0).max(V::splat(300.0).min(x)))
}

#[inline(always)]
fn exp<V: Vector<E = f64>>(x: V) -> V {
    exp2_clamped(x * V::splat(std::f64::consts::LOG2_E))
}

#[inline(always)]
fn log2<V: Vector<E = f64>>(x: V) -> V {
    let (m, e) = x.split();
    // log m = 2 artanh s
    let s = (m - V::splat(1.0)) / (m + V::splat(1.0));
    let p = (s * s).poly(&[
        2.8853900817779268,
        0.9617966939259756,
        0.5770780163555853,
        0.4121985831111324,
        0.3205988979753252,
        0.2623081892525388,
        0.22195308321368667,
        0.19235933878519512,
    ]);
    p.fma(s, e)
}

#[inline(always)]
fn log<V: Vector<E = f64>>(x: V) -> V {
    log2(x) * V::splat(std::f64::consts::LN_2)
}

/// C's `pow`, with all its special cases.
#[inline(always)]
pub fn pow<V: Vector<E = f64>>(x: V, y: V) -> V {
    let (zero, one, half) = (V::splat(0.0), V::splat(1.0), V::splat(0.5));
    let a = x.abs();
    let size = exp2_clamped(y * log2(a));
    // The sign counts for odd y only; a negative number has no other root.
    let integer = y.rint().eq(y);
    let halved = y * half;
    let odd = V::and(integer, halved.rint().ne(halved));
    let signed = V::select(odd, size.copysign(x), size);
    let finite_negative = V::and(x.lt(zero), x.gt(V::splat(f64::NEG_INFINITY)));
    let root = V::and(finite_negative, y.rint().ne(y));
    // NaN exponents are roots too, which is as it should be.
    let z = V::select(root, V::splat(f64::NAN), signed);
    let minus_one_to_inf = V::and(x.eq(-one), y.abs().eq(V::splat(f64::INFINITY)));
    V::select(V::or(V::or(y.eq(zero), x.eq(one)), minus_one_to_inf), one, z)
}

/// For |x| <= 1e6.
#[inline(always)]
pub fn tan<V: Vector<E = f64>>(x: V) -> V {
    let n = (x * V::splat(std::f64::consts::FRAC_2_PI)).rint();
    // 33 bits of pi/2, whose product with n is exact, and the rest.
    let r = (x - n * V::splat(1.5707963267341256)) - n * V::splat(6.077100506506192e-11);
    let z = r * r;
    let s =
        z.poly(&[1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362880.0, -1.0 / 39916800.0, 1.0 / 6227020800.0]);
    let c = z.poly(&[1.0, -0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3628800.0, 1.0 / 479001600.0]);
    let s = s * r;
    let halved = n * V::splat(0.5);
    let odd = halved.rint().ne(halved);
    let y = V::select(odd, -c, s) / V::select(odd, s, c);
    V::select(x.eq(V::splat(0.0)), x, y)
}

/// For |x| below this, x plus its cube's term is good to 2^-36, where the formulas with differences are not.
const SMALL: f64 = 1e-3;

/// An odd function: `large` is its value at |x| by a formula that fails for small ones.
#[inline(always)]
fn odd_with_small<V: Vector<E = f64>>(x: V, cube: f64, large: V) -> V {
    let a = x.abs();
    let small = (a * a * V::splat(cube)).fma(a, a);
    V::select(a.lt(V::splat(SMALL)), small, large).copysign(x)
}

#[inline(always)]
pub fn sinh<V: Vector<E = f64>>(x: V) -> V {
    let a = x.abs();
    odd_with_small(x, 1.0 / 6.0, (exp(a) - exp(-a)) * V::splat(0.5))
}

#[inline(always)]
pub fn cosh<V: Vector<E = f64>>(x: V) -> V {
    (exp(x) + exp(-x)) * V::splat(0.5)
}

#[inline(always)]
pub fn asinh<V: Vector<E = f64>>(x: V) -> V {
    let a = x.abs();
    odd_with_small(x, -1.0 / 6.0, log(a + a.fma(a, V::splat(1.0)).sqrt()))
}

#[inline(always)]
pub fn acosh<V: Vector<E = f64>>(x: V) -> V {
    let one = V::splat(1.0);
    let y = log(x + ((x - one) * (x + one)).sqrt());
    V::select(x.lt(one), V::splat(f64::NAN), y)
}

#[inline(always)]
pub fn atanh<V: Vector<E = f64>>(x: V) -> V {
    let (a, one) = (x.abs(), V::splat(1.0));
    odd_with_small(x, 1.0 / 3.0, log((one + a) / (one - a)) * V::splat(0.5))
}

#[inline(always)]
pub fn atan2<V: Vector<E = f64>>(y: V, x: V) -> V {
    // Far beyond f32, so that inf/inf is 1 and inf/finite nothing; the least keeps 0/0 at 0.
    let (huge, least) = (V::splat(1e300), V::splat(1e-300));
    let (a, b) = (huge.min(y.abs()), huge.min(x.abs()));
    let steep = a.gt(b);
    let (low, high) = (V::select(steep, b, a), least.max(V::select(steep, a, b)));
    // Past tan(pi/8), turned back by pi/4.
    let turned = low.gt(high * V::splat(0.41421356237309503));
    let t = V::select(turned, low - high, low) / V::select(turned, low + high, high);
    let z = t * t;
    let p = z.poly(&[
        -0.3333333333326157,
        0.1999999998296438,
        -0.1428571289101891,
        0.11111054974803992,
        -0.09089624820117724,
        0.07674416842292624,
        -0.06510821059244896,
        0.050392195353405445,
        -0.02549774127384682,
    ]);
    let angle = (p * z).fma(t, t) + V::select(turned, V::splat(std::f64::consts::FRAC_PI_4), V::splat(0.0));
    let angle = V::select(steep, V::splat(std::f64::consts::FRAC_PI_2) - angle, angle);
    let left = V::splat(1.0).copysign(x).lt(V::splat(0.0));
    let angle = V::select(left, V::splat(std::f64::consts::PI) - angle, angle);
    // A NaN may have been lost in a choice above.
    V::select(V::or(x.ne(x), y.ne(y)), x + y, angle.copysign(y))
}

#[inline(always)]
pub fn atan<V: Vector<E = f64>>(x: V) -> V {
    atan2(x, V::splat(1.0))
}

#[inline(always)]
pub fn asin<V: Vector<E = f64>>(x: V) -> V {
    let one = V::splat(1.0);
    atan2(x, ((one - x) * (one + x)).sqrt())
}

#[inline(always)]
pub fn acos<V: Vector<E = f64>>(x: V) -> V {
    let one = V::splat(1.0);
    atan2(((one - x) * (one + x)).sqrt(), x)
}
