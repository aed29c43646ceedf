//! The table of compiled loops that each instruction set offers, and the loops around vectors.

use crate::expr::op::{Binary, Unary};

use super::steps::{RegisterOp, TileAddress};
use super::vector::{Op1, Op2, Vector};

pub type UnaryFn<T> = unsafe fn(*mut T, *const T, usize);
pub type BinaryFn<T> = unsafe fn(*mut T, TileAddress<T>, TileAddress<T>, usize);
pub type StepsFn<T> = unsafe fn(&[RegisterOp], *const TileAddress<T>, usize);
pub type SelectFn<T> = unsafe fn(*mut T, *const T, *const T, *const T, usize);

/// The loops for one element type. The functions may be called only on a CPU with the instruction set's features.
pub struct Kernels<T: 'static> {
    pub unary: fn(Unary) -> UnaryFn<T>,
    pub binary: fn(Binary) -> BinaryFn<T>,
    pub select: SelectFn<T>,
    /// Cheap operations in registers, by blocks of `block` elements.
    pub steps: StepsFn<T>,
    pub block: usize,
    pub exp_shifted: unsafe fn(*mut T, *const T, usize, T),
    pub sum: unsafe fn(&[T]) -> T,
    pub sum_abs: unsafe fn(&[T]) -> T,
    pub sum_squares: unsafe fn(&[T]) -> T,
    pub dot: unsafe fn(&[T], &[T]) -> T,
    pub max: unsafe fn(&[T]) -> T,
    pub min: unsafe fn(&[T]) -> T,
    pub axpy: unsafe fn(&mut [T], T, &[T]),
    pub add_assign: unsafe fn(&mut [T], &[T]),
    pub scale: unsafe fn(&mut [T], T),
    pub add_scalar: unsafe fn(&mut [T], T),
}

/// `y[i] = o(x[i])`; y may be x.
/// # Safety
/// y and x must be good for n elements, and overlap wholly or not at all.
#[inline(always)]
pub unsafe fn map1<V: Vector>(o: &impl Op1, y: *mut V::E, x: *const V::E, n: usize) {
    let whole = n - n % V::N;
    // SAFETY: all of it stays within the n elements.
    unsafe {
        for i in (0..whole).step_by(V::N) {
            V::apply1(o, V::load(x.add(i))).store(y.add(i));
        }
        if whole < n {
            V::apply1(o, V::load_part(x.add(whole), n - whole)).store_part(y.add(whole), n - whole);
        }
    }
}

/// `y[i] = o(a[i], b[i])`; y may be a or b.
/// # Safety
/// As for `map1`; a block's elements are some vectors.
#[inline(always)]
pub unsafe fn map2<V: Vector>(o: &impl Op2, y: *mut V::E, a: TileAddress<V::E>, b: TileAddress<V::E>, n: usize) {
    let whole = n - n % V::N;
    let rest = n - whole;
    // SAFETY: all of it stays within the n elements, or the block's.
    unsafe {
        for i in (0..whole).step_by(V::N) {
            V::apply2(o, V::load(a.at(i)), V::load(b.at(i))).store(y.add(i));
        }
        if rest > 0 {
            let (a, b) = (V::load_part(a.at(whole), rest), V::load_part(b.at(whole), rest));
            V::apply2(o, a, b).store_part(y.add(whole), rest);
        }
    }
}

/// `y[i] = c[i] != 0 ? a[i] : b[i]`; y may be any of them.
/// # Safety
/// As for `map1`.
#[inline(always)]
pub unsafe fn select<V: Vector>(y: *mut V::E, c: *const V::E, a: *const V::E, b: *const V::E, n: usize) {
    let whole = n - n % V::N;
    let rest = n - whole;
    // SAFETY: all of it stays within the n elements.
    unsafe {
        for i in (0..whole).step_by(V::N) {
            V::select(V::load(c.add(i)).is_true(), V::load(a.add(i)), V::load(b.add(i))).store(y.add(i));
        }
        if rest > 0 {
            let c = V::load_part(c.add(whole), rest).is_true();
            let (a, b) = (V::load_part(a.add(whole), rest), V::load_part(b.add(whole), rest));
            V::select(c, a, b).store_part(y.add(whole), rest);
        }
    }
}

/// Puts functions of `reduce` into frames with the instruction set's features.
macro_rules! framed {
    ($feature:tt; $($name:ident($($a:ident: $t:ty),*) $(-> $r:ty)?;)*) => {$(
        $crate::simd::kernels::framed!(@ $feature
        /// # Safety
        /// The CPU must have the features.
        unsafe fn $name<T: crate::dtype::Real>($($a: $t),*) $(-> $r)? {
            $crate::simd::reduce::$name($($a),*)
        });
    )*};
    (@ { $(#[$feature:meta])* } $item:item) => { $(#[$feature])* $item };
}

/// Compiles the loops for one instruction set: the tables `F32` and `F64`.
macro_rules! kernels {
    ($v32:ty, $v64:ty, $block:literal; $(#[$feature:meta])*) => {
        $(#[$feature])*
        unsafe fn unary<V: Vector, O: Op1 + Default>(y: *mut V::E, x: *const V::E, n: usize) {
            // SAFETY: the caller's promise.
            unsafe { $crate::simd::kernels::map1::<V>(&O::default(), y, x, n) }
        }
        $(#[$feature])*
        unsafe fn binary<V: Vector, O: Op2 + Default>(
            y: *mut V::E,
            a: $crate::simd::steps::TileAddress<V::E>,
            b: $crate::simd::steps::TileAddress<V::E>,
            n: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $crate::simd::kernels::map2::<V>(&O::default(), y, a, b, n) }
        }
        $(#[$feature])*
        unsafe fn select<V: Vector>(y: *mut V::E, c: *const V::E, a: *const V::E, b: *const V::E, n: usize) {
            // SAFETY: the caller's promise.
            unsafe { $crate::simd::kernels::select::<V>(y, c, a, b, n) }
        }
        $(#[$feature])*
        unsafe fn steps<V: Vector>(
            steps: &[$crate::simd::steps::RegisterOp],
            places: *const $crate::simd::steps::TileAddress<V::E>,
            n: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $crate::simd::steps::run::<V, $block>(steps, places, n) }
        }
        $(#[$feature])*
        unsafe fn exp_shifted<V: Vector<E: crate::dtype::Element>>(y: *mut V::E, x: *const V::E, n: usize, shift: V::E) {
            let o = $crate::simd::ops::ShiftedExp(crate::dtype::Element::to_f64(shift));
            // SAFETY: the caller's promise.
            unsafe { $crate::simd::kernels::map1::<V>(&o, y, x, n) }
        }
        $(#[$feature])*
        unsafe fn sum<V: Vector<E: crate::dtype::Real>, R: $crate::simd::reduce::VectorReduction>(x: &[V::E]) -> V::E {
            $crate::simd::reduce::blocked::<V, R>(x, x)
        }
        $(#[$feature])*
        unsafe fn dot<V: Vector<E: crate::dtype::Real>>(a: &[V::E], b: &[V::E]) -> V::E {
            $crate::simd::reduce::blocked::<V, $crate::simd::reduce::Dot>(a, b)
        }
        $(#[$feature])*
        unsafe fn extreme<V: Vector<E: crate::dtype::Real>, R: $crate::simd::reduce::VectorReduction>(x: &[V::E]) -> V::E {
            $crate::simd::reduce::extreme::<V, R>(x)
        }
        pub type V32 = $v32;
        pub type V64 = $v64;
        /// # Safety
        /// The body's own terms; the CPU must have the features.
        $(#[$feature])*
        pub unsafe fn body<V: Vector>(b: &impl $crate::simd::vector::Body<V::E>) {
            // SAFETY: the caller's promise.
            unsafe { b.run::<V>() }
        }
        $crate::simd::kernels::framed! {
            { $(#[$feature])* };
            axpy(y: &mut [T], a: T, x: &[T]);
            add_assign(y: &mut [T], x: &[T]);
            scale(y: &mut [T], a: T);
            add_scalar(y: &mut [T], a: T);
        }
        $crate::simd::kernels::tables!($v32, $v64, $block);
    };
}

macro_rules! tables {
    ($v32:ty, $v64:ty, $block:literal) => {
        fn unary_of<V: Vector>(op: crate::expr::op::Unary) -> $crate::simd::kernels::UnaryFn<V::E> {
            $crate::simd::kernels::choose!(op, Unary, unary, V;
                Neg Abs Sign Floor Ceil Round Sqrt Exp Expm1 Log Log1p Sin Cos Tan Sinh Cosh Tanh Asin Acos Atan Asinh Acosh Atanh
                Sigmoid Erf IsNan IsInf Not RoundF16 RoundBF16)
        }
        fn binary_of<V: Vector>(op: crate::expr::op::Binary) -> $crate::simd::kernels::BinaryFn<V::E> {
            $crate::simd::kernels::choose!(op, Binary, binary, V;
                Add Sub Mul Div Pow Max Min Atan2 Lt Le Gt Ge Eq Ne And Or Xor)
        }
        pub static F32: $crate::simd::kernels::Kernels<f32> = $crate::simd::kernels::table!(f32, $v32, $block);
        pub static F64: $crate::simd::kernels::Kernels<f64> = $crate::simd::kernels::table!(f64, $v64, $block);
    };
}

macro_rules! table {
    ($t:ty, $v:ty, $block:literal) => {
        $crate::simd::kernels::Kernels {
            unary: unary_of::<$v>,
            binary: binary_of::<$v>,
            select: select::<$v>,
            steps: steps::<$v>,
            block: $block * <$v as Vector>::N,
            exp_shifted: exp_shifted::<$v>,
            sum: sum::<$v, $crate::simd::reduce::Sum>,
            sum_abs: sum::<$v, $crate::simd::reduce::SumAbs>,
            sum_squares: sum::<$v, $crate::simd::reduce::SumSquares>,
            dot: dot::<$v>,
            max: extreme::<$v, $crate::simd::reduce::Max>,
            min: extreme::<$v, $crate::simd::reduce::Min>,
            axpy: axpy::<$t>,
            add_assign: add_assign::<$t>,
            scale: scale::<$t>,
            add_scalar: add_scalar::<$t>,
        }
    };
}

/// The loop of each operation, by name.
macro_rules! choose {
    ($op:expr, $kind:ident, $loop:ident, $v:ident; $($name:ident)*) => {
        match $op {
            $(crate::expr::op::$kind::$name => $loop::<$v, $crate::simd::ops::$name>,)*
        }
    };
}

pub(super) use {choose, framed, kernels, table, tables};
