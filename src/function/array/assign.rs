//! `assign`: writes one array's content into another.

use crate::error::{Error, Result};
use crate::function::{Function, Grad, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::shape::Shape;
use crate::{function, with_real};
use smallvec::smallvec;

function! {
    /// Writes `src` into the data of `dst` whenever it runs, and gives a copy. The gradient goes to `dst`.
    Assign assign in Array
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
        with_real!(run.dtype, T => {
            let src = x[1].slice::<T>();
            y[0].slice::<T>().copy_from_slice(src);
            if run.again { Ok(()) } else { run.update_input::<T>(0, src.len(), |dst| dst.copy_from_slice(src)) }
        })
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
