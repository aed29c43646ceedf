//! `stack`: arrays joined along a new axis.

use super::concatenate::{place, take};
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Joins arrays of one shape along a new axis.
    Stack stack in Array, any_device
    inputs { x [variadic]: "N-D arrays of one shape." }
    args { axis: i64 = 0, "Place of the new axis in the result; may count from the end." }
    outputs { y: "The joined array, with one axis more." }
}

impl Stack {
    /// Place of the new axis; `n` axes are there before.
    fn axis(&self, n: usize) -> Result<usize> {
        let n = n as i64;
        let axis = if self.axis < 0 { self.axis + n + 1 } else { self.axis };
        if (0..=n).contains(&axis) {
            return Ok(axis as usize);
        }
        Err(Error::arg("axis", format!("an axis of the result, between {} and {n}", -n - 1)).actual(self.axis))
    }
}

impl Function for Stack {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        let axis = self.axis(x[0].ndim())?;
        if let Some((i, s)) = x.iter().enumerate().find(|(_, s)| **s != x[0]) {
            return Err(Error::shape(&format!("x[{i}]"), format!("shape {} as of x[0]", x[0])).actual(s));
        }
        Ok(smallvec![x[0][..axis].iter().chain(&[x.len()]).chain(&x[0][axis..]).copied().collect()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axis = self.axis(x[0].shape.ndim())?;
        let (outer, inner) = (x[0].shape.size_to(axis), x[0].shape.size_from(axis));
        for (i, v) in x.iter().enumerate() {
            let part = place(outer, inner * x.len(), i * inner, inner);
            ops::moves(part, &y[0].data, &v.data, Output::Write)?;
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
        let (Some(gy), n) = (&gy[0], gx.len()) else { return Ok(()) };
        for (i, gx) in gx.iter_mut().enumerate().filter_map(|(i, gx)| Some((i, gx.as_mut()?))) {
            let axis = self.axis(gx.shape.ndim())?;
            let (outer, inner, output) = (gx.shape.size_to(axis), gx.shape.size_from(axis), gx.output);
            let part = take(outer, inner * n, i * inner, inner);
            ops::moves(part, &gx.data, &gy.data, output)?;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axis = self.axis(g.x[0].shape().ndim())? as i64;
        let parts = f::split(&g.gy[0], f::Split { axis })?;
        Ok(parts.into_iter().zip(&g.want).map(|(v, want)| want.then_some(v)).collect())
    }
}
