//! Exchange of arrays between GPUs: a member of a group over NCCL, and sums over the GPUs of one process.

use super::array::PyNdArray;
use super::errors;
use nnrs_kernels::array::NdArray as Array;
use nnrs_kernels::cuda::{self, GpuGroup, GroupPlace, GroupSums};
use nnrs_kernels::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyNcclGroup>()?;
    m.add_function(wrap_pyfunction!(nccl_id, m)?)?;
    m.add_function(wrap_pyfunction!(cuda_sum, m)?)
}

/// So long that it never comes, and can still be added to.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// A GPU in a group of several processes. Collectives are asked for in order with the GPU's other work and do not wait for it;
/// arrays that are elsewhere are brought there.
#[pyclass(frozen, name = "NcclGroup", module = "nnrs._core")]
pub(super) struct PyNcclGroup {
    pub(super) group: Arc<GpuGroup>,
}

/// A name for a new group, to be told to all its members.
#[pyfunction]
fn nccl_id(py: Python<'_>, device_id: usize) -> PyResult<Bound<'_, PyBytes>> {
    let id = errors::detached(py, || cuda::gpu(device_id).and_then(|gpu| gpu.group_id()))?;
    Ok(PyBytes::new(py, &id))
}

/// Each array becomes the sum of all, added up from first to last, on the GPU of its number.
#[pyfunction]
fn cuda_sum(
    py: Python<'_>,
    arrays: Vec<Bound<'_, PyNdArray>>,
    device_ids: Vec<usize>,
    divide_by: usize,
) -> PyResult<()> {
    let arrays = handles(&arrays);
    errors::detached(py, || {
        let there = |(a, id): (Array, usize)| -> Result<_, Error> { Ok((cuda::gpu(id)?, a)) };
        let all: Vec<_> = arrays.into_iter().zip(device_ids).map(there).collect::<Result<_, Error>>()?;
        cuda::sum_over_gpus(&all, divide_by)
    })
}

fn handles(arrays: &[Bound<'_, PyNdArray>]) -> Vec<Array> {
    arrays.iter().map(|a| a.get().inner().clone()).collect()
}

#[pymethods]
impl PyNcclGroup {
    /// Joins the group named `id` together with all its members, for which it waits `timeout` seconds at most; as long a
    /// collective may take. `name` is for errors.
    #[new]
    fn py_new(
        py: Python<'_>,
        device_id: usize,
        rank: usize,
        size: usize,
        id: Vec<u8>,
        name: &str,
        timeout: f64,
    ) -> PyResult<PyNcclGroup> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX).min(LONGEST);
        let place = GroupPlace { id, rank, size, timeout };
        let group = errors::detached(py, || GpuGroup::join(cuda::gpu(device_id)?, place, name))?;
        Ok(PyNcclGroup { group: Arc::new(group) })
    }

    /// Waits until all that was asked for is over, and leaves the group.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        errors::detached(py, || -> Result<(), Error> {
            self.group.leave();
            Ok(())
        })
    }

    /// Each array becomes the sum of it over all members: in the order of ranks if `ordered`, else as NCCL likes.
    fn all_reduce(
        &self,
        py: Python<'_>,
        arrays: Vec<Bound<'_, PyNdArray>>,
        ordered: bool,
        mean: bool,
        scale: f64,
        packed: bool,
    ) -> PyResult<()> {
        let arrays = handles(&arrays);
        errors::detached(py, || self.group.all_reduce(&arrays, &GroupSums { ordered, mean, scale, packed }))
    }

    /// Each array becomes the sum of it over all members on rank `dst`.
    fn reduce(
        &self,
        py: Python<'_>,
        arrays: Vec<Bound<'_, PyNdArray>>,
        dst: usize,
        ordered: bool,
        mean: bool,
        packed: bool,
    ) -> PyResult<()> {
        let arrays = handles(&arrays);
        errors::detached(py, || self.group.reduce(&arrays, dst, &GroupSums { ordered, mean, scale: 1.0, packed }))
    }

    /// Each array becomes that of rank `src`.
    fn bcast(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyNdArray>>, src: usize, packed: bool) -> PyResult<()> {
        let arrays = handles(&arrays);
        errors::detached(py, || self.group.bcast(&arrays, src, packed))
    }

    /// `arrays[i]` becomes `x` of rank i.
    fn all_gather(&self, py: Python<'_>, x: &PyNdArray, arrays: Vec<Bound<'_, PyNdArray>>) -> PyResult<()> {
        let (x, arrays) = (x.inner(), handles(&arrays));
        errors::detached(py, || self.group.all_gather(x, &arrays))
    }

    /// `y` becomes the sum over all members of their `arrays[i]`, i being this one's rank.
    fn reduce_scatter(
        &self,
        py: Python<'_>,
        arrays: Vec<Bound<'_, PyNdArray>>,
        y: &PyNdArray,
        ordered: bool,
        mean: bool,
    ) -> PyResult<()> {
        let (y, arrays) = (y.inner(), handles(&arrays));
        let sums = GroupSums { ordered, mean, scale: 1.0, packed: true };
        errors::detached(py, || self.group.reduce_scatter(&arrays, y, &sums))
    }
}
