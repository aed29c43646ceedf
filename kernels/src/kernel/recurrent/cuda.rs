//! Steps on a GPU: a matrix product, and a kernel for all gates.

use super::Cell;
use super::backward::BackwardSteps;
use super::forward::ForwardSteps;
use super::part;
use crate::array::{Data, Output};
use crate::cuda::team::{is_double, named};
use crate::error::Result;
use crate::kernel::matmul::{Matrix, matmul};
use std::ops::Range;

fn kernel(cell: Cell, way: &str, data: &Data) -> String {
    let cell = match cell {
        Cell::Tanh => "tanh",
        Cell::Relu => "relu",
        Cell::Lstm => "lstm",
        Cell::Gru => "gru",
    };
    named(&format!("{cell}_{way}"), is_double(data))
}

/// Steps number `range` of a layer and direction.
pub(super) fn forward(s: &ForwardSteps, range: Range<usize>) -> Result<()> {
    let c = s.c;
    let (state, hidden, rows) = (c.state(), c.hidden, c.gate_rows());
    let wide = c.directions * hidden;
    let gpu = s.out.gpu();
    let products = Data::new_at(s.out.place(), s.out.dtype(), c.batch * rows)?;
    let name = kernel(c.cell, "forward", &s.out);
    let outputs = |t: usize| s.out.after(t * c.batch * wide + s.direction * hidden);
    for i in range {
        let time = c.time(s.direction, i);
        let before = i.checked_sub(1).map(|i| c.time(s.direction, i));
        let (h, stride) = before.map_or((s.h.clone(), hidden), |t| (outputs(t), wide));
        let w = s.weight.of_h(&s.weight.h, rows);
        matmul(1, Matrix::rows(&h, c.batch, hidden, stride), w.t(), &products, Output::Write)?;
        let gates = part(&s.gates, (time - s.first_time) * c.batch * rows, c.batch * rows);
        let extra = |t: usize| s.extra.as_ref().map(|e| part(e, t * s.extra_step, state));
        let earlier = before.map_or(s.c0.clone(), extra);
        let launch = gpu.launch("recurrent", &name)?.data(&gates).data(&products).maybe(extra(time).as_ref());
        let launch = launch.data(&h).size(stride).maybe(earlier.as_ref()).maybe(s.state_bias.as_ref());
        let launch = launch.data(&outputs(time)).size(wide).size(c.batch).size(hidden);
        // SAFETY: the arrays have the sizes of the layer.
        unsafe { launch.run(gpu.grid(state))? };
    }
    Ok(())
}

/// All steps of a layer and direction, from the last one to the first.
pub(super) fn backward(s: &BackwardSteps) -> Result<()> {
    let c = s.c;
    let (state, hidden, rows, columns) = (c.state(), c.hidden, c.gate_rows(), c.cell.biases() * c.hidden);
    let wide = c.directions * hidden;
    let gpu = s.out.gpu();
    let name = kernel(c.cell, "backward", s.out);
    let at = |data: &Data, t: usize| data.after(t * c.batch * wide + s.direction * hidden);
    for i in (0..c.steps).rev() {
        let time = c.time(s.direction, i);
        let before = i.checked_sub(1).map(|i| c.time(s.direction, i));
        let (h, stride) = before.map_or((s.h.clone(), hidden), |t| (at(s.out, t), wide));
        let extra = |t: usize| s.extra.map(|e| part(e, t * state, state));
        let earlier = before.map_or(s.c0.clone(), extra);
        let gates = part(s.gates, time * c.batch * rows, c.batch * rows);
        let sums = part(s.sums, time * c.batch * columns, c.batch * columns);
        let launch = gpu.launch("recurrent", &name)?.data(&gates).maybe(extra(time).as_ref());
        let launch = launch.data(&h).size(stride).maybe(earlier.as_ref());
        let launch = launch.maybe(s.g_out.map(|g| at(g, time)).as_ref()).size(wide);
        let launch = launch.data(&s.gh).maybe(s.gc.as_ref()).data(&sums).size(c.batch).size(hidden);
        // SAFETY: the arrays have the sizes of the layer.
        unsafe { launch.run(gpu.grid(state))? };
        for gates in c.cell.state_gates() {
            let w = s.weight.h.after(gates.row * hidden * (s.weight.width + hidden));
            let (g, n) = (sums.after(gates.column * hidden), gates.n * hidden);
            matmul(1, Matrix::rows(&g, c.batch, n, columns), s.weight.of_h(&w, n), &s.gh, Output::Accumulate)?;
        }
    }
    Ok(())
}
