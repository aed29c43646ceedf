//! `flip`: the order of axes reversed.

use super::List;
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Reverses the order of elements along axes.
    Flip flip in Array, any_device
    inputs { x: "N-D array." }
    args { axes: Option<List> = None, "Axes to reverse; None: the last one. They may count from the end." }
    outputs { y: "N-D array of x's shape." }
}

impl Flip {
    fn moves(&self, x: &Shape) -> Result<Moves> {
        let last = [-1];
        let axes = self.axes.as_ref().map_or(&last[..], |a| a);
        let axes = axes.iter().map(|&a| x.axis(a, "axes")).collect::<Result<Vec<usize>>>()?;
        let strides = x.strides();
        let flipped = |a: &usize| axes.contains(a) && x[*a] > 0;
        let first = (0..x.ndim()).filter(flipped).map(|a| (x[a] - 1) * strides[a]).sum();
        let axis = |m: Moves, a: usize| {
            let s = strides[a] as isize;
            m.axis(x[a], s, if axes.contains(&a) { -s } else { s })
        };
        Ok((0..x.ndim()).fold(Moves::new(0, first), axis))
    }
}

impl Function for Flip {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("x", "one axis at least").actual(&x[0]));
        }
        self.moves(&x[0]).map(|_| smallvec![x[0].clone()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let moves = self.moves(x[0].shape)?;
        ops::moves(moves, &y[0].data, &x[0].data, Output::Write)
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
        let (Some(gy), Some(gx)) = (&gy[0], &mut gx[0]) else { return Ok(()) };
        let (moves, output) = (self.moves(gx.shape)?, gx.output);
        ops::moves(moves, &gx.data, &gy.data, output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(flip(&g.gy[0], self.clone())?)])
    }
}
