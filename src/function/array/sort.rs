//! `sort` along an axis, with the places where the elements were.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::sort as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Sorts the elements along an axis. Equal ones keep their order; NaN counts as the largest number.
    Sort sort in Array, forward_on_any_device
    inputs { x: "N-D array." }
    args {
        axis: i64 = -1, "The axis; may count from the end.";
        reverse: bool = false, "Sort from the largest element down.";
        with_index: bool = false, "Also give where each element was.";
        only_index: bool = false, "Give where each element was alone."
    }
    outputs { y [variadic]: "Sorted elements, or [sorted elements, indices], or indices along the axis." }
}

impl Function for Sort {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis, "axis")?;
        let call = kernel::Sort::new(&x[0], axis, self.reverse, self.only_index)?;
        let both = self.with_index && !self.only_index;
        Ok(Resolved::new(smallvec![x[0].clone(); 1 + both as usize], call))
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i == 1 || self.only_index).then_some(DType::U64)
    }

    fn differentiable(&self, _i: usize) -> bool {
        !self.only_index
    }

    fn refuses_grad(&self) -> bool {
        self.only_index
    }

    /// The elements go back to where they were.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = Some(g.call::<kernel::Sort>().axis as i64);
        let order = sort(&g.x[0], Sort { only_index: true, ..self.clone() })?.swap_remove(0);
        let zeros = Variable::from_array(crate::NdArray::new(g.x[0].shape())).with_need_grad(false);
        Ok(vec![Some(f::scatter_add(&zeros, &order, &g.gy[0], f::ScatterAdd { axis })?)])
    }
}
