//! GPUs: which there are and what they hold; the CUDA C source of element-wise functions.

use super::errors;
use super::finish::{attached, detached};
use super::memory::stats_dict;
use super::variable::PyVariable;
use crate::function::elementwise::default_rules;
use crate::function::find;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind};
use nnrs_kernels::expr;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    cuda::set_notice(tell);
    m.add_function(wrap_pyfunction!(cuda_device_count, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_device, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_open, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_memory_stats, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_memory_reset_peak, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_memory_set_limit, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_clear_memory_cache, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_synchronize, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_host_waits, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_functions_on_host, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_graphs, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_set_graphs, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_libraries, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_set_libraries, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_set_tf32, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_set_autotune, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_set_compiler, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_generated, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_source, m)?)
}

/// Tells the engine where Python looks for packages, since NVIDIA's wheels lie there. It is told when a GPU's context is
/// made, and does not ask: a thread that looks for a library holds what threads with the GIL wait for.
#[cfg(feature = "cuda")]
pub(crate) fn tell_folders(py: Python<'_>) -> PyResult<()> {
    let path = py.import("sys")?.getattr("path")?;
    cuda::set_package_folders(path.try_iter()?.flatten().filter_map(|p| p.extract().ok()).collect());
    Ok(())
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn tell_folders(_: Python<'_>) -> PyResult<()> {
    Ok(())
}

/// NVIDIA's libraries by name: the file that is used, or why there is none, and which of the two it is.
#[pyfunction]
fn cuda_libraries(py: Python<'_>, id: usize) -> PyResult<Vec<(&'static str, bool, String)>> {
    tell_folders(py)?;
    let all = errors::detached(py, || cuda::gpu(id).and_then(|gpu| gpu.libraries()))?;
    Ok(all.into_iter().map(|(name, found)| (name, found.is_ok(), found.unwrap_or_else(|why| why))).collect())
}

/// Says whether NVIDIA's libraries are used; gives the old setting.
#[pyfunction]
fn cuda_set_libraries(on: bool) -> bool {
    cuda::set_libraries(on)
}

/// Says whether kernels are generated; gives the old setting.
#[pyfunction]
fn cuda_set_compiler(on: bool) -> bool {
    cuda::set_compiler(on)
}

/// How many kernels were generated, and what went wrong with others.
#[pyfunction]
fn cuda_generated(py: Python<'_>, id: usize) -> PyResult<(usize, Vec<String>)> {
    errors::run(py, || cuda::gpu(id).map(|gpu| gpu.generated()))
}

/// Allows or forbids TF32; gives the old setting.
#[pyfunction]
fn cuda_set_tf32(on: bool) -> bool {
    cuda::set_tf32(on)
}

/// Lets cuDNN measure, or estimate; gives the old setting.
#[pyfunction]
fn cuda_set_autotune(on: bool) -> bool {
    cuda::set_autotune(on)
}

/// A warning, once for each function that runs on the host though its context is a GPU's.
fn tell(function: &'static str) {
    attached(|py| {
        let text = format!("nnrs: {function} has no CUDA kernel and runs on the host");
        let Ok(text) = CString::new(text) else { return };
        let category = py.get_type::<PyRuntimeWarning>();
        // A warning that is an error to this user is not the run's.
        let _ = PyErr::warn(py, &category, &text, 1);
    });
}

/// A warning, once, for a context that names a GPU first but computes on the host.
pub(crate) fn warn_of_host(py: Python<'_>, made: &crate::Context, why: &Error) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Relaxed) {
        return Ok(());
    }
    let (all, id, why) = (made.backend.join("', '"), &made.device_id, why.to_string());
    let why = why.lines().next().unwrap_or_default();
    let text = format!("nnrs: Context(['{all}'], device_id='{id}') computes on the host: {why}");
    let text = CString::new(text).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// Opens a GPU, if it is not open yet.
#[pyfunction]
fn cuda_open(py: Python<'_>, id: usize) -> PyResult<()> {
    errors::detached(py, || cuda::gpu(id).and_then(|gpu| gpu.open()))
}

/// How many GPUs there are; an error that says why there is none.
#[pyfunction]
fn cuda_device_count(py: Python<'_>) -> PyResult<usize> {
    errors::run(py, || cuda::gpus().map(<[_]>::len))
}

/// Name, compute capability, memory in bytes, multiprocessors of a GPU, and whether it is emulated.
#[pyfunction]
fn cuda_device(py: Python<'_>, id: usize) -> PyResult<(String, (u32, u32), usize, usize, bool)> {
    let p = errors::run(py, || cuda::gpu(id).map(|gpu| gpu.properties().clone()))?;
    Ok((p.name, p.capability, p.memory, p.processors, p.emulated))
}

#[pyfunction]
fn cuda_memory_stats(py: Python<'_>, id: usize) -> PyResult<Bound<'_, PyDict>> {
    stats_dict(py, errors::run(py, || cuda::gpu(id).map(|gpu| gpu.memory()))?)
}

#[pyfunction]
fn cuda_memory_reset_peak(py: Python<'_>, id: usize) -> PyResult<()> {
    errors::run(py, || cuda::gpu(id).map(|gpu| gpu.reset_memory_peak()))
}

#[pyfunction]
fn cuda_memory_set_limit(py: Python<'_>, id: usize, bytes: Option<usize>) -> PyResult<()> {
    errors::run(py, || cuda::gpu(id).map(|gpu| gpu.set_memory_limit(bytes.unwrap_or(usize::MAX))))
}

#[pyfunction]
fn cuda_clear_memory_cache(py: Python<'_>, id: usize) -> PyResult<()> {
    errors::run(py, || cuda::gpu(id).map(|gpu| gpu.clear_memory_cache()))
}

/// Waits until a GPU has done all its work.
#[pyfunction]
fn cuda_synchronize(py: Python<'_>, id: usize) -> PyResult<()> {
    errors::detached(py, || cuda::gpu(id).and_then(|gpu| gpu.synchronize()))
}

/// How often the host has waited for a GPU.
#[pyfunction]
fn cuda_host_waits(py: Python<'_>, id: usize) -> PyResult<u64> {
    errors::run(py, || cuda::gpu(id).map(|gpu| gpu.waits()))
}

/// Functions that ran on the host though their context was a GPU's.
#[pyfunction]
fn cuda_functions_on_host() -> Vec<&'static str> {
    cuda::functions_on_host()
}

/// What became of the runs of a variable's graph as CUDA graphs.
#[pyfunction]
fn cuda_graphs(py: Python<'_>, y: &PyVariable) -> Vec<String> {
    detached(py, || y.var().cuda_graphs()) // it waits for runs, which may want Python
}

/// Turns CUDA graphs on or off; gives the old setting.
#[pyfunction]
fn cuda_set_graphs(on: bool) -> bool {
    cuda::set_graphs(on)
}

/// The kernels of function `name` with default arguments for arrays of `dtype`; None where the function is no formula.
#[pyfunction]
fn cuda_source(py: Python<'_>, name: &str, dtype: &str) -> PyResult<Option<String>> {
    errors::run(py, || {
        let def = find(name).ok_or_else(|| Error::arg("name", "a function's name").actual(name))?;
        let float = || Error::new(ErrorKind::Dtype, "a float type").argument("dtype").actual(dtype);
        let dtype = DType::from_name(dtype).ok_or_else(float)?;
        default_rules(def).map(|r| expr::cuda::source(def.snake, &r.forward, &r.backward, dtype)).transpose()
    })
}
