//! The extension module `nnrs._core`: PyO3 glue, no logic of its own.

mod array;
mod attention;
mod backward_functions;
mod call;
mod checked;
mod collector;
mod composed;
mod context;
mod convert;
mod cuda;
mod deadline;
mod errors;
mod files;
pub(crate) mod finish;
mod foreign;
mod function;
mod members;
mod memory;
mod mode_scope;
mod modes;
mod nccl;
mod nnp;
mod operators;
mod parameters;
mod parametric;
mod python_function;
mod reductions;
mod reserve;
mod shared_statistics;
mod solver;
mod stay;
mod variable;

use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    reserve::take();
    nnrs_kernels::fork::watch();
    m.add("Error", m.py().get_type::<errors::Error>())?;
    m.add_class::<variable::PyVariable>()?;
    m.add_class::<array::PyNdArray>()?;
    m.add_class::<context::PyContext>()?;
    m.add_class::<function::PyGraphFunction>()?;
    m.add_class::<mode_scope::ModeScope>()?;
    m.add_class::<deadline::Deadline>()?;
    m.add_function(wrap_pyfunction!(checked::call_stand_ins_by, m)?)?;
    m.add("Checked", m.py().get_type::<checked::Checked>())?;
    call::register(m)?;
    m.add_function(wrap_pyfunction!(members::apply_again, m)?)?;
    m.add_function(wrap_pyfunction!(variable::protocols::without_gradient, m)?)?;
    collector::register(m);
    convert::register(m)?;
    python_function::register(m)?;
    reductions::register(m)?;
    backward_functions::register(m)?;
    modes::register(m)?;
    memory::register(m)?;
    parameters::register(m)?;
    parametric::register(m)?;
    attention::register(m)?;
    composed::register(m)?;
    files::register(m)?;
    nnp::register(m)?;
    solver::register(m)?;
    cuda::register(m)?;
    nccl::register(m)?;
    shared_statistics::register(m)?;
    finish::register(m)?;
    crate::graph::set_interrupt(errors::check_signals);
    Ok(())
}
