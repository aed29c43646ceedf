//! `meshgrid`: the coordinates of a grid.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::meshgrid as kernel;
use nnrs_kernels::shape::Shape;
use smallvec::smallvec;

function! {
    /// The coordinates of a grid, as NumPy's `meshgrid`: each input repeated along the axes of the others.
    Meshgrid meshgrid in Array, any_device
    inputs { x [variadic]: "1-D arrays: the coordinates along each axis." }
    args { ij_indexing: bool = false, "Whether input i goes along axis i; if not, the first two axes change places." }
    outputs { y [variadic]: "One array for each input, with an axis for each." }
}

impl Function for Meshgrid {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if let Some((i, s)) = x.iter().enumerate().find(|(_, s)| s.ndim() != 1) {
            return Err(Error::shape(&format!("x[{i}]"), "one axis").actual(s));
        }
        let axis = |i: usize| if self.ij_indexing || i > 1 || x.len() < 2 { i } else { 1 - i };
        let y: Shape = (0..x.len()).map(|a| x[axis(a)][0]).collect();
        let y = y.checked()?;
        let axes = (0..x.len()).map(axis).collect();
        Ok(Resolved::new(smallvec![y.clone(); x.len()], kernel::Meshgrid { axes, y }))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let axes = &g.call::<kernel::Meshgrid>().axes;
        let sum = |i: usize| {
            let others = (0..axes.len()).filter(|a| *a != axes[i]).map(|a| a as i64).collect();
            f::sum(&g.gy[i], f::Sum { axis: Some(others), keepdims: false })
        };
        g.want.iter().enumerate().map(|(i, want)| want.then(|| sum(i)).transpose()).collect()
    }
}
