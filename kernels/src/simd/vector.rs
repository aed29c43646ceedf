//! The vector traits: what the mathematics and the loops need of an instruction set.
//!
//! The methods are safe to call although some need CPU features: values of a vector type are made only inside the loops that the dispatcher
//! hands out, and it hands out those whose features this CPU has. Everything is `inline(always)`, down to the loops, because code must end up
//! in a function with the right `target_feature`: otherwise each operation would be a call. For the same reason no vector goes through a closure
//! or a function passed as an argument.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A function of one vector, written for both element types.
pub trait Op1 {
    fn f32<V: F32Vector>(&self, x: V) -> V;
    fn f64<V: Vector<E = f64>>(&self, x: V) -> V;
}

/// A function of two vectors, written for both element types.
pub trait Op2 {
    fn f32<V: F32Vector>(&self, a: V, b: V) -> V;
    fn f64<V: Vector<E = f64>>(&self, a: V, b: V) -> V;
}

/// Code of a caller that is compiled for each instruction set: see `simd::run`.
pub trait Body<T> {
    /// Must be `inline(always)`, as all that it calls.
    /// # Safety
    /// The body's own terms.
    unsafe fn run<V: Vector<E = T>>(&self);
}

pub trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    type E: Copy;
    /// One truth value a lane.
    type M: Copy;
    const N: usize;

    fn apply1(o: &impl Op1, x: Self) -> Self;
    fn apply2(o: &impl Op2, a: Self, b: Self) -> Self;

    /// # Safety
    /// `p` must be good for reading `N` elements.
    unsafe fn load(p: *const Self::E) -> Self;
    /// The first `n <= N` lanes; zeros in the others.
    /// # Safety
    /// `p` must be good for reading `n` elements.
    unsafe fn load_part(p: *const Self::E, n: usize) -> Self;
    /// # Safety
    /// `p` must be good for writing `N` elements.
    unsafe fn store(self, p: *mut Self::E);
    /// # Safety
    /// `p` must be good for writing `n` elements, `n <= N`.
    unsafe fn store_part(self, p: *mut Self::E, n: usize);

    fn splat(v: f64) -> Self;
    /// `self * b + c`; rounded once, but for f64 on CPUs without the instruction.
    fn fma(self, b: Self, c: Self) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    /// `self < o ? self : o`
    fn min(self, o: Self) -> Self;
    /// `self > o ? self : o`
    fn max(self, o: Self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// To the nearest integer, halves to even.
    fn rint(self) -> Self;

    fn lt(self, o: Self) -> Self::M;
    fn le(self, o: Self) -> Self::M;
    fn gt(self, o: Self) -> Self::M;
    fn ge(self, o: Self) -> Self::M;
    fn eq(self, o: Self) -> Self::M;
    /// True where either is NaN.
    fn ne(self, o: Self) -> Self::M;
    fn and(a: Self::M, b: Self::M) -> Self::M;
    fn or(a: Self::M, b: Self::M) -> Self::M;
    fn xor(a: Self::M, b: Self::M) -> Self::M;
    fn any(m: Self::M) -> bool;
    fn select(m: Self::M, a: Self, b: Self) -> Self;

    /// The magnitude of `self` with the sign of `o`.
    fn copysign(self, o: Self) -> Self;
    /// `self * 2^n` for integers `n`: |n| <= 250 for f32 (rounded once), |n| <= 1000 for f64 (normal results).
    fn scale2(self, n: Self) -> Self;
    /// `(m, e)` with `x = m * 2^e`, m about between sqrt(1/2) and sqrt(2). Gives e = -inf for 0, e = inf for inf, NaN for negative numbers.
    fn split(self) -> (Self, Self);
    /// Lane by lane.
    fn map(self, f: impl Fn(Self::E) -> Self::E) -> Self;
    fn map2(self, o: Self, f: impl Fn(Self::E, Self::E) -> Self::E) -> Self;

    /// 1 where true, else 0.
    #[inline(always)]
    fn truth(m: Self::M) -> Self {
        Self::select(m, Self::splat(1.0), Self::splat(0.0))
    }
    #[inline(always)]
    fn is_true(self) -> Self::M {
        self.ne(Self::splat(0.0))
    }
    /// `c[0] + c[1] x + c[2] x^2 + ...`
    #[inline(always)]
    fn poly(self, c: &[f64]) -> Self {
        // No iterator adaptors here: their closures would not be inlined into a frame with the CPU features.
        let mut i = c.len() - 1;
        let mut acc = Self::splat(c[i]);
        while i > 0 {
            i -= 1;
            acc = acc.fma(self, Self::splat(c[i]));
        }
        acc
    }
}

pub trait F32Vector: Vector<E = f32> {
    /// Half as many lanes of f64.
    type Wide: Vector<E = f64>;
    fn widen(self) -> (Self::Wide, Self::Wide);
    fn narrow(low: Self::Wide, high: Self::Wide) -> Self;
    /// For integers n: whether n is odd, and the sign bit set where n mod 4 is 2 or 3.
    fn quadrant(n: Self) -> (Self::M, Self);
    /// Exclusive or of the bits.
    fn bit_xor(self, o: Self) -> Self;
    fn round_f16(self) -> Self;
    fn round_bf16(self) -> Self;
    /// 1 / self for numbers from 1 to 2, off by 2^-14 of it at most.
    #[inline(always)]
    fn rough_inverse(self) -> Self {
        Self::splat(1.0) / self
    }
    /// The hyperbolic tangent, 2 ULP.
    #[inline(always)]
    fn tanh(self) -> Self {
        super::math::tanh(self)
    }
}

/// The arithmetic operators of a vector type, by the names of its intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! operators {
    ($t:ty, $sign:expr, $xor:path; $($trait:ident $name:ident $f:path;)*) => {
        $(impl std::ops::$trait for $t {
            type Output = Self;
            #[inline(always)]
            fn $name(self, o: Self) -> Self {
                // SAFETY: see the module's first lines: this CPU has the features.
                Self(unsafe { $f(self.0, o.0) })
            }
        })*
        impl std::ops::Neg for $t {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $xor(self.0, $sign) })
            }
        }
    };
}

/// Methods that are one intrinsic each.
#[cfg(target_arch = "x86_64")]
macro_rules! intrinsics {
    ($($name:ident($($a:ident),*) = $f:path;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $a: Self)*) -> Self {
            // SAFETY: see `vector`'s first lines: this CPU has the features.
            Self(unsafe { $f(self.0 $(, $a.0)*) })
        }
    )*};
}

/// The comparisons, by the intrinsic that takes the predicate as a constant.
#[cfg(target_arch = "x86_64")]
macro_rules! comparisons {
    ($m:ty, $cmp:ident) => {
        comparisons!($m, $cmp; lt 0x11, le 0x12, gt 0x1e, ge 0x1d, eq 0x00, ne 0x04);
    };
    ($m:ty, $cmp:ident; $($name:ident $p:literal),*) => {$(
        #[inline(always)]
        fn $name(self, o: Self) -> $m {
            // SAFETY: see `vector`'s first lines: this CPU has the features.
            unsafe { $cmp::<$p>(self.0, o.0) }
        }
    )*};
}

/// `map` and `map2` through memory.
#[cfg(target_arch = "x86_64")]
macro_rules! maps {
    ($e:ty, $n:literal) => {
        #[inline(always)]
        fn map(self, f: impl Fn($e) -> $e) -> Self {
            let mut a: [$e; $n] = [0.0; $n];
            // SAFETY: the array has room for all lanes.
            unsafe {
                self.store(a.as_mut_ptr());
                a.iter_mut().for_each(|v| *v = f(*v));
                Self::load(a.as_ptr())
            }
        }
        #[inline(always)]
        fn map2(self, o: Self, f: impl Fn($e, $e) -> $e) -> Self {
            let (mut a, mut b): ([$e; $n], [$e; $n]) = ([0.0; $n], [0.0; $n]);
            // SAFETY: the arrays have room for all lanes.
            unsafe {
                self.store(a.as_mut_ptr());
                o.store(b.as_mut_ptr());
                a.iter_mut().zip(b).for_each(|(v, w)| *v = f(*v, w));
                Self::load(a.as_ptr())
            }
        }
    };
}

/// How an f32 vector applies the functions that are written for both element types; then the same for f64.
macro_rules! applies {
    ($f:ident) => {
        #[inline(always)]
        fn apply1(o: &impl Op1, x: Self) -> Self {
            o.$f(x)
        }
        #[inline(always)]
        fn apply2(o: &impl Op2, a: Self, b: Self) -> Self {
            o.$f(a, b)
        }
    };
}

pub(super) use applies;
#[cfg(target_arch = "x86_64")]
pub(super) use {comparisons, intrinsics, maps, operators};
