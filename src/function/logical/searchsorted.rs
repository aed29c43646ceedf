//! `searchsorted`: where numbers belong in sorted lines.

use crate::function;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::searchsorted as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Where numbers belong in sorted lines, the last axis: how many elements of the line are less. NaN counts as the largest
    /// number. No gradient.
    SearchSorted searchsorted in Logical, forward_on_any_device
    inputs {
        sorted_sequence: "N-D array, sorted along its last axis.",
        values: "Numbers to search for: N-D array of the same shape but for the last axis."
    }
    args { right: Option<bool> = None, "Count the equal ones too; None: False." }
    outputs { y: "N-D array of the shape of values." }
}

impl Function for SearchSorted {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let lead = |s: &Shape| s.split_last().map(|(_, lead)| Shape::from(lead));
        let Some(lines) = lead(&x[0]) else {
            return Err(Error::shape("sorted_sequence", "one axis at least").actual(&x[0]));
        };
        if lead(&x[1]).as_ref() != Some(&lines) {
            let expected = format!("the shape of sorted_sequence {} but for the last axis", x[0]);
            return Err(Error::shape("values", expected).actual(&x[1]));
        }
        let (n, each) = (x[0][lines.ndim()], x[1][lines.ndim()]);
        Ok(Resolved::one(x[1].clone(), kernel::SearchSorted { n, each, right: self.right.unwrap_or(false) }))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        SearchSorted { right: Some(self.right.unwrap_or(false)) }.arguments()
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn refuses_grad(&self) -> bool {
        true
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, None])
    }
}
