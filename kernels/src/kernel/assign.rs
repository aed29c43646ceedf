//! An array's content written into another.

use super::ops;
use crate::array::{Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::with_real;

/// Writes the second input into the first one, and gives a copy.
pub struct Assign;

impl Call for Assign {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (src, y) = (&x[1].data, &y[0].data);
        ops::put(y, src, Output::Write)?;
        if run.again {
            return Ok(());
        }
        match y.place() {
            Place::Gpu(_) => ops::put(&run.input_to_update(0, y.place(), src.len())?, src, Output::Write),
            Place::Host => with_real!(run.dtype, T => {
                run.update_input::<T>(0, src.len(), |dst| {
                    // SAFETY: both have this many elements of T. They may be one array: no slice is made of the source.
                    unsafe { std::ptr::copy(src.ptr().cast::<T>(), dst.as_mut_ptr(), dst.len()) }
                })
            }),
        }
    }
}
