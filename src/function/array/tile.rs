//! `tile`: an array repeated along its axes.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::tile as kernel;
use nnrs_kernels::shape::Shape;

function! {
    /// Repeats an array, as NumPy's `tile`. A list shorter than x has axes is about the last axes; a longer one adds axes in front.
    Tile tile in Array, any_device
    inputs { x: "N-D array." }
    args { reps: Vec<i64>, "How often each axis is repeated." }
    outputs { y: "The repeated array, each size being reps times as large." }
}

impl Tile {
    /// For each axis of the result how often it repeats, and x's size there.
    fn axes(&self, x: &Shape) -> Vec<(usize, usize)> {
        let n = x.ndim().max(self.reps.len());
        let (lead, fewer) = (n - x.ndim(), n - self.reps.len());
        let rep = |a: usize| if a < fewer { 1 } else { self.reps[a - fewer].max(0) as usize };
        (0..n).map(|a| (rep(a), if a < lead { 1 } else { x[a - lead] })).collect()
    }
}

impl Function for Tile {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if let Some(r) = self.reps.iter().find(|r| **r < 1) {
            return Err(Error::arg("reps", "numbers of 1 or more").actual(r));
        }
        let axes = self.axes(&x[0]);
        let y = axes.iter().map(|&(r, n)| r.saturating_mul(n)).collect::<Shape>().checked()?;
        Ok(Resolved::one(y.clone(), kernel::Tile::new(&axes, &y)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let x = g.x[0].shape();
        let pairs = f::reshape(&g.gy[0], f::Reshape::to(&g.call::<kernel::Tile>().pairs))?;
        let axis = Some((0..pairs.shape().ndim() as i64).step_by(2).collect());
        let sum = f::sum(&pairs, f::Sum { axis, keepdims: false })?;
        Ok(vec![Some(f::reshape(&sum, f::Reshape::to(&x))?)])
    }
}
