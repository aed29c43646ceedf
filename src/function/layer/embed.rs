//! `embed`: rows of a table by their numbers.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::embed as kernel;
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::shape::Shape;

function! {
    /// Looks up rows: `y[i] = w[x0[i]]`. The gradient of w sums over repeated indices.
    Embed embed in Layer, any_device
    inputs {
        x0 [index]: "N-D array of row numbers, from 0 to the number of rows less 1.",
        w: "Table of shape (rows, ..).",
    }
    args {}
    outputs { y: "Array of x0's shape and then a row's." }
}

impl Function for Embed {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[1].ndim() == 0 {
            return Err(Error::shape("w", "1 axis at least, the rows").actual(&x[1]));
        }
        let picks = Picks::rows(x[1][0], x[1].size_from(1), x[0].size());
        let y: Shape = x[0].iter().chain(&x[1][1..]).copied().collect();
        Ok(Resolved::one(y, kernel::Embed(picks)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let rows = g.call::<kernel::Embed>().0.n as i64;
        Ok(vec![None, Some(embed_backward(&g.x[0], &g.gy[0], EmbedBackward { rows })?)])
    }
}

function! {
    /// The gradient of `embed`'s table: sums of the rows that have the same number. Internal: not in the registry.
    EmbedBackward embed_backward in Layer, any_device
    inputs { x0 [index]: "Row numbers.", gy: "Gradient of embed's result." }
    args { rows: i64, "Rows of the table." }
    outputs { gw: "Gradient of the table." }
}

impl Function for EmbedBackward {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        if x[1].ndim() < x[0].ndim() || x[1][..x[0].ndim()] != x[0][..] {
            return Err(Error::shape("gy", format!("axes that begin with {}", x[0])).actual(&x[1]));
        }
        let rows = self.rows.max(0) as usize;
        let y: Shape = [rows].iter().chain(&x[1][x[0].ndim()..]).copied().collect();
        let picks = Picks::rows(rows, y.size_from(1), x[0].size());
        Ok(Resolved::one(y, kernel::EmbedBackward(picks)))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, Some(embed(&g.x[0], &g.gy[0])?)])
    }
}
