//! Plain arrays, for every CPU: 8 lanes of f32 as one array, 4 of f64. LLVM makes vectors of them where the target has some.

use std::array::from_fn;

use super::vector::{F32Vector, Op1, Op2, Vector, applies};

/// N lanes of T.
#[derive(Clone, Copy)]
pub struct P<T, const N: usize>([T; N]);

type F32x8 = P<f32, 8>;
type F64x4 = P<f64, 4>;

macro_rules! operators {
    ($e:ty, $n:literal; $($trait:ident $name:ident $op:tt;)*) => {
        $(impl std::ops::$trait for P<$e, $n> {
            type Output = Self;
            #[inline(always)]
            fn $name(self, o: Self) -> Self {
                P(from_fn(|i| self.0[i] $op o.0[i]))
            }
        })*
        impl std::ops::Neg for P<$e, $n> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                P(self.0.map(|v| -v))
            }
        }
    };
}
operators!(f32, 8; Add add +; Sub sub -; Mul mul *; Div div /;);
operators!(f64, 4; Add add +; Sub sub -; Mul mul *; Div div /;);

/// Methods lane by lane.
macro_rules! lanes {
    ($($name:ident($x:ident $(, $a:ident)*) = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $a: Self)*) -> Self {
            P(from_fn(|i| { let $x = self.0[i]; $(let $a = $a.0[i];)* $body }))
        }
    )*};
}

/// The same for what takes many instructions where no instruction does it: there it stands once, or the functions for
/// processors without AVX2 would be the largest of all.
macro_rules! calls {
    ($($name:ident($x:ident $(, $a:ident)*) = $body:expr;)*) => {$(
        #[cfg_attr(target_arch = "aarch64", inline(always))]
        #[cfg_attr(not(target_arch = "aarch64"), inline(never))]
        fn $name(self $(, $a: Self)*) -> Self {
            P(from_fn(|i| { let $x = self.0[i]; $(let $a = $a.0[i];)* $body }))
        }
    )*};
}

macro_rules! comparisons {
    ($n:literal; $($name:ident $op:tt;)*) => {$(
        #[inline(always)]
        fn $name(self, o: Self) -> [bool; $n] {
            from_fn(|i| self.0[i] $op o.0[i])
        }
    )*};
}

macro_rules! logic {
    ($n:literal; $($name:ident $op:tt;)*) => {$(
        #[inline(always)]
        fn $name(a: [bool; $n], b: [bool; $n]) -> [bool; $n] {
            from_fn(|i| a[i] $op b[i])
        }
    )*};
}

macro_rules! vector {
    ($e:ident, $n:literal, $fma:path, $split:path, $scale:path) => {
        impl Vector for P<$e, $n> {
            type E = $e;
            type M = [bool; $n];
            const N: usize = $n;
            applies!($e);
            #[inline(always)]
            unsafe fn load(p: *const $e) -> Self {
                // SAFETY: the caller's promise; an element's alignment is all it gives.
                P(unsafe { p.cast::<[$e; $n]>().read() })
            }
            #[inline(always)]
            unsafe fn load_part(p: *const $e, n: usize) -> Self {
                // SAFETY: only the first n are read.
                P(from_fn(|i| if i < n { unsafe { *p.add(i) } } else { 0.0 }))
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $e) {
                // SAFETY: the caller's promise.
                unsafe { p.cast::<[$e; $n]>().write(self.0) }
            }
            #[inline(always)]
            unsafe fn store_part(self, p: *mut $e, n: usize) {
                // SAFETY: only the first n are written.
                (0..n).for_each(|i| unsafe { *p.add(i) = self.0[i] });
            }
            #[inline(always)]
            fn splat(v: f64) -> Self {
                P([v as $e; $n])
            }
            lanes! {
                abs(x) = x.abs();
                sqrt(x) = x.sqrt();
                min(x, o) = if x < o { x } else { o };
                max(x, o) = if x > o { x } else { o };
                copysign(x, o) = x.copysign(o);
            }
            calls! {
                fma(x, b, c) = $fma(x, b, c);
                floor(x) = x.floor();
                ceil(x) = x.ceil();
                trunc(x) = x.trunc();
                rint(x) = x.round_ties_even();
                scale2(x, n) = $scale(x, n);
            }
            comparisons!($n; lt <; le <=; gt >; ge >=; eq ==; ne !=;);
            logic!($n; and &; or |; xor ^;);
            #[inline(always)]
            fn any(m: [bool; $n]) -> bool {
                m.contains(&true)
            }
            #[inline(always)]
            fn select(m: [bool; $n], a: Self, b: Self) -> Self {
                P(from_fn(|i| if m[i] { a.0[i] } else { b.0[i] }))
            }
            #[inline(always)]
            fn split(self) -> (Self, Self) {
                let parts = self.0.map($split);
                (P(parts.map(|p| p.0)), P(parts.map(|p| p.1)))
            }
            #[inline(always)]
            fn map(self, f: impl Fn($e) -> $e) -> Self {
                P(self.0.map(f))
            }
            #[inline(always)]
            fn map2(self, o: Self, f: impl Fn($e, $e) -> $e) -> Self {
                P(from_fn(|i| f(self.0[i], o.0[i])))
            }
        }
    };
}
vector!(f32, 8, fma32, split32, scale32);
vector!(f64, 4, fma64, split64, scale64);

/// Rounded once: in hardware where every CPU of the architecture can, else through f64, where the product is exact.
#[inline(always)]
fn fma32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { (a as f64 * b as f64 + c as f64) as f32 }
}

#[inline(always)]
fn fma64(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn scale32(x: f32, n: f32) -> f32 {
    // The product is rounded once, at the end.
    (x as f64 * pow2(n as i32)) as f32
}

#[inline(always)]
fn scale64(x: f64, n: f64) -> f64 {
    x * pow2(n as i32)
}

/// 2^n for |n| <= 1000; the cut keeps what comes of a NaN harmless.
#[inline(always)]
fn pow2(n: i32) -> f64 {
    f64::from_bits(((1023 + n.clamp(-1000, 1000)) as u64) << 52)
}

#[inline(always)]
fn split32(x: f32) -> (f32, f32) {
    // No f32 is denormal as f64.
    let (m, e) = split64(x as f64);
    (m as f32, e as f32)
}

#[inline(always)]
fn split64(x: f64) -> (f64, f64) {
    let above = x.to_bits().wrapping_sub(std::f64::consts::FRAC_1_SQRT_2.to_bits()) as i64;
    let e = above >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub((e << 52) as u64));
    let special = if x == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    let e = if x > 0.0 && x < f64::INFINITY { e as f64 } else { special };
    (m, if x >= 0.0 { e } else { f64::NAN })
}

impl F32Vector for F32x8 {
    type Wide = F64x4;
    #[inline(always)]
    fn widen(self) -> (F64x4, F64x4) {
        (P(from_fn(|i| self.0[i] as f64)), P(from_fn(|i| self.0[i + 4] as f64)))
    }
    #[inline(always)]
    fn narrow(low: F64x4, high: F64x4) -> Self {
        P(from_fn(|i| if i < 4 { low.0[i] as f32 } else { high.0[i - 4] as f32 }))
    }
    #[inline(always)]
    fn quadrant(n: Self) -> ([bool; 8], Self) {
        let i = n.0.map(|v| v as i32);
        (i.map(|v| v & 1 != 0), P(i.map(|v| f32::from_bits((v as u32) << 30 & 0x8000_0000))))
    }
    lanes! {
        bit_xor(x, o) = f32::from_bits(x.to_bits() ^ o.to_bits());
    }
    calls! {
        round_f16(x) = half::f16::from_f32_const(x).to_f32_const();
        round_bf16(x) = super::convert::round_bf16(x);
    }
}

super::kernels::kernels!(F32x8, F64x4, 4; );
