//! `split`: the pieces along an axis, which disappears.

use super::concatenate::{place, take};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Cuts an array along an axis into as many pieces as the axis is long; the pieces do not have that axis.
    Split split in Array, any_device
    inputs { x: "N-D array." }
    args { axis: i64 = 0, "Axis to cut along; may count from the end." }
    outputs { y [variadic]: "The pieces." }
}

/// Each is a variable of its own.
const MAX_PIECES: usize = 1 << 20;

impl Function for Split {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let axis = x[0].axis(self.axis, "axis")?;
        if x[0][axis] == 0 {
            return Err(Error::shape("x", format!("a size above 0 along axis {axis}")).actual(&x[0]));
        }
        if x[0][axis] > MAX_PIECES {
            let expected = format!("at most {MAX_PIECES} pieces along axis {axis}");
            return Err(Error::shape("x", expected).actual(&x[0]));
        }
        let piece: Shape = x[0][..axis].iter().chain(&x[0][axis + 1..]).copied().collect();
        Ok(smallvec![piece; x[0][axis]])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axis = x[0].shape.axis(self.axis, "axis")?;
        let (outer, inner, total) = sizes(x[0].shape, axis);
        for (i, y) in y.iter_mut().enumerate() {
            let part = take(outer, total, i * inner, inner);
            ops::moves(part, &y.data, &x[0].data, Output::Write)?;
        }
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        _run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let Some(gx) = &mut gx[0] else { return Ok(()) };
        let (outer, inner, total) = sizes(gx.shape, gx.shape.axis(self.axis, "axis")?);
        let output = gx.output;
        if output == Output::Write && gy.iter().any(Option::is_none) {
            ops::fill(&gx.data, 0.0)?;
        }
        for (i, gy) in gy.iter().enumerate().filter_map(|(i, gy)| Some((i, gy.as_ref()?))) {
            ops::moves(place(outer, total, i * inner, inner), &gx.data, &gy.data, output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let parts: Vec<&Variable> = g.gy.iter().collect();
        let axis = g.x[0].shape().axis(self.axis, "axis")? as i64;
        Ok(vec![Some(f::stack(&parts, f::Stack { axis })?)])
    }
}

/// Elements before the axis, in one piece after it, and in all pieces after it.
fn sizes(x: &Shape, axis: usize) -> (usize, usize, usize) {
    (x.size_to(axis), x.size_from(axis + 1), x.size_from(axis))
}
