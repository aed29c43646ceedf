//! Conversion of arrays between element types.
//!
//! As in C: integers to narrower integers drop the high bits, floats are cut towards zero. What C leaves open is settled as in Rust: a float
//! beyond the integer's range becomes its nearest value, NaN becomes 0. To bool, all but zero is true (NaN too).

use half::{bf16, f16};

use crate::dtype::{DType, Element};
use crate::with_dtype;

/// To bfloat16 and back; ties to even.
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    f32::from_bits((bf16_bits(x) as u32) << 16)
}

/// Without branches, so that LLVM makes a vector loop of it.
#[inline(always)]
fn bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1));
    // A NaN stays one, and becomes quiet.
    (if x.is_nan() { bits | 0x0040_0000 } else { rounded } >> 16) as u16
}

/// The conversion of one element, in the way of the two types.
trait Cast<To> {
    fn cast(self) -> To;
}

/// Conversions that Rust's `as` does just so.
macro_rules! cast_as {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to { self as $to }
        }
    )*)*};
}
cast_as! {
    i8 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    u8 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    i16 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    u16 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    i32 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    u32 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    i64 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    u64 => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64;
    f32 => f32 f64;
    f64 => f32 f64;
}

/// A boolean as it lies in memory that another library may have written: any byte but 0 is true.
#[derive(Clone, Copy)]
struct Truth(u8);

macro_rules! cast_truth {
    ($($t:ty)*) => {$(
        impl Cast<$t> for Truth {
            #[inline(always)]
            fn cast(self) -> $t { ((self.0 != 0) as u8).cast() }
        }
    )*};
}
cast_truth!(bool i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64);

macro_rules! cast_to_bool {
    ($($t:ty)*) => {$(
        impl Cast<bool> for $t {
            #[inline(always)]
            fn cast(self) -> bool { self != 0 as $t }
        }
    )*};
}
cast_to_bool!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

/// The half types go through f32 where that is exact and through f64 elsewhere.
macro_rules! cast_halves {
    ($($t:ty)*) => {$(
        impl Cast<$t> for f16 {
            #[inline(always)]
            fn cast(self) -> $t { self.to_f32() as $t }
        }
        impl Cast<$t> for bf16 {
            #[inline(always)]
            fn cast(self) -> $t { self.to_f32() as $t }
        }
    )*};
}
cast_halves!(f32 f64);

macro_rules! cast_elements {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to { <$to>::from_f64(Element::to_f64(self)) }
        }
    )*)*};
}
cast_elements! {
    i8 => f16 bf16; u8 => f16 bf16; i16 => f16 bf16; u16 => f16 bf16; i32 => f16 bf16; u32 => f16 bf16;
    f16 => i8 u8 i16 u16 i32 u32 i64 u64; bf16 => i8 u8 i16 u16 i32 u32 i64 u64;
    f32 => i8 u8 i16 u16 i32 u32 i64 u64; f64 => i8 u8 i16 u16 i32 u32 i64 u64;
    i64 => f16 bf16; u64 => f16 bf16; f64 => f16 bf16; f16 => bool f16 bf16; bf16 => bool f16 bf16;
}

impl Cast<f16> for f32 {
    #[inline(always)]
    fn cast(self) -> f16 {
        f16::from_f32(self)
    }
}

impl Cast<bf16> for f32 {
    #[inline(always)]
    fn cast(self) -> bf16 {
        bf16::from_bits(bf16_bits(self))
    }
}

/// What the elements of a type are read as.
trait Stored {
    type As;
}

macro_rules! stored {
    ($($t:ty as $other:ty)*) => {$(
        impl Stored for $t {
            type As = $other;
        }
    )*};
}
stored! {
    bool as Truth i8 as i8 u8 as u8 i16 as i16 u16 as u16 i32 as i32 u32 as u32 i64 as i64 u64 as u64 f16 as f16 bf16 as bf16
    f32 as f32 f64 as f64
}

type ConvertFn = unsafe fn(*mut u8, *const u8, usize);

/// Converts n elements from `src` to `dst`.
///
/// # Safety
/// `src` must be good for reading n valid elements of `from`, `dst` for writing n of `to`; apart from each other if the types differ, at any alignment.
pub unsafe fn convert(dst: *mut u8, to: DType, src: *const u8, from: DType, n: usize) {
    if to == from {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy(src, dst, n * to.size()) };
    }
    #[cfg(target_arch = "x86_64")]
    if super::isa() >= super::Isa::Avx2 {
        // SAFETY: the caller's promise, and the CPU has the features.
        return unsafe { x86::convert_fn(to, from)(dst, src, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { portable_fn(to, from)(dst, src, n) }
}

fn portable_fn(to: DType, from: DType) -> ConvertFn {
    with_dtype!(from, F => with_dtype!(to, T => cast_all::<<F as Stored>::As, T>))
}

/// # Safety
/// As for `convert`.
#[inline(always)]
unsafe fn cast_all<F: Cast<T>, T>(dst: *mut u8, src: *const u8, n: usize) {
    let (dst, src) = (dst.cast::<T>(), src.cast::<F>());
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { dst.add(i).write_unaligned(src.add(i).read_unaligned().cast()) }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::*;

    pub fn convert_fn(to: DType, from: DType) -> ConvertFn {
        match (from, to) {
            (DType::F16, DType::F32) => f16_to_f32,
            (DType::F32, DType::F16) => f32_to_f16,
            _ => with_dtype!(from, F => with_dtype!(to, T => framed::<<F as Stored>::As, T>)),
        }
    }

    /// # Safety
    /// As for `convert`; the CPU must have the features.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn framed<F: Cast<T>, T>(dst: *mut u8, src: *const u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { cast_all::<F, T>(dst, src, n) }
    }

    /// # Safety
    /// As for `convert`; the CPU must have the features.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn f16_to_f32(dst: *mut u8, src: *const u8, n: usize) {
        let whole = n - n % 8;
        // SAFETY: all of it stays within the n elements.
        unsafe {
            for i in (0..whole).step_by(8) {
                let v = _mm256_cvtph_ps(_mm_loadu_si128(src.add(2 * i).cast()));
                _mm256_storeu_ps(dst.add(4 * i).cast(), v);
            }
            cast_all::<f16, f32>(dst.add(4 * whole), src.add(2 * whole), n - whole);
        }
    }

    /// # Safety
    /// As for `convert`; the CPU must have the features.
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn f32_to_f16(dst: *mut u8, src: *const u8, n: usize) {
        let whole = n - n % 8;
        // SAFETY: all of it stays within the n elements.
        unsafe {
            for i in (0..whole).step_by(8) {
                let v = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(src.add(4 * i).cast()));
                _mm_storeu_si128(dst.add(2 * i).cast(), v);
            }
            cast_all::<f32, f16>(dst.add(2 * whole), src.add(4 * whole), n - whole);
        }
    }
}
