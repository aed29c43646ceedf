//! Rows of a table by their numbers, and the gradient of the table.

use super::gather::Picks;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::error::{Error, Result};
use crate::kernel::gather::cuda::{self as gather, OutOfRange};
use crate::pool::tasks;
use crate::simd::{self, SimdReal};
use crate::with_real;

/// Looks up rows.
pub struct Embed(pub Picks);

impl Call for Embed {
    /// A number that is no row's is an error on the host. A GPU gives NaN, since looking for one would make the host
    /// wait.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (rows, width) = (self.0.n, self.0.inner);
        if let Place::Gpu(_) = y[0].data.place() {
            return gather::gather(&self.0, &x[0].data, &x[1].data, &y[0].data, OutOfRange::Nan);
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

    fn backward(&self, _run: &Run, Gradients { x, gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(x), Some(gy), Some(gw)) = (&x[0], &gy[0], &gx[1]) else { return Ok(()) };
        scatter(&self.0, &x.data, &gy.data, &gw.data, gw.output)
    }
}

/// The gradient of the table as a function of its own.
pub struct EmbedBackward(pub Picks);

impl Call for EmbedBackward {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        scatter(&self.0, &x[0].data, &x[1].data, &y[0].data, Output::Write)
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
    tasks::parts(y, each * width, |p, part| {
        for (row, &i) in part.chunks_exact_mut(width).zip(&indices[p * each..]) {
            row.copy_from_slice(&w[i as usize * width..][..width]);
        }
    });
}

/// Adds rows to those they came from.
fn scatter(picks: &Picks, x: &Data, gy: &Data, gw: &Data, output: Output) -> Result<()> {
    match gw.place() {
        Place::Gpu(_) => gather::scatter(picks, x, gy, gw, output)?,
        Place::Host => with_real!(gw.dtype(), T => {
            scatter_on_host(x.as_slice(), gy.as_slice::<T>(), picks.inner, gw.as_mut_slice(), output)
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
    tasks::parts(gw, each * width, |p, part| {
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
