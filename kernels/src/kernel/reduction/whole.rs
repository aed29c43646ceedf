//! A few numbers of each of many arrays, which may lie on several GPUs.

pub use super::cuda::DeviceReduction;
use super::cuda::reduce;
use crate::array::{Data, NdArray, Output, Place};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;

/// What `op` makes of each array; all are on GPUs.
pub fn on_gpus(arrays: &[NdArray], op: DeviceReduction) -> Result<Vec<f64>> {
    let places: Vec<Place> = arrays.iter().map(|a| a.storage().place()).collect();
    let numbers = numbers(&places, |i, to: [Data; 1]| {
        let x = arrays[i].read_at(places[i], arrays[i].dtype())?;
        reduce_all(op, &x, &to[0])
    })?;
    Ok(numbers.into_iter().map(|[n]| n).collect())
}

/// What `op` makes of all elements, on their GPU.
pub fn reduce_all(op: DeviceReduction, x: &Data, to: &Data) -> Result<()> {
    reduce(op, x, &Shape::from([x.len()]), &[true], to, 1.0, Output::Write)
}

/// `M` doubles for each item, which `start` has a GPU write, the one that the item is on. All GPUs have started before the
/// first is waited for, once.
pub fn numbers<const M: usize>(
    places: &[Place],
    mut start: impl FnMut(usize, [Data; M]) -> Result<()>,
) -> Result<Vec<[f64; M]>> {
    let (mut rest, mut started) = ((0..places.len()).collect::<Vec<usize>>(), Vec::new());
    while let Some(at) = rest.first().map(|&i| places[i]) {
        let (now, later): (Vec<usize>, Vec<usize>) = rest.into_iter().partition(|&i| places[i] == at);
        let results = NdArray::new([now.len() * M].into());
        let to = results.overwrite_at(at, DType::F64)?;
        for (k, &i) in now.iter().enumerate() {
            start(i, std::array::from_fn(|m| to.clone().part(k * M + m, 1)))?;
        }
        started.push((now, results));
        rest = later;
    }
    let mut found = vec![[0.0; M]; places.len()];
    for (which, results) in started {
        let all = results.to_vec::<f64>()?;
        which.into_iter().zip(all.chunks_exact(M)).for_each(|(i, v)| found[i].copy_from_slice(v));
    }
    Ok(found)
}
