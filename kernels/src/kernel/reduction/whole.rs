//! One number of each of many arrays, which may lie on several GPUs.

pub use super::cuda::DeviceReduction;
use super::cuda::reduce;
use crate::array::{NdArray, Output};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;

/// What `op` makes of each array; all are on GPUs. All GPUs have started before the first is waited for, once.
pub fn on_gpus(arrays: &[NdArray], op: DeviceReduction) -> Result<Vec<f64>> {
    let place = |i: usize| arrays[i].storage().place();
    let (mut rest, mut started) = ((0..arrays.len()).collect::<Vec<usize>>(), Vec::new());
    while let Some(at) = rest.first().map(|&i| place(i)) {
        let (now, later): (Vec<usize>, Vec<usize>) = rest.into_iter().partition(|&i| place(i) == at);
        let results = NdArray::new([now.len()].into());
        let to = results.overwrite_at(at, DType::F64)?;
        for (k, &i) in now.iter().enumerate() {
            let x = arrays[i].read_at(at, arrays[i].dtype())?;
            let shape = Shape::from([x.len()]);
            reduce(op, &x, &shape, &[true], &to.clone().part(k, 1), 1.0, Output::Write)?;
        }
        started.push((now, results));
        rest = later;
    }
    let mut found = vec![0.0; arrays.len()];
    for (which, results) in started {
        which.into_iter().zip(results.to_vec::<f64>()?).for_each(|(i, v)| found[i] = v);
    }
    Ok(found)
}
