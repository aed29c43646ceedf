//! `embed`: rows of a table by their numbers.

use crate::function;
use crate::function::{Function, Grad, GradMut, Needs, Output, Run, Shapes, View, ViewMut};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Place};
use nnrs_kernels::cpu::pool;
use nnrs_kernels::cpu::simd::{self, SimdReal};
use nnrs_kernels::cuda::embed::{self, Absent};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::gather::Picks;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;
use std::sync::Mutex;

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
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[1].ndim() == 0 {
            return Err(Error::shape("w", "1 axis at least, the rows").actual(&x[1]));
        }
        Ok(smallvec![x[0].iter().chain(&x[1][1..]).copied().collect()])
    }

    /// A number that is no row's is an error on the host. A GPU gives NaN, since looking for one would make the host wait.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (rows, width) = (x[1].shape[0], x[1].shape.size_from(1));
        if let Place::Gpu(_) = y[0].data.place() {
            let picks = Picks::rows(rows, width, x[0].data.len());
            return embed::gather(&picks, &x[0].data, &x[1].data, &y[0].data, Absent::Nan);
        }
        let indices = x[0].slice::<i64>();
        if let Some(bad) = indices.iter().find(|i| !(0..rows as i64).contains(i)) {
            let expected = format!("row numbers of 0 or more and below {rows}, the rows of w");
            return Err(Error::arg("x0", expected).actual_index(*bad));
        }
        with_real!(run.dtype, T => gather(indices, x[1].slice::<T>(), width, y[0].slice()));
        Ok(())
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs { x: 1, y: 0 })
    }

    fn backward(
        &self,
        _run: &Run,
        x: &[Option<View>],
        _y: &[Option<View>],
        gy: &[Option<View>],
        gx: &mut [Option<GradMut>],
    ) -> Result<()> {
        let (Some(x), Some(gy), Some(gw)) = (&x[0], &gy[0], &gx[1]) else { return Ok(()) };
        scatter(&x.data, &gy.data, gw.shape.size_from(1), &gw.data, gw.output)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let rows = g.x[1].shape()[0] as i64;
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
    fn infer(&self, x: &[Shape]) -> Result<Shapes> {
        if x[1].ndim() < x[0].ndim() || x[1][..x[0].ndim()] != x[0][..] {
            return Err(Error::shape("gy", format!("axes that begin with {}", x[0])).actual(&x[1]));
        }
        let rows = self.rows.max(0) as usize;
        Ok(smallvec![[rows].iter().chain(&x[1][x[0].ndim()..]).copied().collect()])
    }

    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        scatter(&x[0].data, &x[1].data, y[0].shape.size_from(1), &y[0].data, Output::Write)
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![None, Some(embed(&g.x[0], &g.gy[0])?)])
    }
}

/// Numbers that are worth a task.
const TASK: usize = 1 << 14;

/// Copies rows; the indices have been checked.
fn gather<T: SimdReal>(indices: &[i64], w: &[T], width: usize, y: &mut [T]) {
    if y.is_empty() {
        return;
    }
    let each = (TASK / width).max(1);
    let parts: Vec<_> = y.chunks_mut(each * width).map(Mutex::new).collect();
    pool::run(parts.len(), &|p| {
        let mut part = parts[p].lock().unwrap_or_else(|e| e.into_inner());
        for (row, &i) in part.chunks_exact_mut(width).zip(&indices[p * each..]) {
            row.copy_from_slice(&w[i as usize * width..][..width]);
        }
    });
}

/// Adds rows to those they came from.
fn scatter(x: &Data, gy: &Data, width: usize, gw: &Data, output: Output) -> Result<()> {
    match gw.place() {
        Place::Gpu(_) => {
            let rows = gw.len() / width.max(1);
            embed::scatter(&Picks::rows(rows, width, x.len()), x, gy, gw, output)?
        }
        Place::Host => with_real!(gw.dtype(), T => {
            scatter_on_host(x.as_slice(), gy.as_slice::<T>(), width, gw.as_mut_slice(), output)
        }),
    }
    Ok(())
}

/// Each task has some rows of the table and takes their parts in the order of the
/// indices, so the sums do not depend on the threads.
fn scatter_on_host<T: SimdReal>(indices: &[i64], gy: &[T], width: usize, gw: &mut [T], output: Output) {
    if gw.is_empty() {
        return;
    }
    let rows = gw.len() / width;
    let tasks = ((gw.len() + gy.len()) / TASK).clamp(1, 16);
    let each = rows.div_ceil(tasks);
    let parts: Vec<_> = gw.chunks_mut(each * width).map(Mutex::new).collect();
    pool::run(parts.len(), &|p| {
        let mut part = parts[p].lock().unwrap_or_else(|e| e.into_inner());
        if output == Output::Write {
            part.fill(T::ZERO);
        }
        let (first, count) = ((p * each) as i64, part.len() / width);
        for (k, &i) in indices.iter().enumerate() {
            if (first..first + count as i64).contains(&i) {
                let row = &mut part[(i - first) as usize * width..][..width];
                simd::add_assign(row, &gy[k * width..][..width]);
            }
        }
    });
}
