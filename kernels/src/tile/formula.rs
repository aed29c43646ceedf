//! Runs a formula over slices: for functions with a structure of their own whose work is element-wise all the same.

use super::{Destination, Source, TileProgram, Walk};
use crate::array::Output;
use crate::expr::{Expr, Formula};
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use smallvec::SmallVec;

/// An input of a formula.
pub struct FormulaInput<'a, T> {
    pub data: &'a [T],
    pub walk: Walk,
}

impl<'a, T> FormulaInput<'a, T> {
    /// Whether all that is read for `n` elements lies in the data.
    fn reaches(&self, n: usize) -> bool {
        let covers = match &self.walk {
            Walk::Strided(_, axes) => axes.iter().map(|a| a.0).product::<usize>() == n,
            _ => true,
        };
        covers && self.walk.extent(n).is_some_and(|most| most <= self.data.len())
    }
}

/// The program of a formula over `k` inputs; what it is added to is one more.
fn program<T: SimdReal>(f: &Formula, k: usize, output: Output) -> TileProgram<T> {
    let with_old = |v: &[Expr]| vec![Some(&v[k] + v[k].place(f, &v[..k]))];
    match output {
        Output::Write => TileProgram::of(f),
        Output::Accumulate => TileProgram::of(&Formula::new(k + 1, with_old)),
    }
}

/// An input of a formula that runs row by row.
#[derive(Clone, Copy)]
pub enum RowsInput<'a, T> {
    /// Each row begins so many elements behind the one before.
    Rows(&'a [T], usize),
    /// One number for all.
    Number(T),
}

impl<T: SimdReal> RowsInput<'_, T> {
    fn reaches(&self, rows: usize, n: usize) -> bool {
        match self {
            RowsInput::Rows(x, stride) => x.len() >= (rows - 1) * stride + n,
            RowsInput::Number(_) => true,
        }
    }

    /// The row number `row`.
    fn source(&self, row: usize) -> Source {
        match *self {
            RowsInput::Rows(x, stride) => {
                let ptr = x.as_ptr().wrapping_add(row * stride).cast();
                Source { ptr, dtype: T::DTYPE, walk: Walk::Dense }
            }
            RowsInput::Number(v) => Source { ptr: std::ptr::null(), dtype: T::DTYPE, walk: Walk::Constant(v.to_f64()) },
        }
    }
}

/// As [`apply`], row by row: rows of `n` elements of y, and of the inputs.
///
/// # Panics
/// If an input is too short.
pub fn apply_rows<T: SimdReal>(f: &Formula, x: &[RowsInput<T>], y: &mut [T], n: usize, output: Output) {
    if y.is_empty() {
        return;
    }
    let rows = y.len() / n;
    assert!(y.len().is_multiple_of(n) && x.iter().all(|x| x.reaches(rows, n)), "inputs as long as their rows");
    let program = program::<T>(f, x.len(), output);
    let (size, to) = (y.len() * (program.loops() + 1), SendPtr(y.as_mut_ptr()));
    tasks::share(rows, size, |row| {
        let ptr = to.add(row * n).0.cast();
        let old = Source { ptr, dtype: T::DTYPE, walk: Walk::Dense };
        let old = (output == Output::Accumulate).then_some(old);
        let sources: SmallVec<[Source; 6]> = x.iter().map(|x| x.source(row)).chain(old).collect();
        // SAFETY: the rows lie inside; those of y do not overlap, and an input that overlaps one is that row itself.
        unsafe { program.run_part(0, n, &sources, &[Destination { ptr, dtype: T::DTYPE }], &[]) };
    });
}

/// `y = f(x..)`, or `y += f(x..)`.
///
/// # Panics
/// If an input is too short.
pub fn apply<T: SimdReal>(f: &Formula, x: &[FormulaInput<T>], y: &mut [T], output: Output) {
    if y.is_empty() {
        return;
    }
    assert!(x.iter().all(|o| o.reaches(y.len())), "inputs as long as their walks");
    let program = program::<T>(f, x.len(), output);
    let ptr = y.as_mut_ptr() as *mut u8;
    let source =
        |o: &FormulaInput<T>| Source { ptr: o.data.as_ptr() as *const u8, dtype: T::DTYPE, walk: o.walk.clone() };
    let old = Source { ptr, dtype: T::DTYPE, walk: Walk::Dense };
    let sources: Vec<Source> = x.iter().map(source).chain((output == Output::Accumulate).then_some(old)).collect();
    // SAFETY: `reaches` says that all reads stay inside; the one input that overlaps the output is the output itself.
    unsafe { program.run(y.len(), &sources, &[Destination { ptr, dtype: T::DTYPE }], &[]) };
}
