//! Runs a formula over slices: for functions with a structure of their own whose work is element-wise all the same.

use super::{Destination, Source, TileProgram, Walk};
use crate::array::Output;
use crate::expr::Formula;
use crate::simd::SimdReal;

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

/// `y = f(x..)`, or `y += f(x..)`.
///
/// # Panics
/// If an input is too short.
pub fn apply<T: SimdReal>(f: &Formula, x: &[FormulaInput<T>], y: &mut [T], output: Output) {
    if y.is_empty() {
        return;
    }
    assert!(x.iter().all(|o| o.reaches(y.len())), "inputs as long as their walks");
    let k = x.len();
    let with_old = |v: &[crate::expr::Expr]| vec![Some(&v[k] + v[k].place(f, &v[..k]))];
    let program = match output {
        Output::Write => TileProgram::<T>::of(f),
        Output::Accumulate => TileProgram::<T>::of(&Formula::new(k + 1, with_old)),
    };
    let ptr = y.as_mut_ptr() as *mut u8;
    let source =
        |o: &FormulaInput<T>| Source { ptr: o.data.as_ptr() as *const u8, dtype: T::DTYPE, walk: o.walk.clone() };
    let old = Source { ptr, dtype: T::DTYPE, walk: Walk::Dense };
    let sources: Vec<Source> = x.iter().map(source).chain((output == Output::Accumulate).then_some(old)).collect();
    // SAFETY: `reaches` says that all reads stay inside; the one input that overlaps the output is the output itself.
    unsafe { program.run(y.len(), &sources, &[Destination { ptr, dtype: T::DTYPE }], &[]) };
}
