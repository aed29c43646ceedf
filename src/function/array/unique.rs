//! `unique`: the different elements of an array, or its different slices.

use crate::function;
use crate::function::{ArgValue, Call, Described, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::axis::Axis;
use nnrs_kernels::kernel::unique as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The different elements of an array, or its different slices along an axis. NaN counts as equal to NaN. No gradient.
    Unique unique in Special, any_device
    inputs { x: "N-D array." }
    args {
        flatten: bool = true, "Look at elements; if not, at slices along `axis`.";
        axis: Option<i64> = None, "The axis; may count from the end. None: elements are looked at in any case.";
        sorted: bool = true, "Sort them; if not, they come as they first occur.";
        with_index: bool = false, "Also give where each occurs first.";
        with_inverse: bool = false, "Also give, for each element or slice of x, its number among the different ones.";
        with_counts: bool = false, "Also give how often each occurs.";
        count: i64 = 0, "How many there are."
    }
    outputs { y [variadic]: "The different elements or slices; or a list of them and what else is asked for." }
}

impl Function for Unique {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = self.axis.map(|a| x[0].axis(a, "axis")).transpose()?.filter(|_| !self.flatten);
        let count = self.count.max(0) as usize;
        let at = match axis {
            Some(axis) => Axis::new(&x[0], axis),
            None => Axis { outer: 1, n: x[0].size(), inner: 1 },
        };
        let mut y = match axis {
            Some(_) => x[0].clone(),
            None => Shape::from([at.n]),
        };
        y.as_mut_slice()[axis.unwrap_or(0)] = count;
        let mut shapes = smallvec![y];
        let more = [(self.with_index, count), (self.with_inverse, at.n), (self.with_counts, count)];
        shapes.extend(more.iter().filter(|(asked, _)| *asked).map(|&(_, n)| Shape::from([n])));
        let asked = more.map(|(asked, _)| asked);
        Ok(Resolved::new(shapes, kernel::Unique { at, count, sorted: self.sorted, asked }))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        self.arguments().into_iter().filter(|(name, _)| *name != "count").collect()
    }

    fn output_dtype(&self, i: usize) -> Option<DType> {
        (i > 0).then_some(DType::I32)
    }

    fn differentiable(&self, _i: usize) -> bool {
        false
    }

    fn refuses_grad(&self) -> bool {
        true
    }

    fn grad(&self, _g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None])
    }
}
