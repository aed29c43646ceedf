//! Element types of arrays: NNabla's, and bfloat16.

use half::{bf16, f16};

/// The type of one array element.
///
/// ```
/// use nnrs_kernels::DType;
/// assert_eq!((DType::F32.size(), DType::F32.name()), (4, "float32"));
/// assert_eq!(DType::from_name("bfloat16"), Some(DType::BF16));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// `i8`.
    I8,
    /// `u8`.
    U8,
    /// `i16`.
    I16,
    /// `u16`.
    U16,
    /// `i32`.
    I32,
    /// `u32`.
    U32,
    /// `i64`.
    I64,
    /// `u64`.
    U64,
    /// Half precision, `half::f16`.
    F16,
    /// bfloat16, `half::bf16`.
    BF16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl DType {
    /// All types.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// NumPy's name of the type (`bfloat16` for the one NumPy does not have).
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::I16 => "int16",
            DType::U16 => "uint16",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::I64 => "int64",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// The type by the name that NumPy gives it.
    #[inline]
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|t| t.name() == name)
    }

    /// True for half, bfloat16, float and double.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that can be an array element.
///
/// ```
/// use nnrs_kernels::dtype::Element;
/// assert_eq!((f32::DTYPE, u8::from_f64(-1.0)), (nnrs_kernels::DType::F32, 255));
/// ```
pub trait Element: Copy + Send + Sync + Default + PartialEq + std::fmt::Debug + 'static {
    /// The type as a value.
    const DTYPE: DType;
    /// The number as `f64`; a large 64-bit integer is rounded.
    fn to_f64(self) -> f64;
    /// The nearest number of the type as C finds it: integers lose their fraction, those that do not fit wrap around.
    fn from_f64(v: f64) -> Self;
}

macro_rules! elements {
    ($($t:ty, $d:ident, |$x:ident| $to:expr, |$v:ident| $from:expr;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$d;
            #[inline(always)]
            fn to_f64(self) -> f64 { let $x = self; $to }
            #[inline(always)]
            fn from_f64($v: f64) -> Self { $from }
        }
    )*};
}

/// As C does it on x86-64 (and so NumPy and NNabla): towards zero; NaN and what does not fit give the smallest number.
#[inline(always)]
fn to_i32(v: f64) -> i32 {
    if v > -2147483649.0 && v < 2147483648.0 { v as i32 } else { i32::MIN }
}

#[inline(always)]
fn to_i64(v: f64) -> i64 {
    if (-9223372036854775808.0..9223372036854775808.0).contains(&v) { v as i64 } else { i64::MIN }
}

#[inline(always)]
fn to_u64(v: f64) -> u64 {
    if v >= 9223372036854775808.0 { v as u64 } else { to_i64(v) as u64 }
}

// Types below 32 bits keep the low bits of an i32, u32 those of an i64: negative numbers wrap around.
elements! {
    bool, Bool, |x| x as u8 as f64, |v| v != 0.0;
    i8, I8, |x| x as f64, |v| to_i32(v) as i8;
    u8, U8, |x| x as f64, |v| to_i32(v) as u8;
    i16, I16, |x| x as f64, |v| to_i32(v) as i16;
    u16, U16, |x| x as f64, |v| to_i32(v) as u16;
    i32, I32, |x| x as f64, |v| to_i32(v);
    u32, U32, |x| x as f64, |v| to_i64(v) as u32;
    i64, I64, |x| x as f64, |v| to_i64(v);
    u64, U64, |x| x as f64, |v| to_u64(v);
    f16, F16, |x| x.to_f64(), |v| f16::from_f64(v);
    bf16, BF16, |x| x.to_f64(), |v| bf16::from_f64(v);
    f32, F32, |x| x as f64, |v| v as f32;
    f64, F64, |x| x, |v| v;
}

/// A number that may have any bits.
///
/// # Safety
/// All bits are a value.
pub unsafe trait AnyBits: Copy {}

// SAFETY: numbers of the machine.
unsafe impl AnyBits for u32 {}
// SAFETY: as above.
unsafe impl AnyBits for u64 {}
// SAFETY: as above.
unsafe impl AnyBits for f32 {}
// SAFETY: as above.
unsafe impl AnyBits for f64 {}

// SAFETY: numbers of which each may have any bits.
unsafe impl<T: AnyBits, const N: usize> AnyBits for [T; N] {}

/// The types kernels compute in: `f32` (also for half and bfloat16 data) and `f64`.
pub trait Real:
    Element
    + AnyBits
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + std::iter::Sum
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// e to this power.
    fn exp(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// This number to the power `e`.
    fn powf(self, e: Self) -> Self;
    /// True for NaN.
    fn is_nan(self) -> bool;
}

macro_rules! reals {
    ($($t:ty)*) => {$(
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = <$t>::INFINITY;
            #[inline(always)] fn exp(self) -> Self { <$t>::exp(self) }
            #[inline(always)] fn ln(self) -> Self { <$t>::ln(self) }
            #[inline(always)] fn sqrt(self) -> Self { <$t>::sqrt(self) }
            #[inline(always)] fn abs(self) -> Self { <$t>::abs(self) }
            #[inline(always)] fn powf(self, e: Self) -> Self { <$t>::powf(self, e) }
            #[inline(always)] fn is_nan(self) -> bool { <$t>::is_nan(self) }
        }
    )*};
}
reals!(f32 f64);

/// Calls `$body` with `$T` bound to the Rust type of the `DType` value `$d`.
///
/// ```
/// use nnrs_kernels::{with_dtype, DType};
/// assert_eq!(with_dtype!(DType::I16, T => size_of::<T>()), 2);
/// ```
#[macro_export]
macro_rules! with_dtype {
    ($d:expr, $T:ident => $body:expr) => {
        match $d {
            $crate::dtype::DType::Bool => {
                type $T = bool;
                $body
            }
            $crate::dtype::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::dtype::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::dtype::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::dtype::DType::BF16 => {
                type $T = half::bf16;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
        }
    };
}

/// The type in which kernels compute when results are stored as `dtype`.
///
/// ```
/// use nnrs_kernels::{dtype::compute_dtype, DType};
/// assert_eq!((compute_dtype(DType::BF16), compute_dtype(DType::F64)), (DType::F32, DType::F64));
/// ```
#[inline]
pub fn compute_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Runs `$body` with `$T` = the type to compute in.
#[macro_export]
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype == $crate::DType::F64 {
            type $T = f64;
            $body
        } else {
            type $T = f32;
            $body
        }
    };
}
