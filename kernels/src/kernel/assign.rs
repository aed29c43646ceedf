//! An array's content written into another.

use super::ops;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Run, View, ViewMut};
use crate::error::Result;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use crate::with_real;

/// Writes the second input into the first one, and gives a copy.
pub struct Assign;

impl Call for Assign {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (src, y) = (&x[1].data, &y[0].data);
        if y.place() == Place::Host && !run.again {
            return with_real!(run.dtype, T => {
                run.update_input::<T>(0, src.len(), |dst| copy_twice(src, y.as_mut_slice(), dst))
            });
        }
        ops::put(y, src, Output::Write)?;
        if run.again {
            return Ok(());
        }
        ops::put(&run.input_to_update(0, y.place(), src.len())?, src, Output::Write)
    }
}

/// Elements that are read once for both copies.
const PART: usize = 1 << 13;

/// Copies `src` to `y` and to `dst`, which may lie in the same memory as the source: no slice is made of that.
fn copy_twice<T: SimdReal>(src: &Data, y: &mut [T], dst: &mut [T]) {
    let (from, to) = (SendPtr(src.ptr().cast::<T>()), SendPtr(dst.as_mut_ptr()));
    let is_shifted = from.0 != to.0 && from.0 < to.add(dst.len()).0 && to.0 < from.add(dst.len()).0;
    if is_shifted {
        // SAFETY: as many elements of T everywhere; y has memory of its own.
        unsafe {
            std::ptr::copy_nonoverlapping(from.0, y.as_mut_ptr(), y.len());
            std::ptr::copy(from.0, to.0, y.len());
        }
        return;
    }
    tasks::parts(y, PART, |task, y| {
        let (from, to) = (from.add(task * PART), to.add(task * PART));
        // SAFETY: as above; the parts of other tasks are elsewhere.
        unsafe {
            std::ptr::copy_nonoverlapping(from.0, y.as_mut_ptr(), y.len());
            std::ptr::copy(from.0, to.0, y.len());
        }
    });
}
