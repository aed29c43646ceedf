//! On the host, by the crate rustfft: a line at a time, those of inner axes by way of a buffer.

use super::Fft;
use crate::array::Output;
use crate::array::alloc::check_refused;
use crate::array::scratch;
use crate::dtype::Element;
use crate::pool;
use crate::pool::tasks::{self, Shared};
use crate::simd::lanes::TransposeBlock;
use crate::simd::turn::turn;
use crate::simd::{self, SimdReal};
use rustfft::num_complex::Complex;
use rustfft::{FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, OnceLock};

/// Lines beside each other that are transformed together.
pub(super) const COLUMNS: usize = 16;
/// Elements that a task transforms at least.
const TASK: usize = 1 << 13;

type FftPlan<T> = Arc<dyn rustfft::Fft<T>>;

/// How each axis is transformed, by the sign of the exponent: made when it is first wanted.
#[derive(Default)]
pub struct FftPlans {
    float: [OnceLock<Vec<FftPlan<f32>>>; 2],
    double: [OnceLock<Vec<FftPlan<f64>>>; 2],
}

/// Numbers that there are transforms of.
pub trait Transformed: SimdReal + FftNum {
    /// Where the plans of this type are.
    fn plans(plans: &FftPlans, inverse: bool) -> &OnceLock<Vec<FftPlan<Self>>>;
}

impl Transformed for f32 {
    fn plans(plans: &FftPlans, inverse: bool) -> &OnceLock<Vec<FftPlan<f32>>> {
        &plans.float[inverse as usize]
    }
}

impl Transformed for f64 {
    fn plans(plans: &FftPlans, inverse: bool) -> &OnceLock<Vec<FftPlan<f64>>> {
        &plans.double[inverse as usize]
    }
}

/// Pairs of numbers as complex ones.
pub(crate) fn complex<T: Transformed>(x: &mut [T]) -> &mut [Complex<T>] {
    // SAFETY: a complex number is two numbers, one after the other (`repr(C)`), and aligned as they are.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len() / 2) }
}

/// Asks for the memory of plans of that many bytes, so that they may be refused.
pub(crate) fn ask(bytes: usize) {
    check_refused(bytes).unwrap_or_else(|e| pool::refuse(e));
}

fn planned<T: Transformed>(f: &Fft, inverse: bool) -> &[FftPlan<T>] {
    T::plans(&f.plans, inverse).get_or_init(|| {
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        ask(f.axes.iter().sum::<usize>() * 4 * size_of::<T>());
        let mut planner = FftPlanner::new();
        f.axes.iter().map(|&n| planner.plan_fft(n, direction)).collect()
    })
}

/// Transforms lines that lie one after the other.
fn in_place<T: Transformed>(plan: &FftPlan<T>, lines: &mut [T]) {
    scratch::with(2 * plan.get_inplace_scratch_len(), |room: &mut [T]| {
        plan.process_with_scratch(complex(lines), complex(room));
    });
}

/// The last axis, from x to y, and the factor.
fn rows<T: Transformed>(f: &Fft, plan: &FftPlan<T>, x: &[T], y: &mut [T], output: Output) {
    let line = 2 * f.axes.last().copied().unwrap_or(1);
    let factor = <T as Element>::from_f64(f.factor);
    let part = (TASK / line).max(1) * line;
    let scaled = |to: &mut [T], x: &[T]| match f.factor == 1.0 {
        true => to.copy_from_slice(x),
        false => to.iter_mut().zip(x).for_each(|(y, &x)| *y = x * factor),
    };
    tasks::parts(y, part, |task, y| {
        let x = &x[task * part..][..y.len()];
        if output == Output::Write {
            scaled(y, x);
            return in_place(plan, y);
        }
        scratch::with(y.len(), |lines: &mut [T]| {
            scaled(lines, x);
            in_place(plan, lines);
            simd::add_assign(y, lines);
        });
    });
}

/// An axis of `n` with `inner` complex numbers behind it.
fn columns<T: Transformed>(plan: &FftPlan<T>, y: &mut [T], n: usize, inner: usize) {
    let (blocks, size) = (inner.div_ceil(COLUMNS), y.len());
    let outer = size / (2 * n * inner);
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    tasks::share(outer * blocks, size, move |task| {
        let (o, first) = (task / blocks, task % blocks * COLUMNS);
        let width = COLUMNS.min(inner - first);
        scratch::with(2 * n * width, |lines: &mut [T]| {
            let columns = shared.0.wrapping_add(2 * (o * n * inner + first)).cast::<Complex<T>>();
            let room = lines.as_mut_ptr().cast::<Complex<T>>();
            let there =
                TransposeBlock { src: columns, src_stride: inner, rows: n, cols: width, dst: room, dst_stride: n };
            // SAFETY: `width` columns of block o, inside y, which no other task has; the lines have room for them.
            unsafe { turn_complex(there) };
            in_place(plan, lines);
            let back =
                TransposeBlock { src: room, src_stride: n, rows: width, cols: n, dst: columns, dst_stride: inner };
            // SAFETY: as above.
            unsafe { turn_complex(back) };
        });
    });
}

/// Rows of complex numbers become columns.
///
/// # Safety
/// The block lies within its memory.
unsafe fn turn_complex<T: Transformed>(b: TransposeBlock<Complex<T>>) {
    let TransposeBlock { src, src_stride, rows, cols, dst, dst_stride } = b;
    let (words, targets) = (src.cast::<f64>(), dst.cast::<f64>());
    if size_of::<Complex<T>>() == size_of::<f64>() && words.is_aligned() && targets.is_aligned() {
        // Numbers are moved as the eight bytes that they are.
        let words = TransposeBlock { src: words, src_stride, rows, cols, dst: targets, dst_stride };
        // SAFETY: the caller's block.
        return unsafe { turn(words, false) };
    }
    for r in 0..rows {
        for c in 0..cols {
            // SAFETY: the caller's block.
            unsafe { *dst.add(c * dst_stride + r) = *src.add(r * src_stride + c) };
        }
    }
}

/// Transforms all axes; adds where there is one alone.
pub(super) fn transform<T: Transformed>(f: &Fft, x: &[T], y: &mut [T], inverse: bool, output: Output) {
    let plans = planned::<T>(f, inverse);
    let Some((last, before)) = plans.split_last() else { return };
    rows(f, last, x, y, output);
    let mut inner = f.axes.last().copied().unwrap_or(1);
    for (plan, &n) in before.iter().zip(&f.axes).rev() {
        if n > 1 {
            columns(plan, y, n, inner);
        }
        inner *= n;
    }
}
