//! `sync_batch_normalization` over a communicator in Python.

use super::array::PyNdArray;
use super::errors;
use super::finish::attached;
use super::function::PyGraphFunction;
use super::nccl::PyNcclGroup;
use super::variable::PyVariable;
use crate::communicator::{SharedStatistics, SyncFunction};
use crate::function::Function;
use nnrs_kernels::array::{Data, NdArray, Place};
use nnrs_kernels::cuda::GpuGroup;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::normalization::SumOverRanks;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::sync::Arc;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(synchronized, m)?)
}

/// The batch normalization `f` by the statistics of the batches of all members of the communicator's group: summed up by
/// `comm.all_reduce`, or by `gpus` alone.
#[pyfunction]
#[pyo3(signature = (f, comm, group, gpus=None))]
fn synchronized(
    py: Python<'_>,
    f: &PyGraphFunction,
    comm: Py<PyAny>,
    group: String,
    gpus: Option<&PyNcclGroup>,
) -> PyResult<Vec<PyVariable>> {
    let (f, gpus) = (f.inner(), gpus.map(|g| g.group.clone()));
    let on_gpu = gpus.is_some();
    let all = Arc::new(CommunicatorSums { comm, group: group.clone(), gpus });
    let made = errors::run(py, || SharedStatistics { all, group, on_gpu }.normalization(f))?;
    Ok(made.into_iter().map(PyVariable::new).collect())
}

/// The communicator of a synchronized normalization.
pub(super) fn communicator_of(f: &dyn Function) -> Option<&Py<PyAny>> {
    let all: &dyn Any = &*SyncFunction::find(f)?.shared.all;
    all.downcast_ref::<CommunicatorSums>().map(|sums| &sums.comm)
}

/// Sums over the members of a communicator's group.
struct CommunicatorSums {
    comm: Py<PyAny>,
    group: String,
    gpus: Option<Arc<GpuGroup>>,
}

impl SumOverRanks for CommunicatorSums {
    fn sum(&self, values: &Data) -> Result<()> {
        match (&self.gpus, values.place()) {
            (Some(gpus), Place::Gpu(_)) => gpus.sum_of(values, values),
            _ => self.sum_by_host(values),
        }
    }
}

impl CommunicatorSums {
    fn sum_by_host(&self, values: &Data) -> Result<()> {
        let array = NdArray::from_slice(values.as_slice::<f64>(), [values.len()].into())?;
        attached(|py| {
            let options = PyDict::new(py);
            options.set_item("division", false)?;
            options.set_item("inplace", true)?;
            options.set_item("group", &self.group)?;
            let given = PyNdArray::new(array.clone());
            self.comm.bind(py).call_method("all_reduce", (given,), Some(&options)).map(drop)
        })
        .map_err(errors::carry)?;
        let sums = array.to_vec::<f64>()?;
        if sums.len() != values.len() {
            let e = Error::graph(format!("all_reduce of the communicator left {} numbers", sums.len()));
            return Err(e.hint(format!("it is to sum up the {} numbers in place", values.len())));
        }
        values.as_mut_slice().copy_from_slice(&sums);
        Ok(())
    }
}
