//! `concatenate`: arrays joined along an axis.

use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::cpu::moves::Moves;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// Joins arrays along an axis. Their sizes along the other axes must agree.
    Concatenate concatenate in Array, any_device
    inputs { x [variadic]: "N-D arrays." }
    args { axis: Option<i64> = None, "Axis to join along; None: the last one. It may count from the end." }
    outputs { y: "The joined array." }
}

impl Concatenate {
    fn axis(&self, x: &Shape) -> Result<usize> {
        x.axis(self.axis.unwrap_or(-1), "axis")
    }
}

/// Copies of one part between its place among the whole's `total` and an array of its own, `n` elements each time.
pub(super) fn place(outer: usize, total: usize, first: usize, n: usize) -> Moves {
    Moves::new(first, 0).axis(outer, total as isize, n as isize).axis(n, 1, 1)
}

/// The way back.
pub(super) fn take(outer: usize, total: usize, first: usize, n: usize) -> Moves {
    Moves::new(0, first).axis(outer, n as isize, total as isize).axis(n, 1, 1)
}

impl Function for Concatenate {
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[0].ndim() == 0 {
            return Err(Error::shape("x", "arrays with one axis at least").actual(&x[0]));
        }
        let axis = self.axis(&x[0])?;
        let mut y = x[0].clone();
        for (i, s) in x.iter().enumerate().skip(1) {
            let agrees = |a: usize| a == axis || s[a] == x[0][a];
            if s.ndim() != y.ndim() || !(0..y.ndim()).all(agrees) {
                let expected = format!("shape {} as of x[0], but for axis {axis}", x[0]);
                return Err(Error::shape(&format!("x[{i}]"), expected).actual(s));
            }
            y.as_mut_slice()[axis] = y[axis].saturating_add(s[axis]);
        }
        Ok(smallvec![y])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let axis = self.axis(y[0].shape)?;
        let (outer, total) = (y[0].shape.size_to(axis), y[0].shape.size_from(axis));
        let mut first = 0;
        for x in x {
            let n = x.shape.size_from(axis);
            ops::moves(place(outer, total, first, n), &y[0].data, &x.data, Output::Write)?;
            first += n;
        }
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(
        &self,
        run: &Run,
        _x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let Some(gy) = &gy[0] else { return Ok(()) };
        let axis = self.axis(gy.shape)?;
        let (outer, total) = (gy.shape.size_to(axis), gy.shape.size_from(axis));
        let mut first = 0;
        for (i, gx) in gx.iter_mut().enumerate() {
            let n = run.shape(i).size_from(axis);
            if let Some(gx) = gx {
                let output = gx.output;
                ops::moves(take(outer, total, first, n), &gx.data, &gy.data, output)?;
            }
            first += n;
        }
        Ok(())
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shape = g.gy[0].shape();
        let axis = self.axis(&shape)?;
        let mut first = 0;
        let part = |(x, &want): (&Variable, &bool)| {
            let from = first;
            first += x.shape()[axis];
            let slice = f::Slice::along(&shape, axis, from, first);
            want.then(|| f::slice(&g.gy[0], slice)).transpose()
        };
        g.x.iter().zip(&g.want).map(part).collect()
    }
}
