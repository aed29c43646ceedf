//! Rows picked from an array by their offsets, and rows put back: gathering and scattering.

use crate::array::Output;
use crate::pool::tasks::{Shared, share};
use crate::simd::{self, SimdReal};

/// Rows that one task copies, and columns that one task adds.
const ROWS: usize = 256;
const COLUMNS: usize = 256;
/// Rows of fewer elements take less time than the choice of a loop for the machine.
const SHORT: usize = 16;

/// Copies or adds `n` elements from each offset `at` of `x` to the rows of `y`.
pub fn gather<T: SimdReal>(x: &[T], at: &[usize], n: usize, y: &mut [T], output: Output) {
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    assert!(at.len() * n <= y.len(), "more rows than the result has");
    share(at.len().div_ceil(ROWS), at.len() * n, move |task| {
        let rows = task * ROWS..at.len().min((task + 1) * ROWS);
        if n == 1 {
            // SAFETY: these elements are inside y, and belong to this task.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(rows.start), rows.len()) };
            return match output {
                Output::Write => y.iter_mut().zip(&at[rows]).for_each(|(y, &o)| *y = x[o]),
                Output::Accumulate => y.iter_mut().zip(&at[rows]).for_each(|(y, &o)| *y += x[o]),
            };
        }
        if output == Output::Write && (2..=4).contains(&n) {
            // SAFETY: these rows are inside y, and belong to this task.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(rows.start * n), rows.len() * n) };
            return match n {
                2 => take_rows::<T, 2>(x, &at[rows], y),
                3 => take_rows::<T, 3>(x, &at[rows], y),
                _ => take_rows::<T, 4>(x, &at[rows], y),
            };
        }
        for r in rows {
            // SAFETY: row r is inside y, and belongs to this task.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(r * n), n) };
            put(y, &x[at[r]..at[r] + n], output);
        }
    });
}

/// Copies or adds the rows of `x`, `n` elements each, to each offset `at` of `y`, in the order of the rows.
pub fn scatter<T: SimdReal>(x: &[T], at: &[usize], n: usize, y: &mut [T], output: Output) {
    assert!(at.iter().all(|&o| o + n <= y.len()), "a row outside the result");
    if n == 1 {
        return match output {
            Output::Write => at.iter().zip(x).for_each(|(&o, &x)| y[o] = x),
            Output::Accumulate => at.iter().zip(x).for_each(|(&o, &x)| y[o] += x),
        };
    }
    match n {
        2 if output == Output::Accumulate => return add_rows::<T, 2>(x, at, y),
        3 if output == Output::Accumulate => return add_rows::<T, 3>(x, at, y),
        4 if output == Output::Accumulate => return add_rows::<T, 4>(x, at, y),
        _ => {}
    }
    let shared = Shared(y.as_mut_ptr());
    let shared = &shared;
    // Columns are shared out, not rows: several rows may go to one place.
    share(n.div_ceil(COLUMNS), at.len() * n, move |task| {
        let first = task * COLUMNS;
        let width = COLUMNS.min(n - first);
        for (r, o) in at.iter().enumerate() {
            // SAFETY: inside y, as asserted; these columns belong to this task.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(o + first), width) };
            put(y, &x[r * n + first..][..width], output);
        }
    });
}

/// Copies short rows.
fn take_rows<T: SimdReal, const N: usize>(x: &[T], at: &[usize], y: &mut [T]) {
    for (y, &o) in y.as_chunks_mut::<N>().0.iter_mut().zip(at) {
        y.copy_from_slice(&x[o..o + N]);
    }
}

/// Adds short rows.
fn add_rows<T: SimdReal, const N: usize>(x: &[T], at: &[usize], y: &mut [T]) {
    for (x, &o) in x.as_chunks::<N>().0.iter().zip(at) {
        let y = &mut y[o..o + N];
        for k in 0..N {
            y[k] += x[k];
        }
    }
}

#[inline]
fn put<T: SimdReal>(y: &mut [T], x: &[T], output: Output) {
    match output {
        Output::Write => y.copy_from_slice(x),
        Output::Accumulate if x.len() < SHORT => y.iter_mut().zip(x).for_each(|(y, &x)| *y += x),
        Output::Accumulate => simd::add_assign(y, x),
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(rows_there_and_back);
    fn rows_there_and_back() {
        for n in [1, 2, 3, 4, 9, 700] {
            let x: Vec<f32> = (0..9 * n).map(|i| i as f32).collect();
            let at: Vec<usize> = (0..400).map(|r| r * 7 % 9 * n).collect();
            let mut y = vec![1.0; 400 * n];
            gather(&x, &at, n, &mut y, Output::Accumulate);
            assert!((0..400 * n).all(|i| y[i] == 1.0 + x[at[i / n] + i % n]));
            gather(&x, &at, n, &mut y, Output::Write);
            let mut back = vec![0.0; 9 * n];
            scatter(&y, &at, n, &mut back, Output::Accumulate);
            let times = |row: usize| at.iter().filter(|o| **o == row * n).count() as f32;
            assert!((0..9 * n).all(|i| back[i] == x[i] * times(i / n)));
            scatter(&vec![2.0; 400 * n], &at, n, &mut back, Output::Write);
            assert!(back.iter().all(|v| *v == 2.0));
        }
    }
}
