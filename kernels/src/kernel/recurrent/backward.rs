//! The way back: layers from the last to the first, in each direction the steps, and then the products of all steps at once.

use super::{LayerWeight, PartTrace, Recurrent, Trace, computed, cpu, cuda, no_forward, part};
use crate::array::{Data, Output, Place};
use crate::call::{GradMut, Gradients, Run, View};
use crate::error::Result;
use crate::kernel::matmul::{Matrix, matmul};
use crate::kernel::moves::Moves;
use crate::kernel::ops;
use crate::with_real;
use std::sync::Arc;

/// What the steps of a layer and direction work on.
pub(super) struct BackwardSteps<'a> {
    pub(super) c: &'a Recurrent,
    pub(super) direction: usize,
    pub(super) weight: &'a LayerWeight,
    /// States before the first step.
    pub(super) h: Data,
    pub(super) c0: Option<Data>,
    pub(super) gates: &'a Data,
    pub(super) extra: Option<&'a Data>,
    /// Outputs of all steps and directions, and their gradient if any has come.
    pub(super) out: &'a Data,
    pub(super) g_out: Option<&'a Data>,
    /// Gets the gradients of the sums in the gates, for all steps.
    pub(super) sums: &'a Data,
    /// The gradients of the states after the last step; become those of the states before the first one.
    pub(super) gh: Data,
    pub(super) gc: Option<Data>,
}

/// All that is read, in the type to compute in.
struct BackwardInputs {
    inputs: Vec<Option<Data>>,
    /// The last layer's output.
    y: Data,
    gradients: Vec<Option<Data>>,
}

impl BackwardInputs {
    fn new(run: &Run, x: &[Option<View>], y: &[Option<View>], gy: &[Option<View>]) -> Result<BackwardInputs> {
        let all = |list: &[Option<View>]| {
            let each = |v: &Option<View>| v.as_ref().map(|v| computed(&v.data, run.dtype)).transpose();
            list.iter().map(each).collect::<Result<Vec<_>>>()
        };
        let y = all(y)?.swap_remove(0).ok_or_else(no_forward)?;
        Ok(BackwardInputs { inputs: all(x)?, y, gradients: all(gy)? })
    }

    fn input(&self, i: usize) -> Result<&Data> {
        self.inputs[i].as_ref().ok_or_else(no_forward)
    }
}

/// Writes or adds to `n` elements of a gradient from `first` on.
fn give(to: &Option<GradMut>, first: usize, from: &Data) -> Result<()> {
    let Some(to) = to else { return Ok(()) };
    ops::put(&part(&to.data, first, from.len()), from, to.output)
}

impl Recurrent {
    pub(super) fn run_backward(&self, run: &Run, Gradients { x, y, gy, gx }: Gradients) -> Result<()> {
        if gy.iter().all(|g| g.is_none()) {
            return Ok(());
        }
        let read = BackwardInputs::new(run, x, y, gy)?;
        let trace = self.trace(run, &read)?;
        let mut g_out = read.gradients[0].clone();
        for layer in (0..self.layers).rev() {
            let out = trace.between.get(layer).unwrap_or(&read.y);
            let wants_weight = gx[self.weight_input(layer)].is_some();
            let x = match layer.checked_sub(1) {
                Some(before) if wants_weight => {
                    Some(self.masked(trace.between[before].clone(), trace.mask.as_ref(), before)?)
                }
                None if wants_weight => Some(read.input(0)?.clone()),
                _ => None,
            };
            let g_in = self.input_gradient(layer, &read, gx)?;
            for direction in 0..self.directions {
                let of = &trace.parts[layer * self.directions + direction];
                let g_in =
                    g_in.as_ref().map(|(g, first)| (g, if direction == 0 { *first } else { Output::Accumulate }));
                self.backward_part(&read, [layer, direction], x.as_ref(), of, [Some(out), g_out.as_ref()], g_in, gx)?;
            }
            let Some((g, output)) = g_in else { continue };
            if let Some(before) = layer.checked_sub(1) {
                g_out = Some(self.masked(g, trace.mask.as_ref(), before)?);
            } else if let Some(to) = gx[0].as_ref().filter(|to| to.data.address() != g.address()) {
                debug_assert!(output == Output::Write);
                ops::put(&to.data, &g, to.output)?;
            }
        }
        Ok(())
    }

    /// What forward has kept; on a GPU, where it keeps nothing, what it makes again.
    fn trace(&self, run: &Run, read: &BackwardInputs) -> Result<Arc<Trace>> {
        if read.y.place() == Place::Host {
            let fits = |t: &Arc<Trace>| t.parts.iter().all(|p| p.gates.dtype() == run.dtype);
            return run.saved::<Trace>().filter(fits).ok_or_else(no_forward);
        }
        let inputs = read.inputs.iter().map(|x| x.clone().ok_or_else(no_forward)).collect::<Result<Vec<_>>>()?;
        let states = self.layers * self.directions * self.state();
        let new = |n: usize| Data::new_at(read.y.place(), run.dtype, n);
        let outputs = [new(self.output())?, new(states)?, new(states)?];
        let outputs = &outputs[..2 + self.cell.has_c() as usize];
        self.run_forward(run, &inputs, outputs, true, true)?.map(Arc::new).ok_or_else(no_forward)
    }

    /// Where the gradient of a layer's input goes, and how its first direction gives it.
    fn input_gradient(
        &self,
        layer: usize,
        read: &BackwardInputs,
        gx: &[Option<GradMut>],
    ) -> Result<Option<(Data, Output)>> {
        let dtype = read.y.dtype();
        let n = self.rows() * self.width(layer);
        match &gx[0] {
            None if layer == 0 => Ok(None),
            Some(to) if layer == 0 && to.data.dtype() == dtype => Ok(Some((to.data.clone(), to.output))),
            _ => Ok(Some((Data::new_at(read.y.place(), dtype, n)?, Output::Write))),
        }
    }

    /// A layer in one direction; `out` is its output and the gradient of that.
    #[allow(clippy::too_many_arguments)]
    fn backward_part(
        &self,
        read: &BackwardInputs,
        [layer, direction]: [usize; 2],
        x: Option<&Data>,
        of: &PartTrace,
        [out, g_out]: [Option<&Data>; 2],
        g_in: Option<(&Data, Output)>,
        gx: &[Option<GradMut>],
    ) -> Result<()> {
        let (place, dtype, out) = (read.y.place(), read.y.dtype(), out.unwrap_or(&read.y));
        let columns = self.cell.biases() * self.hidden;
        let weight = self.weight(read.input(self.weight_input(layer))?, layer, direction);
        let sums = Data::new_at(place, dtype, self.rows() * columns)?;
        let state = |given: Option<&Data>| -> Result<Data> {
            let state = Data::new_at(place, dtype, self.state())?;
            let given = given.map(|g| self.state_of(g, layer, direction));
            ops::begin(&state, given.as_ref())?;
            Ok(state)
        };
        let has_c = self.cell.has_c();
        let steps = BackwardSteps {
            c: self,
            direction,
            weight: &weight,
            h: self.state_of(read.input(1)?, layer, direction),
            c0: if has_c { Some(self.state_of(read.input(2)?, layer, direction)) } else { None },
            gates: &of.gates,
            extra: of.extra.as_ref(),
            out,
            g_out,
            sums: &sums,
            gh: state(read.gradients[1].as_ref())?,
            gc: if has_c { Some(state(read.gradients[2].as_ref())?) } else { None },
        };
        if self.state() > 0 {
            match place {
                Place::Host => {
                    let panels = cpu::backward_panels(self, &weight)?;
                    with_real!(dtype, T => cpu::backward::<T>(&steps, &panels));
                }
                Place::Gpu(_) => cuda::backward(&steps)?,
            }
        }
        let first = (layer * self.directions + direction) * self.state();
        give(&gx[1], first, &steps.gh)?;
        if let Some(gc) = &steps.gc {
            give(&gx[2], first, gc)?;
        }
        if let Some(gb) = self.bias_input().and_then(|i| gx[i].as_ref()) {
            let shape = [self.rows(), columns].into();
            let all = View::new(&shape, sums.clone());
            ops::sum(&all, &[true, false], &self.bias_of(&gb.data, layer, direction), gb.output)?;
        }
        if let (Some(gw), Some(x)) = (&gx[self.weight_input(layer)], x) {
            self.weight_gradient(&steps, [layer, direction], x, gw)?;
        }
        let Some((g, output)) = g_in else { return Ok(()) };
        let used = Matrix::rows(&sums, self.rows(), self.gate_rows(), columns);
        matmul(1, used, weight.of_x(), g, output)
    }

    /// The gradient of a weight: of x's columns, and of the state's.
    fn weight_gradient(&self, s: &BackwardSteps, at: [usize; 2], x: &Data, gw: &GradMut) -> Result<()> {
        let (columns, rows, width, hidden) =
            (self.cell.biases() * self.hidden, self.gate_rows(), self.width(at[0]), self.hidden);
        let new = |n: usize| Data::new_at(s.sums.place(), s.sums.dtype(), n);
        let of_x = new(rows * width)?;
        let used = Matrix::rows(s.sums, self.rows(), rows, columns);
        matmul(1, used.t(), Matrix::new(x, self.rows(), width), &of_x, Output::Write)?;
        let of_h = new(rows * hidden)?;
        for gates in self.cell.state_gates() {
            let to = part(&of_h, gates.row * hidden * hidden, gates.n * hidden * hidden);
            self.state_products(s, gates.column * hidden, gates.n * hidden, &to)?;
        }
        let (first, size) = self.weight_range(at[0], at[1]);
        let gw_part = part(&gw.data, first, size);
        for (from, first, n) in [(&of_x, 0, width), (&of_h, width, hidden)] {
            let stride = (width + hidden) as isize;
            let copy = Moves::new(first, 0).axis(rows, stride, n as isize).axis(n, 1, 1);
            ops::moves(copy, &gw_part, from, gw.output)?;
        }
        Ok(())
    }

    /// The product of `n` columns of the sums' gradients from `column` on and the states before their steps.
    fn state_products(&self, s: &BackwardSteps, column: usize, n: usize, y: &Data) -> Result<()> {
        let (hidden, wide, columns) = (self.hidden, self.directions * self.hidden, self.cell.biases() * self.hidden);
        if self.state() == 0 || self.steps == 0 {
            return ops::fill(y, 0.0);
        }
        let sums = |step: usize, steps: usize| {
            let (first, n) = (step * self.batch * columns + column, steps * self.batch * columns);
            part(s.sums, first, n.saturating_sub(column))
        };
        let started = sums(self.time(s.direction, 0), 1);
        let product = |g: &Data, rows: usize, h: Matrix, output: Output| {
            matmul(1, Matrix::rows(g, rows, n, columns).t(), h, y, output)
        };
        let rest = self.steps - 1;
        if rest > 0 {
            // The states before the other steps are the outputs of all but the last one.
            let (to, from) = if s.direction == 0 { (1, 0) } else { (0, 1) };
            let first = from * self.batch * wide + s.direction * hidden;
            let states = s.out.within(first, s.out.len() - first);
            let states = Matrix::rows(&states, rest * self.batch, hidden, wide);
            product(&sums(to, rest), rest * self.batch, states, Output::Write)?;
        }
        let output = if rest > 0 { Output::Accumulate } else { Output::Write };
        product(&started, self.batch, Matrix::new(&s.h, self.batch, hidden), output)
    }
}
