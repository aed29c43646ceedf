//! `split`: the pieces along an axis, which disappears.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::join_split as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Cuts an array along an axis into as many pieces as the axis is long; the pieces do not have that axis.
    Split split in Array, any_device
    inputs { x: "N-D array." }
    args { axis: i64 = 0, "Axis to cut along; may count from the end." }
    outputs { y [variadic]: "An array for each place along axis, without that axis." }
}

/// Each is a variable of its own.
const MAX_PIECES: usize = 1 << 20;

impl Function for Split {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let axis = x[0].axis(self.axis, "axis")?;
        if x[0][axis] == 0 {
            return Err(Error::shape("x", format!("a size above 0 along axis {axis}")).actual(&x[0]));
        }
        if x[0][axis] > MAX_PIECES {
            let expected = format!("at most {MAX_PIECES} pieces along axis {axis}");
            return Err(Error::shape("x", expected).actual(&x[0]));
        }
        let piece: Shape = x[0][..axis].iter().chain(&x[0][axis + 1..]).copied().collect();
        Ok(Resolved::new(smallvec![piece; x[0][axis]], kernel::Split { axis, whole: x[0].clone() }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let parts: Vec<&Variable> = g.gy.iter().collect();
        let axis = g.call::<kernel::Split>().axis as i64;
        Ok(vec![Some(f::stack(&parts, f::Stack { axis })?)])
    }
}
