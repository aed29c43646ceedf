//! Sums of rows, from the first to the last: what processes add up, so that the bits depend on the numbers and on how many
//! rows there are. One pass: each part of the sum stays in the first cache until all rows are in it.

use crate::array::Data;
use crate::dtype::{DType, Element};
use crate::pool::tasks::{self, SendPtr};
#[cfg(target_arch = "x86_64")]
use crate::simd::{Isa, isa};
use half::{bf16, f16};

/// Elements of a part of the sum.
const PART: usize = 1 << 11;
/// Elements of a task.
const TASK: usize = 1 << 14;

/// A number that can be added up: whole ones wrap around.
trait Summand: Copy + Send + Sync {
    fn plus(self, other: Self) -> Self;
    /// A part of `n` equal ones; of whole numbers what is left is cut off.
    fn divided(self, n: usize) -> Self;
}

macro_rules! summands {
    ($($t:ty, $wide:ty, |$a:ident, $b:ident| $sum:expr;)*) => {$(
        impl Summand for $t {
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                let ($a, $b) = (self, other);
                $sum
            }
            #[inline(always)]
            fn divided(self, n: usize) -> Self {
                (self as $wide / n as $wide) as $t
            }
        }
    )*};
}
summands! {
    f32, f32, |a, b| a + b;
    f64, f64, |a, b| a + b;
    i8, i64, |a, b| a.wrapping_add(b);
    u8, u64, |a, b| a.wrapping_add(b);
    i16, i64, |a, b| a.wrapping_add(b);
    u16, u64, |a, b| a.wrapping_add(b);
    i32, i64, |a, b| a.wrapping_add(b);
    u32, u64, |a, b| a.wrapping_add(b);
    i64, i64, |a, b| a.wrapping_add(b);
    u64, u64, |a, b| a.wrapping_add(b);
}

/// A byte that is true if it is not 0; the sum is "or", the same for any number of parts.
#[derive(Clone, Copy)]
struct TruthByte(u8);

impl Summand for TruthByte {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        TruthByte((self.0 | other.0 != 0) as u8)
    }
    #[inline(always)]
    fn divided(self, _: usize) -> Self {
        self
    }
}

/// Whether the pool's threads help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumBy {
    /// All threads.
    Pool,
    /// The caller alone: other work shall have the pool.
    Caller,
}

/// `out` becomes the sum of `rows` (as many rows of its size as there are) from first to last, divided by `divide_by`. Half
/// types are summed in `f32` and rounded once.
///
/// # Panics
/// If types or sizes do not fit, or both are in the same memory.
///
/// ```
/// use nnrs_kernels::{kernel::ordered_sum::{ordered_sum, SumBy}, DType, NdArray};
/// let rows = NdArray::from_slice(&[1i32, 2, 4, -9], [2, 2].into())?.read(DType::I32)?;
/// let out = NdArray::new([2].into());
/// ordered_sum(&rows, &out.overwrite(DType::I32)?, 2, SumBy::Pool);
/// assert_eq!(out.to_vec::<i32>()?, [2, -3]);
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn ordered_sum(rows: &Data, out: &Data, divide_by: usize, by: SumBy) {
    let n = out.len();
    let count = rows.len().checked_div(n).unwrap_or(0);
    assert!(rows.dtype() == out.dtype() && rows.len() == count * n, "rows of the sum's type and size");
    let (from, to) = (rows.ptr(), out.ptr());
    let is_apart = to.wrapping_add(out.bytes()) <= from || from.wrapping_add(rows.bytes()) <= to;
    assert!(n == 0 || rows.is_empty() || is_apart, "memory of its own");
    // SAFETY: sizes, types and memory were checked.
    unsafe { ordered_sum_at(rows.dtype(), from, count, to, n, divide_by, by) }
}

/// As [`ordered_sum`], over `count` rows of `n` elements at an address.
///
/// # Safety
/// The rows are there to be read and the `n` elements of `out` to be written, both aligned; they do not overlap, but that
/// a single row may be `out` itself.
pub unsafe fn ordered_sum_at(
    dtype: DType,
    rows: *const u8,
    count: usize,
    out: *mut u8,
    n: usize,
    divide_by: usize,
    by: SumBy,
) {
    if count == 0 || n == 0 {
        return;
    }
    let divide_by = divide_by.max(1);
    macro_rules! sum {
        ($of:ident, $t:ty) => {{
            let rows = SummedRows { first: SendPtr(rows.cast_mut().cast::<$t>()), count, stride: n };
            // SAFETY: the caller's promise.
            unsafe { in_tasks(rows, SendPtr(out.cast()), by, |rows, out| $of::<$t>(rows, out, divide_by)) }
        }};
    }
    match dtype {
        DType::Bool => sum!(add_up, TruthByte),
        DType::I8 => sum!(add_up, i8),
        DType::U8 => sum!(add_up, u8),
        DType::I16 => sum!(add_up, i16),
        DType::U16 => sum!(add_up, u16),
        DType::I32 => sum!(add_up, i32),
        DType::U32 => sum!(add_up, u32),
        DType::I64 => sum!(add_up, i64),
        DType::U64 => sum!(add_up, u64),
        DType::F32 => sum!(add_up, f32),
        DType::F64 => sum!(add_up, f64),
        DType::F16 => sum!(add_up_halves, f16),
        DType::BF16 => sum!(add_up_halves, bf16),
    }
}

/// Rows of numbers, one behind the other; or a part of each.
#[derive(Clone, Copy)]
struct SummedRows<T> {
    first: SendPtr<T>,
    count: usize,
    stride: usize,
}

impl<T> SummedRows<T> {
    /// # Safety
    /// Row `i` has `len` elements from here on, and nothing writes them meanwhile.
    unsafe fn row<'a>(self, i: usize, len: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { self.first.read(i * self.stride, len) }
    }
}

/// Calls `f` with each part of the rows and of their sum.
///
/// # Safety
/// As [`ordered_sum_at`].
unsafe fn in_tasks<T: Copy + Send + Sync>(
    rows: SummedRows<T>,
    out: SendPtr<T>,
    by: SumBy,
    f: impl Fn(SummedRows<T>, &mut [T]) + Sync,
) {
    let n = rows.stride;
    let parts = |task: usize| {
        let end = n.min((task + 1) * TASK);
        for start in (task * TASK..end).step_by(PART) {
            let rows = SummedRows { first: rows.first.add(start), ..rows };
            // SAFETY: within the n elements, and no other part.
            f(rows, unsafe { out.slice(start, PART.min(end - start)) });
        }
    };
    let elements = if by == SumBy::Pool { n.saturating_mul(rows.count) } else { 0 };
    tasks::share(n.div_ceil(TASK), elements, parts);
}

/// By the widest vectors that the loops below become; the bits are the same.
fn add_up<T: Summand>(rows: SummedRows<T>, out: &mut [T], divide_by: usize) {
    #[cfg(target_arch = "x86_64")]
    if isa() >= Isa::Avx2 {
        // SAFETY: the CPU has them.
        return unsafe { add_up_avx2(rows, out, divide_by) };
    }
    add_up_plain(rows, out, divide_by);
}

/// # Safety
/// The CPU must have the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_up_avx2<T: Summand>(rows: SummedRows<T>, out: &mut [T], divide_by: usize) {
    add_up_plain(rows, out, divide_by);
}

#[inline(always)]
fn add_up_plain<T: Summand>(rows: SummedRows<T>, out: &mut [T], divide_by: usize) {
    let n = out.len();
    // SAFETY: the promise of `ordered_sum_at`; a row that is the sum itself is alone, and is not asked for here.
    let row = |i| unsafe { rows.row(i, n) };
    match rows.count {
        1 if std::ptr::eq(rows.first.0, out.as_ptr()) => {}
        1 => out.copy_from_slice(row(0)),
        _ => {
            let (a, b) = (row(0), row(1));
            out.iter_mut().zip(a.iter().zip(b)).for_each(|(out, (a, b))| *out = a.plus(*b));
        }
    }
    for i in 2..rows.count {
        let more = row(i);
        out.iter_mut().zip(more).for_each(|(out, more)| *out = out.plus(*more));
    }
    if divide_by > 1 {
        out.iter_mut().for_each(|out| *out = out.divided(divide_by));
    }
}

fn add_up_halves<T: Element>(rows: SummedRows<T>, out: &mut [T], divide_by: usize) {
    for (k, out) in out.iter_mut().enumerate() {
        // SAFETY: the promise of `ordered_sum_at`; an element is read before it is written.
        let number = |i: usize| unsafe { *rows.first.0.add(i * rows.stride + k) }.to_f64() as f32;
        let sum = (1..rows.count).fold(number(0), |sum, i| sum + number(i));
        *out = T::from_f64((sum / divide_by as f32) as f64);
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;
    use crate::with_dtype;

    /// Numbers of either sign; unsigned ones that `f64` has, too.
    fn values<T: Element>(n: usize) -> Vec<f64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((state >> 40) as f64 / (1u64 << 23) as f64 - 1.0) * 100.0
        };
        let sign = |v: f64| if T::DTYPE == DType::U64 { v.abs() } else { v };
        (0..n).map(|_| sign(next())).collect()
    }

    fn data<T: Element>(values: &[f64]) -> Data {
        let data = Data::new(T::DTYPE, values.len()).unwrap();
        data.as_mut_slice::<T>().iter_mut().zip(values).for_each(|(d, v)| *d = T::from_f64(*v));
        data
    }

    /// Element by element, in the type to sum in; whole numbers small enough that `f64` has them.
    fn plain<T: Element>(rows: &Data, count: usize, n: usize, divide_by: usize) -> Vec<T> {
        let x = rows.as_slice::<T>();
        let sum = |k: usize| {
            let row = |i: usize| x[i * n + k].to_f64();
            let narrow = matches!(T::DTYPE, DType::F16 | DType::BF16 | DType::F32);
            let rounded = |v: f64| if narrow { v as f32 as f64 } else { v };
            let whole = |v: f64| if T::DTYPE.is_float() { v } else { T::from_f64(v).to_f64() };
            let sum = (1..count).fold(row(0), |sum, i| whole(rounded(sum + row(i))));
            let divide_by = if T::DTYPE == DType::Bool { 1 } else { divide_by };
            T::from_f64(rounded(sum / divide_by as f64))
        };
        (0..n).map(sum).collect()
    }

    unit_test!(sums_are_those_of_one_number_after_the_other);
    fn sums_are_those_of_one_number_after_the_other() {
        for (count, n) in [(1, 5), (2, 1), (2, 2047), (3, 2049), (4, 100_001), (7, 3), (0, 0), (3, 0)] {
            for dtype in DType::ALL {
                for (divide_by, by) in [(1, SumBy::Pool), (count.max(1), SumBy::Caller)] {
                    with_dtype!(dtype, T => {
                        let (rows, out) = (data::<T>(&values::<T>(count * n)), data::<T>(&vec![1.0; n]));
                        ordered_sum(&rows, &out, divide_by, by);
                        assert_eq!(out.as_slice::<T>(), plain::<T>(&rows, count, n, divide_by), "{dtype} {count} {n}");
                    });
                }
            }
        }
    }

    unit_test!(a_row_may_be_the_sum_itself);
    fn a_row_may_be_the_sum_itself() {
        let x = data::<i16>(&[-7.0, 7.0, 300.0]);
        // SAFETY: a single row, which is the sum.
        unsafe { ordered_sum_at(DType::I16, x.ptr(), 1, x.ptr(), 3, 2, SumBy::Pool) };
        assert_eq!(x.as_slice::<i16>(), [-3, 3, 150]);
    }

    unit_test!(whole_numbers_wrap_around_and_are_cut_off);
    fn whole_numbers_wrap_around_and_are_cut_off() {
        let sum = |rows: &[f64], divide_by| {
            let (rows, out) = (data::<i8>(rows), data::<i8>(&[0.0]));
            ordered_sum(&rows, &out, divide_by, SumBy::Caller);
            out.as_slice::<i8>()[0]
        };
        assert_eq!([sum(&[100.0, 100.0], 1), sum(&[-3.0, -4.0], 2), sum(&[-128.0, 0.0], 300)], [-56, -3, 0]);
    }

    unit_test!(overlapping_memory_is_refused, panics = "memory of its own");
    fn overlapping_memory_is_refused() {
        let x = data::<f32>(&[0.0; 6]);
        ordered_sum(&x.within(0, 4), &x.within(2, 2), 1, SumBy::Pool);
    }
}
