//! Modes of the thread, hooks, threads, and running several variables, as plain functions for the Python side.

use super::context::PyContext;
use super::convert::flag;
use super::errors;
use super::variable::{PyVariable, call_hook, forward_vars};
use crate::graph::hooks::{self, When};
use crate::graph::{ForwardOptions, mode};
use nnrs_kernels::random;
use pyo3::prelude::*;
use std::sync::Arc;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_auto_forward, m)?)?;
    m.add_function(wrap_pyfunction!(own_auto_forward, m)?)?;
    m.add_function(wrap_pyfunction!(set_own_auto_forward, m)?)?;
    m.add_function(wrap_pyfunction!(get_auto_forward, m)?)?;
    m.add_function(wrap_pyfunction!(set_no_grad, m)?)?;
    m.add_function(wrap_pyfunction!(no_grad_active, m)?)?;
    m.add_function(wrap_pyfunction!(set_recompute, m)?)?;
    m.add_function(wrap_pyfunction!(own_recompute, m)?)?;
    m.add_function(wrap_pyfunction!(set_own_recompute, m)?)?;
    m.add_function(wrap_pyfunction!(get_recompute, m)?)?;
    m.add_function(wrap_pyfunction!(in_recomputing, m)?)?;
    m.add_function(wrap_pyfunction!(get_current_context, m)?)?;
    m.add_function(wrap_pyfunction!(set_context, m)?)?;
    m.add_function(wrap_pyfunction!(own_context, m)?)?;
    m.add_function(wrap_pyfunction!(set_own_context, m)?)?;
    m.add_function(wrap_pyfunction!(set_function_hook, m)?)?;
    m.add_function(wrap_pyfunction!(unset_function_hook, m)?)?;
    m.add_function(wrap_pyfunction!(forward_all, m)?)?;
    m.add_function(wrap_pyfunction!(set_exact_convolution, m)?)?;
    m.add_function(wrap_pyfunction!(set_fusion, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(set_function_seed, m)?)?;
    m.add_function(wrap_pyfunction!(random_stream, m)?)?;
    m.add_function(wrap_pyfunction!(set_random_stream, m)?)?;
    m.add_function(wrap_pyfunction!(get_num_threads, m)?)?;
    m.add_function(wrap_pyfunction!(measure_limits, m)?)
}

/// For all threads, or for this one within a scope of its own.
#[pyfunction]
fn set_auto_forward(#[pyo3(from_py_with = flag)] auto: bool) {
    mode::set_auto_forward_of_process(auto);
}

/// What a scope of this thread has set, if there is one; scopes set it and take it back.
#[pyfunction]
fn own_auto_forward() -> Option<bool> {
    mode::own::auto_forward()
}

#[pyfunction]
#[pyo3(signature = (auto))]
fn set_own_auto_forward(auto: Option<bool>) {
    mode::own::set_auto_forward(auto);
}

/// Whether functions are computed as soon as they are applied: by `auto_forward` of this thread, else by `set_auto_forward`.
///
/// >>> nn.get_auto_forward()
/// False
/// >>> with nn.auto_forward():
/// ...     print(nn.get_auto_forward())
/// True
#[pyfunction]
fn get_auto_forward() -> bool {
    mode::auto_forward()
}

#[pyfunction]
fn set_no_grad(#[pyo3(from_py_with = flag)] on: bool) -> bool {
    mode::set_no_grad(on)
}

#[pyfunction]
fn no_grad_active() -> bool {
    mode::no_grad()
}

#[pyfunction]
fn set_recompute(#[pyo3(from_py_with = flag)] on: bool) {
    mode::set_recompute_of_process(on);
}

#[pyfunction]
fn own_recompute() -> Option<bool> {
    mode::own::recompute()
}

#[pyfunction]
#[pyo3(signature = (on))]
fn set_own_recompute(on: Option<bool>) {
    mode::own::set_recompute(on);
}

#[pyfunction]
fn get_recompute() -> bool {
    mode::recompute()
}

#[pyfunction]
fn in_recomputing() -> bool {
    mode::in_recomputing()
}

/// The context that functions of this thread are made in: that of `context_scope`, else of `set_default_context`.
///
/// >>> nn.get_current_context().backend
/// ['cpu:float']
#[pyfunction]
fn get_current_context() -> PyContext {
    PyContext::new(mode::context())
}

#[pyfunction]
fn set_context(ctx: &PyContext) {
    mode::set_context_of_process(ctx.get());
}

#[pyfunction]
fn own_context() -> Option<PyContext> {
    mode::own::context().map(PyContext::new)
}

#[pyfunction]
#[pyo3(signature = (ctx))]
fn set_own_context(ctx: Option<&PyContext>) {
    mode::set_own_context(ctx.map(PyContext::get));
}

fn when(before: bool) -> When {
    if before { When::Before } else { When::After }
}

#[pyfunction]
fn set_function_hook(before: bool, key: &str, hook: Py<PyAny>) {
    hooks::set(when(before), key, Arc::new(move |f| call_hook(&hook, f)));
}

#[pyfunction]
fn unset_function_hook(before: bool, key: &str) {
    hooks::unset(when(before), key);
}

#[pyfunction]
#[pyo3(signature = (variables, clear_buffer=false, clear_no_need_grad=false, function_pre_hook=None, function_post_hook=None))]
fn forward_all(
    py: Python<'_>,
    variables: Vec<PyRef<'_, PyVariable>>,
    #[pyo3(from_py_with = flag)] clear_buffer: bool,
    #[pyo3(from_py_with = flag)] clear_no_need_grad: bool,
    function_pre_hook: Option<Py<PyAny>>,
    function_post_hook: Option<Py<PyAny>>,
) -> PyResult<()> {
    let vars: Vec<_> = variables.iter().map(|v| v.var()).collect();
    if vars.is_empty() {
        return Ok(());
    }
    let options = ForwardOptions { clear_buffer, clear_no_need_grad };
    forward_vars(py, &vars, options, function_pre_hook, function_post_hook)
}

#[pyfunction]
fn set_exact_convolution(on: bool) -> bool {
    nnrs_kernels::kernel::convolution::winograd::set_exact(on)
}

#[pyfunction]
fn set_fusion(on: bool) -> bool {
    crate::graph::set_fusion(on)
}

#[pyfunction]
fn set_num_threads(n: usize) {
    nnrs_kernels::pool::set_num_threads(n);
}

/// How many threads compute, this one among them: those of `set_num_threads`, else of NNRS_NUM_THREADS, else the CPUs.
///
/// >>> nn.get_num_threads() >= 1
/// True
#[pyfunction]
fn get_num_threads() -> usize {
    nnrs_kernels::pool::num_threads()
}

/// Floating-point operations and bytes a second that kernels could reach at most.
#[pyfunction]
fn measure_limits(py: Python<'_>) -> PyResult<(f64, f64)> {
    let limits = errors::run(py, nnrs_kernels::limits::measure)?;
    Ok((limits.flops, limits.bandwidth))
}

#[pyfunction]
fn set_function_seed(seed: i64) {
    random::set_function_seed(seed);
}

/// Key and number of the draw that comes next in the stream of random functions.
#[pyfunction]
fn random_stream() -> (u64, u64) {
    let next = random::stream();
    (next.key, next.number)
}

#[pyfunction]
fn set_random_stream(key: u64, number: u64) {
    random::set_stream(random::Draw { key, number });
}
