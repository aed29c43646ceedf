//! AVX2 with FMA and F16C: 8 lanes of f32, 4 of f64.

use std::arch::x86_64::*;

use super::vector::{F32Vector, Op1, Op2, Vector, applies, comparisons, intrinsics, maps, operators};

#[derive(Clone, Copy)]
pub struct F32x8(__m256);
#[derive(Clone, Copy)]
pub struct F64x4(__m256d);

operators!(F32x8, _mm256_set1_ps(-0.0), _mm256_xor_ps;
    Add add _mm256_add_ps; Sub sub _mm256_sub_ps; Mul mul _mm256_mul_ps; Div div _mm256_div_ps;);
operators!(F64x4, _mm256_set1_pd(-0.0), _mm256_xor_pd;
    Add add _mm256_add_pd; Sub sub _mm256_sub_pd; Mul mul _mm256_mul_pd; Div div _mm256_div_pd;);

/// A window of N ints that begins at N - n is n times -1, then zeros: the mask of the first n lanes.
static FIRST32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
static FIRST64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

/// What both types do alike but for the suffix of the intrinsics.
macro_rules! common {
    ($e:ty, $f:ident, $raw:ty, $n:literal, $first:ident, $set1:ident, $loadu:ident, $maskload:ident, $storeu:ident, $maskstore:ident,
     $cmp:ident, $blendv:ident, $and:ident, $andnot:ident, $or:ident, $xor:ident, $movemask:ident) => {
        type E = $e;
        type M = $raw;
        const N: usize = $n;
        applies!($f);
        comparisons!($raw, $cmp);
        maps!($e, $n);
        #[inline(always)]
        unsafe fn load(p: *const $e) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { $loadu(p) })
        }
        #[inline(always)]
        unsafe fn load_part(p: *const $e, n: usize) -> Self {
            // SAFETY: the mask keeps it to n elements; n <= N, so the window lies in the table.
            unsafe { Self($maskload(p, _mm256_loadu_si256($first.as_ptr().add($n - n).cast()))) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut $e) {
            // SAFETY: the caller's promise.
            unsafe { $storeu(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_part(self, p: *mut $e, n: usize) {
            // SAFETY: as for `load_part`.
            unsafe { $maskstore(p, _mm256_loadu_si256($first.as_ptr().add($n - n).cast()), self.0) }
        }
        #[inline(always)]
        fn splat(v: f64) -> Self {
            // SAFETY: see `vector`'s first lines: this CPU has the features.
            Self(unsafe { $set1(v as $e) })
        }
        #[inline(always)]
        fn abs(self) -> Self {
            // SAFETY: as for `splat`.
            Self(unsafe { $andnot($set1(-0.0), self.0) })
        }
        #[inline(always)]
        fn and(a: $raw, b: $raw) -> $raw {
            // SAFETY: as for `splat`.
            unsafe { $and(a, b) }
        }
        #[inline(always)]
        fn or(a: $raw, b: $raw) -> $raw {
            // SAFETY: as for `splat`.
            unsafe { $or(a, b) }
        }
        #[inline(always)]
        fn xor(a: $raw, b: $raw) -> $raw {
            // SAFETY: as for `splat`.
            unsafe { $xor(a, b) }
        }
        #[inline(always)]
        fn any(m: $raw) -> bool {
            // SAFETY: as for `splat`.
            unsafe { $movemask(m) != 0 }
        }
        #[inline(always)]
        fn select(m: $raw, a: Self, b: Self) -> Self {
            // SAFETY: as for `splat`.
            Self(unsafe { $blendv(b.0, a.0, m) })
        }
        #[inline(always)]
        fn copysign(self, o: Self) -> Self {
            // SAFETY: as for `splat`.
            unsafe {
                let sign = $set1(-0.0);
                Self($or($andnot(sign, self.0), $and(sign, o.0)))
            }
        }
    };
}

/// Puts in place what `split` says of zeros, infinities, negative numbers and NaN.
#[inline(always)]
fn split_specials<V: Vector>(x: V, m: V, e: V) -> (V, V) {
    let inf = V::splat(f64::INFINITY);
    let e = V::select(x.eq(V::splat(0.0)), -inf, V::select(x.eq(inf), inf, e));
    // Not (x >= 0): negative or NaN.
    (m, V::select(x.ge(V::splat(0.0)), e, V::splat(f64::NAN)))
}

impl Vector for F32x8 {
    common!(
        f32,
        f32,
        __m256,
        8,
        FIRST32,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_maskload_ps,
        _mm256_storeu_ps,
        _mm256_maskstore_ps,
        _mm256_cmp_ps,
        _mm256_blendv_ps,
        _mm256_and_ps,
        _mm256_andnot_ps,
        _mm256_or_ps,
        _mm256_xor_ps,
        _mm256_movemask_ps
    );
    intrinsics! {
        fma(b, c) = _mm256_fmadd_ps;
        sqrt() = _mm256_sqrt_ps;
        min(o) = _mm256_min_ps;
        max(o) = _mm256_max_ps;
        rint() = _mm256_round_ps::<0x08>;
        floor() = _mm256_round_ps::<0x09>;
        ceil() = _mm256_round_ps::<0x0a>;
        trunc() = _mm256_round_ps::<0x0b>;
    }
    #[inline(always)]
    fn scale2(self, n: Self) -> Self {
        // SAFETY: see `vector`'s first lines: this CPU has the features. Two factors, each of them in range; the first product is exact.
        unsafe {
            let i = _mm256_cvtps_epi32(n.0);
            let half = _mm256_srai_epi32::<1>(i);
            let bias = _mm256_set1_epi32(127);
            let a = _mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias));
            let b = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_sub_epi32(i, half), bias));
            Self(_mm256_mul_ps(_mm256_mul_ps(self.0, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b)))
        }
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let small = self.lt(Self::splat(f32::MIN_POSITIVE as f64));
        let x = Self::select(small, self * Self::splat(8388608.0), self);
        let bias = Self::select(small, Self::splat(-23.0), Self::splat(0.0));
        // SAFETY: as above.
        let (m, e) = unsafe {
            let bits = _mm256_castps_si256(x.0);
            // The bits above those of sqrt(1/2), as multiples of an exponent step.
            let e = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)));
            let m = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(e));
            (Self(_mm256_castsi256_ps(m)), Self(_mm256_cvtepi32_ps(e)))
        };
        split_specials(self, m, e + bias)
    }
}

impl Vector for F64x4 {
    common!(
        f64,
        f64,
        __m256d,
        4,
        FIRST64,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_maskload_pd,
        _mm256_storeu_pd,
        _mm256_maskstore_pd,
        _mm256_cmp_pd,
        _mm256_blendv_pd,
        _mm256_and_pd,
        _mm256_andnot_pd,
        _mm256_or_pd,
        _mm256_xor_pd,
        _mm256_movemask_pd
    );
    intrinsics! {
        fma(b, c) = _mm256_fmadd_pd;
        sqrt() = _mm256_sqrt_pd;
        min(o) = _mm256_min_pd;
        max(o) = _mm256_max_pd;
        rint() = _mm256_round_pd::<0x08>;
        floor() = _mm256_round_pd::<0x09>;
        ceil() = _mm256_round_pd::<0x0a>;
        trunc() = _mm256_round_pd::<0x0b>;
    }
    #[inline(always)]
    fn scale2(self, n: Self) -> Self {
        // Adding 1.5 * 2^52 leaves the integer in the low bits, from where it goes to the exponent's place.
        let biased = n + Self::splat(6755399441055744.0 + 1023.0);
        // SAFETY: see `vector`'s first lines: this CPU has the features.
        let pow2 = unsafe { _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_castpd_si256(biased.0))) };
        self * Self(pow2)
    }
    /// For normal numbers (f64 lanes hold what was f32, or is far from denormal).
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: as above.
        let (m, e) = unsafe {
            let one = _mm256_set1_epi64x(1023 << 52);
            let bits = _mm256_castpd_si256(self.0);
            let above = _mm256_sub_epi64(bits, _mm256_set1_epi64x(std::f64::consts::FRAC_1_SQRT_2.to_bits() as i64));
            let e = _mm256_srli_epi64::<52>(_mm256_add_epi64(above, one));
            let m = _mm256_add_epi64(_mm256_sub_epi64(bits, _mm256_slli_epi64::<52>(e)), one);
            // 2^52 with the exponent in its low bits.
            let float = _mm256_castsi256_pd(_mm256_or_si256(e, _mm256_set1_epi64x(0x4330_0000_0000_0000)));
            (Self(_mm256_castsi256_pd(m)), Self(float) - Self::splat(4503599627370496.0 + 1023.0))
        };
        split_specials(self, m, e)
    }
}

impl F32Vector for F32x8 {
    type Wide = F64x4;
    #[inline(always)]
    fn widen(self) -> (F64x4, F64x4) {
        // SAFETY: see `vector`'s first lines: this CPU has the features.
        unsafe {
            let (low, high) = (_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            (F64x4(_mm256_cvtps_pd(low)), F64x4(_mm256_cvtps_pd(high)))
        }
    }
    #[inline(always)]
    fn narrow(low: F64x4, high: F64x4) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_set_m128(_mm256_cvtpd_ps(high.0), _mm256_cvtpd_ps(low.0)) })
    }
    #[inline(always)]
    fn quadrant(n: Self) -> (__m256, Self) {
        // SAFETY: as above. The blend looks only at the sign bit, but the logic on masks wants all bits alike.
        unsafe {
            let i = _mm256_cvtps_epi32(n.0);
            let odd = _mm256_srai_epi32::<31>(_mm256_slli_epi32::<31>(i));
            let sign = _mm256_and_si256(_mm256_slli_epi32::<30>(i), _mm256_set1_epi32(i32::MIN));
            (_mm256_castsi256_ps(odd), Self(_mm256_castsi256_ps(sign)))
        }
    }
    intrinsics! {
        bit_xor(o) = _mm256_xor_ps;
    }
    #[inline(always)]
    fn round_f16(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0)) })
    }
    #[inline(always)]
    fn round_bf16(self) -> Self {
        self.map(super::convert::round_bf16)
    }
}

super::kernels::kernels!(F32x8, F64x4, 8; #[target_feature(enable = "avx2,fma,f16c")]);
