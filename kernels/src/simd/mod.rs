//! Loops over contiguous arrays, compiled for several instruction sets and chosen once, at run time.
//!
//! The environment variable `NNRS_SIMD` (`avx512`, `avx2`, `portable`) asks for less than the CPU can do.

mod convert;
mod kernels;
pub(crate) mod lanes;
mod math;
mod number;
mod ops;
mod portable;
pub(crate) mod reduce;
mod steps;
pub mod stream;
pub(crate) mod turn;
mod vector;
mod wide;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod tanh_pieces;
#[cfg(target_arch = "x86_64")]
mod transpose16;
#[cfg(target_arch = "x86_64")]
mod transpose8;

use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use crate::dtype::{Element, Real};
use crate::expr::op::{Binary, Unary};
use crate::pool::tasks;

pub use convert::convert;
use kernels::Kernels;
pub use kernels::{BinaryFn, SelectFn, StepsFn, UnaryFn};
pub use number::Number;
pub use steps::{Act, RegisterOp, TileAddress};
pub use vector::{Body, Vector};

/// The element types that have loops: f32 and f64.
pub trait SimdReal: Real {
    #[doc(hidden)]
    fn kernels() -> &'static Kernels<Self>;
    #[doc(hidden)]
    unsafe fn run_body(b: &impl Body<Self>);
}

macro_rules! simd_real {
    ($t:ty, $table:ident, $v:ident) => {
        impl SimdReal for $t {
            unsafe fn run_body(b: &impl Body<Self>) {
                // SAFETY: the caller's promise; `isa` names what this CPU has.
                unsafe {
                    match isa() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx512 => avx512::body::<avx512::$v>(b),
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 => avx2::body::<avx2::$v>(b),
                        _ => portable::body::<portable::$v>(b),
                    }
                }
            }

            #[inline]
            fn kernels() -> &'static Kernels<Self> {
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => &avx512::$table,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => &avx2::$table,
                    _ => &portable::$table,
                }
            }
        }
    };
}
simd_real!(f32, F32, V32);
simd_real!(f64, F64, V64);

/// The instruction sets, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    Portable = 1,
    Avx2 = 2,
    Avx512 = 3,
}

/// The instruction set in use.
#[inline]
pub fn isa() -> Isa {
    static CHOSEN: AtomicU8 = AtomicU8::new(0);
    match CHOSEN.load(Relaxed) {
        1 => Isa::Portable,
        2 => Isa::Avx2,
        3 => Isa::Avx512,
        _ => {
            let chosen = choose(std::env::var("NNRS_SIMD").ok().as_deref());
            CHOSEN.store(chosen as u8, Relaxed);
            chosen
        }
    }
}

#[cold]
fn choose(asked: Option<&str>) -> Isa {
    let most = match asked {
        Some("portable") => Isa::Portable,
        Some("avx2") => Isa::Avx2,
        _ => Isa::Avx512,
    };
    most.min(best())
}

/// The most that this CPU has.
#[cfg(target_arch = "x86_64")]
fn best() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        _ => Isa::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Isa {
    Isa::Portable
}

/// The loop of one operation, for callers that run it over many short arrays.
pub fn unary_fn<T: SimdReal>(op: Unary) -> UnaryFn<T> {
    (T::kernels().unary)(op)
}

/// The loop of one operation, for callers that run it over many short arrays.
pub fn binary_fn<T: SimdReal>(op: Binary) -> BinaryFn<T> {
    (T::kernels().binary)(op)
}

/// The loop of `select`.
pub fn select_fn<T: SimdReal>() -> SelectFn<T> {
    T::kernels().select
}

/// The loop of runs of cheap operations, and the length of its blocks.
pub fn steps_fn<T: SimdReal>() -> (StepsFn<T>, usize) {
    (T::kernels().steps, T::kernels().block)
}

/// What begins on a cache line: vectors on the stack that cross two of them are slow to read after they were written.
#[repr(align(64))]
pub struct CacheLines<T>(pub T);

/// Runs code of the caller's, compiled for the CPU at hand.
/// # Safety
/// The body's own terms.
pub unsafe fn run<T: SimdReal>(b: &impl Body<T>) {
    // SAFETY: the caller's promise.
    unsafe { T::run_body(b) }
}

/// `y` is `x` in reverse: they have the same length. In steps of a constant length, which become shuffles of vectors.
pub fn reverse<T: Copy>(y: &mut [T], x: &[T]) {
    const STEP: usize = 8;
    let (mut to, from) = (y.chunks_exact_mut(STEP), x.rchunks_exact(STEP));
    let rest = from.remainder();
    for (y, x) in to.by_ref().zip(from) {
        let x: [T; STEP] = std::array::from_fn(|i| x[STEP - 1 - i]);
        y.copy_from_slice(&x);
    }
    to.into_remainder().iter_mut().zip(rest.iter().rev()).for_each(|(y, x)| *y = *x);
}

/// `y += x` with x in reverse, which has y's length; as [`reverse`].
pub fn add_reversed<T: Real>(y: &mut [T], x: &[T]) {
    const STEP: usize = 8;
    let (mut to, from) = (y.chunks_exact_mut(STEP), x.rchunks_exact(STEP));
    let rest = from.remainder();
    for (y, x) in to.by_ref().zip(from) {
        let x: [T; STEP] = std::array::from_fn(|i| x[STEP - 1 - i]);
        (0..STEP).for_each(|i| y[i] += x[i]);
    }
    to.into_remainder().iter_mut().zip(rest.iter().rev()).for_each(|(y, x)| *y += *x);
}

/// `y = op(x)`; y may be x.
/// # Safety
/// Both pointers must be good for n elements; the arrays must be the same or apart.
pub unsafe fn unary<T: SimdReal>(op: Unary, y: *mut T, x: *const T, n: usize) {
    // SAFETY: the caller's promise; the table is one for this CPU.
    unsafe { unary_fn::<T>(op)(y, x, n) }
}

/// `y = op(a, b)`; y may be a or b or both.
/// # Safety
/// All pointers must be good for n elements; y must be the same as each input or apart from it.
pub unsafe fn binary<T: SimdReal>(op: Binary, y: *mut T, a: *const T, b: *const T, n: usize) {
    // SAFETY: the caller's promise; the table is one for this CPU.
    unsafe { binary_fn::<T>(op)(y, TileAddress::tile(a), TileAddress::tile(b), n) }
}

/// `y = c != 0 ? a : b` (NaN counts as true); y may be any of them.
/// # Safety
/// All pointers must be good for n elements; y must be the same as each input or apart from it.
pub unsafe fn select<T: SimdReal>(y: *mut T, c: *const T, a: *const T, b: *const T, n: usize) {
    // SAFETY: the caller's promise; the table is one for this CPU.
    unsafe { select_fn::<T>()(y, c, a, b, n) }
}

/// Tells the CPU that the memory at `p` will be wanted soon; any address is allowed.
#[inline(always)]
pub fn prefetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it reads nothing and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(p.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Bytes of a cache line.
pub const CACHE_LINE: usize = 64;

/// Sets all elements to `v`, on all threads if they are many.
pub fn fill<T: Element>(y: &mut [T], v: T) {
    if y.len() < tasks::MIN_PARALLEL {
        // SAFETY: the slice is the caller's.
        return unsafe { run::<f64>(&Filled { y: tasks::Shared(y.as_mut_ptr()), n: y.len(), v }) };
    }
    tasks::parts(y, tasks::PART, |_, y| fill(y, v));
}

struct Filled<T> {
    y: tasks::Shared<T>,
    n: usize,
    v: T,
}

impl<T: Element> Body<f64> for Filled<T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = f64>>(&self) {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.y.0, self.n) }.fill(self.v);
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<T: SimdReal>(x: &[T]) -> T {
            // SAFETY: the table is one for this CPU.
            unsafe { (T::kernels().$name)(x) }
        }
    )*};
}

reductions! {
    /// The sum, blocked and in pairs: accurate, and the same bits on every CPU.
    sum;
    /// The sum of |x|.
    sum_abs;
    /// The sum of x^2.
    sum_squares;
    /// The largest element, NaN left out; -inf where there is none.
    max;
    /// The smallest element, NaN left out; inf where there is none.
    min;
}

/// The sum of `a[i] * b[i]` over the shorter length.
pub fn dot<T: SimdReal>(a: &[T], b: &[T]) -> T {
    let n = a.len().min(b.len());
    // SAFETY: the table is one for this CPU.
    unsafe { (T::kernels().dot)(&a[..n], &b[..n]) }
}

/// `y += a * x`, the product rounded first.
pub fn axpy<T: SimdReal>(y: &mut [T], a: T, x: &[T]) {
    // SAFETY: the table is one for this CPU.
    unsafe { (T::kernels().axpy)(y, a, x) }
}

/// `y += x`
pub fn add_assign<T: SimdReal>(y: &mut [T], x: &[T]) {
    // SAFETY: the table is one for this CPU.
    unsafe { (T::kernels().add_assign)(y, x) }
}

/// `y *= a`
pub fn scale<T: SimdReal>(y: &mut [T], a: T) {
    // SAFETY: the table is one for this CPU.
    unsafe { (T::kernels().scale)(y, a) }
}

/// `y += a`
pub fn add_scalar<T: SimdReal>(y: &mut [T], a: T) {
    // SAFETY: the table is one for this CPU.
    unsafe { (T::kernels().add_scalar)(y, a) }
}

/// `y = exp(x - shift)`; gives the sum of y.
///
/// # Panics
/// If the lengths differ.
pub fn exp_sum<T: SimdReal>(y: &mut [T], x: &[T], shift: T) -> T {
    assert_eq!(y.len(), x.len(), "exp_sum: slices of one length expected");
    let mut sum = reduce::Pairwise::new();
    for (y, x) in y.chunks_mut(reduce::BLOCK).zip(x.chunks(reduce::BLOCK)) {
        // SAFETY: the table is one for this CPU; both are of this length.
        unsafe { (T::kernels().exp_shifted)(y.as_mut_ptr(), x.as_ptr(), x.len(), shift) };
        sum.push(self::sum(y));
    }
    sum.total()
}

/// What `exp_sum` gives, bit for bit, without storing the terms.
pub fn sum_exp<T: SimdReal>(x: &[T], shift: T) -> T {
    // Not filled first: rows are often shorter than that would take.
    let mut block = [const { MaybeUninit::<T>::uninit() }; reduce::BLOCK];
    let terms = block.as_mut_ptr() as *mut T;
    let mut sum = reduce::Pairwise::new();
    for x in x.chunks(reduce::BLOCK) {
        // SAFETY: the table is one for this CPU; the block is long enough, and what is summed has just been written.
        unsafe {
            (T::kernels().exp_shifted)(terms, x.as_ptr(), x.len(), shift);
            sum.push(self::sum(std::slice::from_raw_parts(terms, x.len())));
        }
    }
    sum.total()
}

#[cfg(feature = "emulate")]
mod tests;
#[cfg(feature = "emulate")]
mod tests_arrays;
#[cfg(feature = "emulate")]
mod tests_steps;
