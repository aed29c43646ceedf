//! The operations of `expr::op` as functions of vectors: one type each, so that a loop can be compiled around it.

use super::math;
use super::vector::{F32Vector, Op1, Op2, Vector};
use super::wide;

/// A function of f64 lanes on f32 vectors. (A macro, because a function given as an argument is not inlined.)
macro_rules! via_wide {
    ($f:path, $x:ident) => {{
        let (low, high) = $x.widen();
        V::narrow($f(low), $f(high))
    }};
    ($f:path, $a:ident, $b:ident) => {{
        let ((al, ah), (bl, bh)) = ($a.widen(), $b.widen());
        V::narrow($f(al, bl), $f(ah, bh))
    }};
}

/// The same formula for f32 and f64.
macro_rules! simple {
    ($($name:ident($x:ident) = $body:expr;)*) => {$(
        #[derive(Default)]
        pub struct $name;
        impl Op1 for $name {
            #[inline(always)]
            fn f32<V: F32Vector>(&self, $x: V) -> V { $body }
            #[inline(always)]
            fn f64<V: Vector<E = f64>>(&self, $x: V) -> V { $body }
        }
    )*};
}

/// A function on f32 vectors; the C library's, lane by lane, for f64.
macro_rules! mathematical {
    ($($name:ident($x:ident) = $f32:expr, $f64:expr;)*) => {$(
        #[derive(Default)]
        pub struct $name;
        impl Op1 for $name {
            #[inline(always)]
            fn f32<V: F32Vector>(&self, $x: V) -> V { $f32 }
            #[inline(always)]
            fn f64<V: Vector<E = f64>>(&self, x: V) -> V { x.map($f64) }
        }
    )*};
}

macro_rules! binary {
    ($($name:ident($a:ident, $b:ident) = $body:expr;)*) => {$(
        #[derive(Default)]
        pub struct $name;
        impl Op2 for $name {
            #[inline(always)]
            fn f32<V: F32Vector>(&self, $a: V, $b: V) -> V { $body }
            #[inline(always)]
            fn f64<V: Vector<E = f64>>(&self, $a: V, $b: V) -> V { $body }
        }
    )*};
}

simple! {
    Neg(x) = -x;
    Abs(x) = x.abs();
    Sign(x) = {
        let zero = V::splat(0.0);
        // Zeros and NaN stay what they are.
        V::select(x.gt(zero), V::splat(1.0), V::select(x.lt(zero), V::splat(-1.0), x))
    };
    Floor(x) = x.floor();
    Ceil(x) = x.ceil();
    Round(x) = {
        let (a, whole) = (x.abs(), x.abs().trunc());
        (whole + V::truth((a - whole).ge(V::splat(0.5)))).copysign(x)
    };
    Sqrt(x) = x.sqrt();
    IsNan(x) = V::truth(x.ne(x));
    IsInf(x) = V::truth(x.abs().eq(V::splat(f64::INFINITY)));
    Not(x) = V::truth(x.eq(V::splat(0.0)));
}

// The C library's functions that Rust's standard library lacks.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

mathematical! {
    Exp(x) = math::exp(x), f64::exp;
    Expm1(x) = math::expm1(x), f64::exp_m1;
    Log(x) = math::log(x), f64::ln;
    Log1p(x) = math::log1p(x), f64::ln_1p;
    Sin(x) = math::sin(x), f64::sin;
    Cos(x) = math::cos(x), f64::cos;
    Tan(x) = math::mend_huge(x, via_wide!(wide::tan, x), f64::tan), f64::tan;
    Sinh(x) = via_wide!(wide::sinh, x), f64::sinh;
    Cosh(x) = via_wide!(wide::cosh, x), f64::cosh;
    Tanh(x) = x.tanh(), f64::tanh;
    Asin(x) = via_wide!(wide::asin, x), f64::asin;
    Acos(x) = via_wide!(wide::acos, x), f64::acos;
    Atan(x) = via_wide!(wide::atan, x), f64::atan;
    Asinh(x) = via_wide!(wide::asinh, x), |v| asinh(v);
    Acosh(x) = via_wide!(wide::acosh, x), |v| acosh(v);
    Atanh(x) = via_wide!(wide::atanh, x), |v| atanh(v);
    Sigmoid(x) = math::sigmoid(x), sigmoid64;
    Erf(x) = math::erf(x), |v| erf(v);
    RoundF16(x) = x.round_f16(), |v| half::f16::from_f64(v).to_f64();
    RoundBF16(x) = x.round_bf16(), |v| half::bf16::from_f64(v).to_f64();
}

/// Without overflow on either side.
fn sigmoid64(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

binary! {
    Add(a, b) = a + b;
    Sub(a, b) = a - b;
    Mul(a, b) = a * b;
    Div(a, b) = a / b;
    Max(a, b) = a.max(b);
    Min(a, b) = a.min(b);
    Lt(a, b) = V::truth(a.lt(b));
    Le(a, b) = V::truth(a.le(b));
    Gt(a, b) = V::truth(a.gt(b));
    Ge(a, b) = V::truth(a.ge(b));
    Eq(a, b) = V::truth(a.eq(b));
    Ne(a, b) = V::truth(a.ne(b));
    And(a, b) = V::truth(V::and(a.is_true(), b.is_true()));
    Or(a, b) = V::truth(V::or(a.is_true(), b.is_true()));
    Xor(a, b) = V::truth(V::xor(a.is_true(), b.is_true()));
}

#[derive(Default)]
pub struct Pow;
impl Op2 for Pow {
    #[inline(always)]
    fn f32<V: F32Vector>(&self, a: V, b: V) -> V {
        via_wide!(wide::pow, a, b)
    }
    #[inline(always)]
    fn f64<V: Vector<E = f64>>(&self, a: V, b: V) -> V {
        a.map2(b, f64::powf)
    }
}

#[derive(Default)]
pub struct Atan2;
impl Op2 for Atan2 {
    #[inline(always)]
    fn f32<V: F32Vector>(&self, a: V, b: V) -> V {
        via_wide!(wide::atan2, a, b)
    }
    #[inline(always)]
    fn f64<V: Vector<E = f64>>(&self, a: V, b: V) -> V {
        a.map2(b, f64::atan2)
    }
}

/// exp(x - shift), for softmax.
pub struct ShiftedExp(pub f64);
impl Op1 for ShiftedExp {
    #[inline(always)]
    fn f32<V: F32Vector>(&self, x: V) -> V {
        math::exp(x - V::splat(self.0))
    }
    #[inline(always)]
    fn f64<V: Vector<E = f64>>(&self, x: V) -> V {
        (x - V::splat(self.0)).map(f64::exp)
    }
}
