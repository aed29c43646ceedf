//! The sizes of an array as numbers.

use crate::array::Place;
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::with_real;

/// These sizes.
pub struct ShapeOf(pub Vec<usize>);

impl Call for ShapeOf {
    fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
        if let Place::Gpu(_) = y[0].data.place() {
            let gpu = y[0].data.gpu();
            let table: Vec<u8> = self.0.iter().flat_map(|n| (*n as i64).to_le_bytes()).collect();
            let launch = gpu.launch("convert", "convert")?.array(&y[0].data).table(&table)?;
            // SAFETY: as many numbers as the array has, of this type.
            return unsafe { launch.long(DType::I64 as i64).size(self.0.len()).run(gpu.grid(self.0.len())) };
        }
        with_real!(run.dtype, T => y[0].slice::<T>().iter_mut().zip(&self.0).for_each(|(y, n)| *y = *n as T));
        Ok(())
    }
}
