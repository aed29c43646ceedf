//! `sink`: one root for several variables, so that one backward run starts from all of them.

use crate::function::{Function, Grad, GradientPart, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::sink as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// A number, 0, that depends on all inputs: `forward` and `backward` of it run the graphs behind all of them.
    Sink sink in Special, any_device
    inputs { x [variadic]: "N-D arrays." }
    args { one_input_grad: bool = true, "Whether the gradient of each input is 1; else it is what the input's own gradient holds." }
    outputs { y: "0, of shape ()." }
}

impl Function for Sink {
    fn resolve(&self, _x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::one(Shape::default(), kernel::Sink))
    }

    fn gradient_of(&self, _i: usize) -> GradientPart {
        if self.one_input_grad { GradientPart::Instead } else { GradientPart::Given }
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let one = |x: &Variable| {
            let shape = x.shape().iter().map(|&n| n as i64).collect();
            f::constant(f::Constant { val: 1.0, shape })
        };
        let own = |x: &Variable| f::identity(&Variable::from_array(x.grad()));
        let part = |x: &Variable| if self.one_input_grad { one(x) } else { own(x) };
        g.x.iter().zip(&g.want).map(|(x, want)| want.then(|| part(x)).transpose()).collect()
    }
}
