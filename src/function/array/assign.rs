//! `assign`: writes one array's content into another.

use crate::function;
use crate::function::{Function, Grad, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::Place;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

function! {
    /// Writes `src` into the data of `dst` whenever it runs, and gives a copy. The gradient goes to `dst`.
    Assign assign in Array, any_device
    inputs { dst: "N-D array that is written.", src: "N-D array of the same shape." }
    args { }
    outputs { y: "N-D array of that shape." }
}

impl Function for Assign {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        match x[0] == x[1] {
            true => Ok(smallvec![x[0].clone()]),
            false => Err(Error::shape("src", format!("shape {} as of dst", x[0])).actual(&x[1])),
        }
    }

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
                    // SAFETY: both have this many elements of T. They may be one array, so no slice is made of the source.
                    unsafe { std::ptr::copy(src.ptr().cast::<T>(), dst.as_mut_ptr(), dst.len()) }
                })
            }),
        }
    }

    fn has_state(&self) -> bool {
        true
    }

    fn updates_input(&self, i: usize) -> bool {
        i == 0
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(g.gy[0].clone()), None])
    }
}
