//! Stand-in until branch simd is merged.
use crate::dtype::{DType, Real};
use crate::function::expr::op::{Binary, Unary};
use crate::with_dtype;

pub trait SimdReal: Real {}
impl SimdReal for f32 {}
impl SimdReal for f64 {}

macro_rules! ops { ($f:ident, $t:ident, $($op:ident)*) => { match $f { $($t::$op => one::<T, { $t::$op as u8 }>,)* } } }

pub fn unary_fn<T: SimdReal>(op: Unary) -> unsafe fn(*mut T, *const T, usize) {
    unsafe fn one<T: SimdReal, const OP: u8>(y: *mut T, x: *const T, n: usize) {
        for i in 0..n {
            unsafe { *y.add(i) = T::from_f64(Unary::ALL[OP as usize].eval((*x.add(i)).to_f64())) }
        }
    }
    ops!(op, Unary, Neg Abs Sign Floor Ceil Round Sqrt Exp Expm1 Log Log1p Sin Cos Tan Sinh Cosh Tanh Asin Acos Atan Asinh Acosh Atanh Sigmoid Erf IsNan IsInf Not RoundF16 RoundBF16)
}
pub fn binary_fn<T: SimdReal>(op: Binary) -> unsafe fn(*mut T, *const T, *const T, usize) {
    unsafe fn one<T: SimdReal, const OP: u8>(y: *mut T, a: *const T, b: *const T, n: usize) {
        for i in 0..n {
            unsafe {
                *y.add(i) = T::from_f64(Binary::ALL[OP as usize].eval((*a.add(i)).to_f64(), (*b.add(i)).to_f64()))
            }
        }
    }
    ops!(op, Binary, Add Sub Mul Div Pow Max Min Atan2 Lt Le Gt Ge Eq Ne And Or Xor)
}
pub unsafe fn select<T: SimdReal>(y: *mut T, c: *const T, a: *const T, b: *const T, n: usize) {
    for i in 0..n {
        unsafe { *y.add(i) = if *c.add(i) != T::ZERO { *a.add(i) } else { *b.add(i) } }
    }
}
pub unsafe fn convert(dst: *mut u8, to: DType, src: *const u8, from: DType, n: usize) {
    with_dtype!(to, D => with_dtype!(from, S => {
        for i in 0..n { unsafe { *(dst as *mut D).add(i) = <D as crate::dtype::Element>::from_f64(crate::dtype::Element::to_f64(*(src as *const S).add(i))) } }
    }))
}
pub fn sum<T: SimdReal>(x: &[T]) -> T {
    x.iter().copied().sum()
}
pub fn add_assign<T: SimdReal>(y: &mut [T], x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += *x)
}
