//! `broadcast_to`: an array repeated to the shape of another one.

use super::sum_to;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::broadcast as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Repeats y to the shape of x. y's axes are x's from `axis` on, with the same sizes; by default x's last ones.
    BroadcastTo broadcast_to in Array, any_device
    inputs { x: "N-D array, of which only the shape counts.", y: "Array of x's shape or a part of it." }
    args { axis: Option<i64> = None, "The axis of x that is y's first; None or -1: such that the last ones are matched." }
    outputs { z: "N-D array of x's shape." }
}

impl BroadcastTo {
    /// The number of x's axes before those of y.
    fn first(&self, x: &Shape, y: &Shape) -> Result<usize> {
        let Some(most) = x.ndim().checked_sub(y.ndim()) else {
            return Err(Error::shape("y", format!("at most the {} axes of x {x}", x.ndim())).actual(y));
        };
        let first = match self.axis.unwrap_or(-1) {
            -1 => most,
            axis => x.axis(axis, "axis")?,
        };
        if first > most || x[first..first + y.ndim()] != y[..] {
            let expected = format!("sizes of x {x} from axis {} on", first.min(most));
            return Err(Error::shape("y", expected).actual(y));
        }
        Ok(first)
    }
}

impl Function for BroadcastTo {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let first = self.first(&x[0], &x[1])?;
        let ones = x[0].ndim() - first - x[1].ndim();
        let aligned: Shape = x[1].iter().copied().chain(std::iter::repeat_n(1, ones)).collect();
        let spread = kernel::Broadcast { x: aligned, y: x[0].clone() };
        Ok(Resolved::one(x[0].clone(), kernel::BroadcastTo(spread)))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        vec![("axis", ArgValue::Int(self.axis.unwrap_or(-1)))]
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 1
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let summed = sum_to(&g.gy[0], &g.call::<kernel::BroadcastTo>().0.x)?;
        Ok(vec![None, Some(f::reshape(&summed, f::Reshape::to(&g.x[1].shape()))?)])
    }
}
