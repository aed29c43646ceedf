//! AVX-512 (F, BW, DQ, VL): 16 lanes of f32, 8 of f64.

use std::arch::x86_64::*;

use super::tanh_pieces::{BEFORE, BITS, END, PIECES};
use super::vector::{F32Vector, Op1, Op2, Vector, applies, comparisons, intrinsics, maps, operators};

#[derive(Clone, Copy)]
pub struct F32x16(__m512);
#[derive(Clone, Copy)]
pub struct F64x8(__m512d);

operators!(F32x16, _mm512_set1_ps(-0.0), _mm512_xor_ps;
    Add add _mm512_add_ps; Sub sub _mm512_sub_ps; Mul mul _mm512_mul_ps; Div div _mm512_div_ps;);
operators!(F64x8, _mm512_set1_pd(-0.0), _mm512_xor_pd;
    Add add _mm512_add_pd; Sub sub _mm512_sub_pd; Mul mul _mm512_mul_pd; Div div _mm512_div_pd;);

/// What both types do alike but for the suffix of the intrinsics.
macro_rules! common {
    ($e:ty, $f:ident, $m:ty, $n:literal, $set1:ident, $loadu:ident, $maskz_loadu:ident, $storeu:ident, $mask_storeu:ident, $cmp:ident,
     $blend:ident, $and:ident, $andnot:ident, $or:ident, $getmant:ident, $getexp:ident) => {
        type E = $e;
        type M = $m;
        const N: usize = $n;
        applies!($f);
        comparisons!($m, $cmp);
        maps!($e, $n);
        #[inline(always)]
        unsafe fn load(p: *const $e) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { $loadu(p) })
        }
        #[inline(always)]
        unsafe fn load_part(p: *const $e, n: usize) -> Self {
            // SAFETY: the mask keeps it to n elements.
            Self(unsafe { $maskz_loadu(((1u32 << n) - 1) as $m, p) })
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut $e) {
            // SAFETY: the caller's promise.
            unsafe { $storeu(p, self.0) }
        }
        #[inline(always)]
        unsafe fn store_part(self, p: *mut $e, n: usize) {
            // SAFETY: the mask keeps it to n elements.
            unsafe { $mask_storeu(p, ((1u32 << n) - 1) as $m, self.0) }
        }
        #[inline(always)]
        fn splat(v: f64) -> Self {
            // SAFETY: see `vector`'s first lines: this CPU has the features.
            Self(unsafe { $set1(v as $e) })
        }
        #[inline(always)]
        fn and(a: $m, b: $m) -> $m {
            a & b
        }
        #[inline(always)]
        fn or(a: $m, b: $m) -> $m {
            a | b
        }
        #[inline(always)]
        fn xor(a: $m, b: $m) -> $m {
            a ^ b
        }
        #[inline(always)]
        fn any(m: $m) -> bool {
            m != 0
        }
        #[inline(always)]
        fn select(m: $m, a: Self, b: Self) -> Self {
            // SAFETY: as for `splat`.
            Self(unsafe { $blend(m, b.0, a.0) })
        }
        #[inline(always)]
        fn copysign(self, o: Self) -> Self {
            // SAFETY: as for `splat`.
            unsafe {
                let sign = $set1(-0.0);
                Self($or($andnot(sign, self.0), $and(sign, o.0)))
            }
        }
        #[inline(always)]
        fn split(self) -> (Self, Self) {
            // SAFETY: as for `splat`. The mantissa of a negative number is asked to be NaN; zeros and infinities come out as wanted.
            let (m, e) = unsafe {
                (Self($getmant::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_NAN>(self.0)), Self($getexp(self.0)))
            };
            let high = m.gt(Self::splat(std::f64::consts::SQRT_2));
            (Self::select(high, m * Self::splat(0.5), m), Self::select(high, e + Self::splat(1.0), e))
        }
    };
}

impl Vector for F32x16 {
    common!(
        f32,
        f32,
        __mmask16,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_maskz_loadu_ps,
        _mm512_storeu_ps,
        _mm512_mask_storeu_ps,
        _mm512_cmp_ps_mask,
        _mm512_mask_blend_ps,
        _mm512_and_ps,
        _mm512_andnot_ps,
        _mm512_or_ps,
        _mm512_getmant_ps,
        _mm512_getexp_ps
    );
    intrinsics! {
        fma(b, c) = _mm512_fmadd_ps;
        abs() = _mm512_abs_ps;
        sqrt() = _mm512_sqrt_ps;
        min(o) = _mm512_min_ps;
        max(o) = _mm512_max_ps;
        rint() = _mm512_roundscale_ps::<0x08>;
        floor() = _mm512_roundscale_ps::<0x09>;
        ceil() = _mm512_roundscale_ps::<0x0a>;
        trunc() = _mm512_roundscale_ps::<0x0b>;
        scale2(n) = _mm512_scalef_ps;
    }
}

impl Vector for F64x8 {
    common!(
        f64,
        f64,
        __mmask8,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_maskz_loadu_pd,
        _mm512_storeu_pd,
        _mm512_mask_storeu_pd,
        _mm512_cmp_pd_mask,
        _mm512_mask_blend_pd,
        _mm512_and_pd,
        _mm512_andnot_pd,
        _mm512_or_pd,
        _mm512_getmant_pd,
        _mm512_getexp_pd
    );
    intrinsics! {
        fma(b, c) = _mm512_fmadd_pd;
        abs() = _mm512_abs_pd;
        sqrt() = _mm512_sqrt_pd;
        min(o) = _mm512_min_pd;
        max(o) = _mm512_max_pd;
        rint() = _mm512_roundscale_pd::<0x08>;
        floor() = _mm512_roundscale_pd::<0x09>;
        ceil() = _mm512_roundscale_pd::<0x0a>;
        trunc() = _mm512_roundscale_pd::<0x0b>;
        scale2(n) = _mm512_scalef_pd;
    }
}

impl F32Vector for F32x16 {
    type Wide = F64x8;
    #[inline(always)]
    fn widen(self) -> (F64x8, F64x8) {
        // SAFETY: see `vector`'s first lines: this CPU has the features.
        unsafe {
            let (low, high) = (_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            (F64x8(_mm512_cvtps_pd(low)), F64x8(_mm512_cvtps_pd(high)))
        }
    }
    #[inline(always)]
    fn narrow(low: F64x8, high: F64x8) -> Self {
        // SAFETY: as above.
        unsafe {
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(low.0));
            Self(_mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(high.0)))
        }
    }
    #[inline(always)]
    fn quadrant(n: Self) -> (__mmask16, Self) {
        // SAFETY: as above.
        unsafe {
            let i = _mm512_cvtps_epi32(n.0);
            let sign = _mm512_and_epi32(_mm512_slli_epi32::<30>(i), _mm512_set1_epi32(i32::MIN));
            (_mm512_test_epi32_mask(i, _mm512_set1_epi32(1)), Self(_mm512_castsi512_ps(sign)))
        }
    }
    intrinsics! {
        bit_xor(o) = _mm512_xor_ps;
    }
    #[inline(always)]
    fn round_f16(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_cvtph_ps(_mm512_cvtps_ph::<0x08>(self.0)) })
    }
    #[inline(always)]
    fn round_bf16(self) -> Self {
        self.map(super::convert::round_bf16)
    }
    intrinsics! {
        rough_inverse() = _mm512_rcp14_ps;
    }
    /// By pieces: 1 ULP, in two thirds of the time of the common formula.
    #[inline(always)]
    fn tanh(self) -> Self {
        let a = Self::splat(END).min(self.abs());
        // SAFETY: as above.
        let piece = unsafe {
            let above = _mm512_sub_epi32(_mm512_castps_si512(a.0), _mm512_set1_epi32(BEFORE));
            _mm512_srli_epi32::<BITS>(_mm512_max_epi32(above, _mm512_setzero_si512()))
        };
        let (y, mut k) = (a - Self::of_piece(piece, 0), PIECES.len() - 1);
        let mut sum = Self::of_piece(piece, k);
        while k > 1 {
            k -= 1;
            sum = sum.fma(y, Self::of_piece(piece, k));
        }
        sum.copysign(self)
    }
}

impl F32x16 {
    /// Row `k` of `PIECES` at each lane's piece.
    #[inline(always)]
    fn of_piece(piece: __m512i, k: usize) -> Self {
        // SAFETY: see `vector`'s first lines: this CPU has the features; both halves of a row are vectors.
        unsafe {
            let (low, high) = (_mm512_loadu_ps(PIECES[k].as_ptr()), _mm512_loadu_ps(PIECES[k].as_ptr().add(16)));
            Self(_mm512_permutex2var_ps(low, piece, high))
        }
    }
}

super::kernels::kernels!(F32x16, F64x8, 8; #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]);
