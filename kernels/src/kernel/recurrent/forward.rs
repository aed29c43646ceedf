//! The way forward: layers, directions, products of all inputs.

use super::{LayerWeight, PartTrace, Recurrent, Trace, cpu, cuda, part};
use crate::array::{Data, Output, Place};
use crate::call::Run;
use crate::error::Result;
use crate::kernel::matmul::{Matrix, matmul};
use crate::kernel::moves::Moves;
use crate::kernel::ops;
use crate::shape::Shape;
use crate::with_real;

/// Elements of the gates that are worked on at a time where they are not kept.
const BAND: usize = 1 << 17;

/// What the steps of a layer and direction work on.
pub(super) struct ForwardSteps<'a> {
    pub(super) c: &'a Recurrent,
    pub(super) direction: usize,
    pub(super) weight: &'a LayerWeight,
    /// States before the first step.
    pub(super) h: Data,
    pub(super) c0: Option<Data>,
    /// The bias of the gates, which only kernels of the host add.
    pub(super) bias: Option<Data>,
    /// The bias of the state's part of n.
    pub(super) state_bias: Option<Data>,
    /// The products of the inputs, on a GPU with their bias, which become the gates: of the times from `first_time` on.
    pub(super) gates: Data,
    pub(super) first_time: usize,
    /// Numbers beside the gates, and how far one time's are from the next one's: 0 if they take each other's place.
    pub(super) extra: Option<Data>,
    pub(super) extra_step: usize,
    /// Outputs of all steps and directions.
    pub(super) out: Data,
}

impl Recurrent {
    /// All layers. `inputs` are of the type to compute in.
    pub(super) fn run_forward(
        &self,
        run: &Run,
        inputs: &[Data],
        outputs: &[Data],
        keep: bool,
        again: bool,
    ) -> Result<Option<Trace>> {
        let (place, dtype) = (outputs[0].place(), inputs[0].dtype());
        let mask = self.mask(run, place, again)?;
        let mut trace = Trace { parts: vec![], between: vec![], mask };
        let mut x = inputs[0].clone();
        for layer in 0..self.layers {
            let is_last = layer + 1 == self.layers;
            let is_result = is_last && outputs[0].dtype() == dtype;
            let out = if is_result { outputs[0].clone() } else { Data::new_at(place, dtype, self.output())? };
            for direction in 0..self.directions {
                let made = self.forward_part(inputs, outputs, [layer, direction], &x, &out, keep)?;
                trace.parts.extend(made.filter(|_| keep));
            }
            if is_last && !is_result {
                outputs[0].take(&out)?;
            }
            if is_last {
                break;
            }
            x = self.masked(out.clone(), trace.mask.as_ref(), layer)?;
            if keep {
                trace.between.push(out);
            }
        }
        Ok(keep.then_some(trace))
    }

    /// A layer in one direction.
    fn forward_part(
        &self,
        inputs: &[Data],
        outputs: &[Data],
        [layer, direction]: [usize; 2],
        x: &Data,
        out: &Data,
        keep: bool,
    ) -> Result<Option<PartTrace>> {
        let (place, dtype, state) = (out.place(), out.dtype(), self.state());
        let weight = self.weight(&inputs[self.weight_input(layer)], layer, direction);
        let bias = self.bias_input().map(|i| self.bias_of(&inputs[i], layer, direction));
        let each = self.batch * self.gate_rows();
        let band = if keep { self.steps } else { (BAND / each.max(1)).clamp(1, self.steps.max(1)) };
        let kept = if keep { self.steps } else { 1 };
        let extra = self.cell.has_extra().then(|| Data::new_at(place, dtype, kept * state)).transpose()?;
        let extra_step = if keep { state } else { 0 };
        let mut steps = ForwardSteps {
            c: self,
            direction,
            weight: &weight,
            h: self.state_of(&inputs[1], layer, direction),
            c0: self.cell.has_c().then(|| self.state_of(&inputs[2], layer, direction)),
            bias: bias.as_ref().filter(|_| place == Place::Host).map(|b| part(b, 0, self.gate_rows())),
            state_bias: bias.as_ref().filter(|b| b.len() > self.gate_rows()).map(|b| b.after(self.gate_rows())),
            gates: Data::new_at(place, dtype, band * each)?,
            first_time: 0,
            extra,
            extra_step,
            out: out.clone(),
        };
        let is_empty = state == 0;
        let on_host = place == Place::Host && !is_empty;
        let panels = on_host.then(|| cpu::forward_panels(self, &weight)).transpose()?;
        for from in (0..if is_empty { 0 } else { self.steps }).step_by(band.max(1)) {
            let to = self.steps.min(from + band);
            steps.first_time = self.time(direction, from).min(self.time(direction, to - 1));
            self.input_products(&weight, bias.as_ref().filter(|_| steps.bias.is_none()), x, &steps, to - from)?;
            match &panels {
                Some(panels) => with_real!(dtype, T => cpu::forward::<T>(&steps, panels, from..to)),
                None => cuda::forward(&steps, from..to)?,
            }
        }
        self.last_states(&steps, outputs, layer)?;
        Ok(Some(PartTrace { gates: steps.gates, extra: steps.extra }))
    }

    /// `x w + b` for the `n` steps of a band.
    fn input_products(
        &self,
        weight: &LayerWeight,
        bias: Option<&Data>,
        x: &Data,
        steps: &ForwardSteps,
        n: usize,
    ) -> Result<()> {
        let (rows, columns, width) = (n * self.batch, self.gate_rows(), weight.width);
        let y = part(&steps.gates, 0, rows * columns);
        let output = match bias {
            Some(b) => {
                let b = part(b, 0, columns);
                ops::broadcast(&b, &Shape::from([columns]), &y, &Shape::from([rows, columns]), Output::Write)?;
                Output::Accumulate
            }
            None => Output::Write,
        };
        let x = part(x, steps.first_time * self.batch * width, rows * width);
        matmul(1, Matrix::new(&x, rows, width), weight.of_x().t(), &y, output)
    }

    /// The states after the last step.
    fn last_states(&self, steps: &ForwardSteps, outputs: &[Data], layer: usize) -> Result<()> {
        let (h, direction) = (self.state_of(&outputs[1], layer, steps.direction), steps.direction);
        let c = outputs.get(2).map(|c| self.state_of(c, layer, direction));
        if self.steps == 0 {
            ops::put(&h, &steps.h, Output::Write)?;
            return c.zip(steps.c0.as_ref()).map_or(Ok(()), |(c, c0)| ops::put(&c, c0, Output::Write));
        }
        let last = self.time(direction, self.steps - 1);
        self.columns(&steps.out, direction, last, &h)?;
        let at = |extra: &Data| part(extra, last * steps.extra_step, self.state());
        c.zip(steps.extra.as_ref()).map_or(Ok(()), |(c, extra)| ops::put(&c, &at(extra), Output::Write))
    }
}

impl Recurrent {
    /// Copies a direction's part of one time of a layer's output.
    pub(super) fn columns(&self, out: &Data, direction: usize, time: usize, y: &Data) -> Result<()> {
        let width = self.directions * self.hidden;
        let first = time * self.batch * width + direction * self.hidden;
        let copy = Moves::new(0, first).axis(self.batch, self.hidden as isize, width as isize).axis(self.hidden, 1, 1);
        ops::moves(copy, y, out, Output::Write)
    }
}
