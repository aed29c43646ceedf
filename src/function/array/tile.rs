//! `tile`: an array repeated along its axes.

use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Repeats an array, as NumPy's `tile`. A list shorter than x has axes is about the last axes; a longer one adds axes in front.
    Tile tile in Array, any_device
    inputs { x: "N-D array." }
    args { reps: Vec<i64>, "How often each axis is repeated." }
    outputs { y: "The repeated array." }
}

impl Tile {
    /// For each axis of the result how often it repeats, and x's size there.
    fn axes(&self, x: &Shape) -> Vec<(usize, usize)> {
        let n = x.ndim().max(self.reps.len());
        let (lead, fewer) = (n - x.ndim(), n - self.reps.len());
        let rep = |a: usize| if a < fewer { 1 } else { self.reps[a - fewer].max(0) as usize };
        (0..n).map(|a| (rep(a), if a < lead { 1 } else { x[a - lead] })).collect()
    }

    /// The result with an axis for the repetitions before each axis of x.
    fn paired(&self, x: &Shape) -> (Shape, Vec<bool>) {
        let axes = self.axes(x);
        (axes.iter().flat_map(|&(r, n)| [r, n]).collect(), axes.iter().flat_map(|_| [true, false]).collect())
    }
}

impl Function for Tile {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if let Some(r) = self.reps.iter().find(|r| **r < 1) {
            return Err(Error::arg("reps", "numbers of 1 or more").actual(r));
        }
        Ok(smallvec![self.axes(&x[0]).iter().map(|&(r, n)| r.saturating_mul(n)).collect()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axes = self.axes(x[0].shape);
        let from: Shape = axes.iter().map(|a| a.1).collect();
        let (xs, ys) = (from.strides(), y[0].shape.strides());
        let moves = axes.iter().enumerate().fold(Moves::new(0, 0), |m, (a, &(r, n))| {
            let s = ys[a] as isize;
            m.axis(r, n as isize * s, 0).axis(n, s, xs[a] as isize)
        });
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
        let ((shape, repeated), output) = (self.paired(gx.shape), gx.output);
        ops::sum(&gy.data, &shape, &repeated, &gx.data, output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let pairs = f::reshape(&g.gy[0], f::Reshape::to(&self.paired(&x).0))?;
        let axis = Some((0..pairs.shape().ndim() as i64).step_by(2).collect());
        let sum = f::sum(&pairs, f::Sum { axis, keepdims: false })?;
        Ok(vec![Some(f::reshape(&sum, f::Reshape::to(&x))?)])
    }
}
