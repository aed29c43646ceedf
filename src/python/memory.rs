//! Memory statistics and plans.

use super::convert::flag;
use super::errors;
use super::variable::PyVariable;
use crate::graph::{ForwardOptions, live_functions, live_variables, memory_fit, memory_plan};
use nnrs_kernels::array::alloc;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(memory_reset_peak, m)?)?;
    m.add_function(wrap_pyfunction!(memory_set_limit, m)?)?;
    m.add_function(wrap_pyfunction!(memory_set_poison, m)?)?;
    m.add_function(wrap_pyfunction!(memory_refuse_after, m)?)?;
    m.add_function(wrap_pyfunction!(clear_memory_cache, m)?)?;
    m.add_function(wrap_pyfunction!(live_nodes, m)?)?;
    m.add_function(wrap_pyfunction!(plan_memory, m)?)?;
    m.add_function(wrap_pyfunction!(fit_memory, m)?)
}

#[pyfunction]
fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    stats_dict(py, alloc::stats())
}

pub(super) fn stats_dict(py: Python<'_>, s: alloc::Stats) -> PyResult<Bound<'_, PyDict>> {
    let d = PyDict::new(py);
    d.set_item("live", s.live)?;
    d.set_item("cached", s.cached)?;
    d.set_item("peak", s.peak)?;
    d.set_item("blocks", s.blocks)?;
    d.set_item("limit", (s.limit != usize::MAX).then_some(s.limit))?;
    Ok(d)
}

#[pyfunction]
fn memory_reset_peak() {
    alloc::reset_peak();
}

#[pyfunction]
#[pyo3(signature = (bytes))]
fn memory_set_limit(bytes: Option<usize>) {
    alloc::set_limit(bytes.unwrap_or(usize::MAX));
}

#[pyfunction]
fn memory_set_poison(#[pyo3(from_py_with = flag)] on: bool) {
    alloc::set_poison(on);
}

/// For tests: see `alloc::refuse_after`.
#[pyfunction]
#[pyo3(signature = (n))]
fn memory_refuse_after(n: Option<usize>) -> bool {
    alloc::refuse_after(n)
}

#[pyfunction]
fn clear_memory_cache() {
    alloc::clear_cache();
}

/// Function nodes and variables that are alive.
#[pyfunction]
fn live_nodes() -> (u64, u64) {
    (live_functions(), live_variables())
}

/// Peak bytes, bytes of the leaves, and the largest buffers of forward and backward of `y`.
#[pyfunction]
fn plan_memory(
    py: Python<'_>,
    y: &PyVariable,
    #[pyo3(from_py_with = flag)] clear_buffer: bool,
    #[pyo3(from_py_with = flag)] clear_no_need_grad: bool,
    #[pyo3(from_py_with = flag)] backward_clear_buffer: bool,
) -> PyResult<(usize, usize, Vec<(usize, String)>)> {
    let options = ForwardOptions { clear_buffer, clear_no_need_grad };
    let r = errors::run(py, || memory_plan(y.var(), options, backward_clear_buffer))?;
    Ok((r.peak, r.leaves, r.largest))
}

/// Marks variables for recomputation; gives the planned peak, what was chosen, and the predicted extra time.
#[pyfunction]
fn fit_memory(
    py: Python<'_>,
    y: &PyVariable,
    budget: usize,
    #[pyo3(from_py_with = flag)] clear_buffer: bool,
    #[pyo3(from_py_with = flag)] clear_no_need_grad: bool,
    #[pyo3(from_py_with = flag)] backward_clear_buffer: bool,
) -> PyResult<(usize, Vec<(usize, String)>, f64)> {
    let options = ForwardOptions { clear_buffer, clear_no_need_grad };
    let fit = errors::run(py, || memory_fit(y.var(), budget, options, backward_clear_buffer))?;
    Ok((fit.peak, fit.chosen, fit.extra))
}
