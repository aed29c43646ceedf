//! `transpose`: axes in another order.

use super::List;
use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::{SmallVec, smallvec};

function! {
    /// Puts the axes into another order: axis i of the result is axis `axes[i]` of x.
    Transpose transpose in Array, any_device
    inputs { x: "N-D array." }
    args { axes: List, "The axes of x in their new order, each once. They may count from the end." }
    outputs { y: "N-D array." }
}

type Order = SmallVec<[usize; 6]>;

impl Transpose {
    /// With axes that count from the front.
    pub fn by(axes: &[usize]) -> Transpose {
        Transpose { axes: axes.into() }
    }

    fn order(&self, x: &Shape) -> Result<Order> {
        let order = self.axes.iter().map(|&a| x.axis(a, "axes")).collect::<Result<Order>>()?;
        if order.len() == x.ndim() && (0..x.ndim()).all(|a| order.contains(&a)) {
            return Ok(order);
        }
        let expected = format!("each of the {} axes of x {x} once", x.ndim());
        Err(Error::arg("axes", expected).actual(format!("{:?}", self.axes.0)))
    }

    /// For each axis of the result its size, and its strides in the result and in x.
    fn axes(&self, x: &Shape) -> Result<Vec<(usize, isize, isize)>> {
        let order = self.order(x)?;
        let y: Shape = order.iter().map(|&a| x[a]).collect();
        let (xs, ys) = (x.strides(), y.strides());
        Ok(order.iter().zip(ys).map(|(&a, s)| (x[a], s as isize, xs[a] as isize)).collect())
    }
}

impl Function for Transpose {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        Ok(smallvec![self.order(&x[0])?.iter().map(|&a| x[0][a]).collect()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axes = self.axes(x[0].shape)?;
        let moves = axes.iter().fold(Moves::new(0, 0), |m, &(n, y, x)| m.axis(n, y, x));
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
        let (axes, output) = (self.axes(gx.shape)?, gx.output);
        let moves = axes.iter().fold(Moves::new(0, 0), |m, &(n, y, x)| m.axis(n, x, y));
        ops::moves(moves, &gx.data, &gy.data, output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let order = self.order(&g.x[0].shape())?;
        let back: Vec<usize> = (0..order.len()).map(|a| order.iter().position(|&o| o == a).unwrap_or(a)).collect();
        Ok(vec![Some(transpose(&g.gy[0], Transpose::by(&back))?)])
    }
}
