//! Recurrent layers over whole sequences. All cells share a frame: layers, directions, the products of all steps' inputs as one
//! matrix product, then step after step the products of the states, with the gates behind them. A cell has its gates alone.

mod backward;
mod cpu;
mod cuda;
mod forward;

use super::matmul::Matrix;
use super::ops;
use super::random;
use crate::array::{Data, Output, Place};
use crate::call::{Call, Gradients, Needs, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::Formula;
use crate::random::{LastDraw, RandomSeed};
use crate::tile::Walk;

/// What is done in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// `h = tanh(a)`
    Tanh,
    /// `h = max(a, 0)`
    Relu,
    /// Gates i, f, n, o: `c = f c' + i n`, `h = o tanh(c)`.
    Lstm,
    /// Gates r, z, n, where n is `tanh(x's part + r (h's part))`: `h = (1 - z) n + z h'`.
    Gru,
}

impl Cell {
    /// Gates: blocks of rows of a weight.
    pub fn gates(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }

    /// Biases, and gradients of sums: those of the state's part of n are apart.
    pub fn biases(self) -> usize {
        self.gates() + (self == Cell::Gru) as usize
    }

    /// There is a state beside h.
    pub fn has_c(self) -> bool {
        self == Cell::Lstm
    }

    /// Backward reads numbers beside the gates: states c, or the state's part of n.
    fn has_extra(self) -> bool {
        matches!(self, Cell::Lstm | Cell::Gru)
    }

    /// The gates of which a step's state has its part: where they are among the rows of a weight, and among the gradients.
    fn state_gates(self) -> &'static [GateRange] {
        match self {
            Cell::Tanh | Cell::Relu => &[GateRange { n: 1, row: 0, column: 0 }],
            Cell::Lstm => &[GateRange { n: 4, row: 0, column: 0 }],
            Cell::Gru => &[GateRange { n: 2, row: 0, column: 0 }, GateRange { n: 1, row: 2, column: 3 }],
        }
    }
}

/// Neighbouring gates.
struct GateRange {
    n: usize,
    row: usize,
    column: usize,
}

/// Layers of cells, in one or both directions, over `(steps, batch, inputs)`.
pub struct Recurrent {
    pub cell: Cell,
    pub steps: usize,
    pub batch: usize,
    pub inputs: usize,
    pub hidden: usize,
    pub layers: usize,
    pub directions: usize,
    pub has_bias: bool,
    /// Share of the numbers that are dropped between layers.
    pub dropout: f64,
    /// There may be a gradient.
    pub training: bool,
    /// Of the numbers that are dropped.
    pub seed: RandomSeed,
}

/// What forward leaves for backward.
struct Trace {
    /// For each layer and direction.
    parts: Vec<PartTrace>,
    /// Outputs of all layers but the last.
    between: Vec<Data>,
    /// What those are multiplied by, one after the other.
    mask: Option<Data>,
}

struct PartTrace {
    /// The gates of all steps.
    gates: Data,
    extra: Option<Data>,
}

/// A layer's weight in one direction: `gates * hidden` rows, of x's columns and h's.
struct LayerWeight {
    x: Data,
    h: Data,
    rows: usize,
    width: usize,
    hidden: usize,
}

impl LayerWeight {
    fn of_x(&self) -> Matrix<'_> {
        Matrix::rows(&self.x, self.rows, self.width, self.width + self.hidden)
    }

    /// The part of the state for `n` gates from `first` on.
    fn of_h<'a>(&self, part: &'a Data, rows: usize) -> Matrix<'a> {
        Matrix::rows(part, rows, self.hidden, self.width + self.hidden)
    }
}

/// `n` elements from `first` on, which are none where there is nothing.
fn part(data: &Data, first: usize, n: usize) -> Data {
    if n == 0 { data.within(0, 0) } else { data.within(first, n) }
}

/// An array in the type to compute in: a GPU's may be of half precision.
fn computed(data: &Data, dtype: DType) -> Result<Data> {
    if data.dtype() == dtype { Ok(data.clone()) } else { data.converted(dtype) }
}

fn no_forward() -> Error {
    Error::graph("what the forward pass saved is missing").hint("call forward() before backward()")
}

impl Recurrent {
    /// The first layer's weight among the inputs.
    fn first_weight(&self) -> usize {
        2 + self.cell.has_c() as usize
    }

    /// The input that has a layer's weight.
    fn weight_input(&self, layer: usize) -> usize {
        self.first_weight() + (layer > 0) as usize
    }

    fn bias_input(&self) -> Option<usize> {
        self.has_bias.then(|| self.first_weight() + 1 + (self.layers > 1) as usize)
    }

    /// Inputs of a layer.
    fn width(&self, layer: usize) -> usize {
        if layer == 0 { self.inputs } else { self.directions * self.hidden }
    }

    fn gate_rows(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Elements of a state of one layer and direction.
    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Rows of the matrix of all steps.
    fn rows(&self) -> usize {
        self.steps * self.batch
    }

    /// Elements of a layer's output.
    fn output(&self) -> usize {
        self.rows() * self.directions * self.hidden
    }

    /// The time that is number `i` in a direction.
    fn time(&self, direction: usize, i: usize) -> usize {
        if direction == 0 { i } else { self.steps - 1 - i }
    }

    /// A layer's weight or its gradient, in a direction: where it begins and its size.
    fn weight_range(&self, layer: usize, direction: usize) -> (usize, usize) {
        let size = self.gate_rows() * (self.width(layer) + self.hidden);
        ((layer.saturating_sub(1) * self.directions + direction) * size, size)
    }

    fn weight(&self, data: &Data, layer: usize, direction: usize) -> LayerWeight {
        let (first, size) = self.weight_range(layer, direction);
        let (x, width) = (part(data, first, size), self.width(layer));
        let h = part(&x, width.min(size), size - width.min(size));
        LayerWeight { x, h, rows: self.gate_rows(), width, hidden: self.hidden }
    }

    /// A state of layer and direction.
    fn state_of(&self, data: &Data, layer: usize, direction: usize) -> Data {
        part(data, (layer * self.directions + direction) * self.state(), self.state())
    }

    fn bias_of(&self, data: &Data, layer: usize, direction: usize) -> Data {
        let n = self.cell.biases() * self.hidden;
        part(data, (layer * self.directions + direction) * n, n)
    }

    /// Numbers are dropped between layers.
    pub fn drops(&self) -> bool {
        self.training && self.dropout > 0.0 && self.layers > 1
    }

    /// The factors of all numbers between layers: 0 where one is dropped.
    fn mask(&self, run: &Run, place: Place, again: bool) -> Result<Option<Data>> {
        if !self.drops() {
            return Ok(None);
        }
        let n = (self.layers - 1) * self.output();
        let (ones, mask) = (Data::new_at(place, run.dtype, n)?, Data::new_at(place, run.dtype, n)?);
        ops::fill(&ones, 1.0)?;
        random::drop_out(
            run,
            random::next_or_last(&self.seed, run, again)?,
            self.dropout,
            &mask,
            &ones,
            Output::Write,
        )?;
        Ok(Some(mask))
    }

    /// The numbers between layer `layer` and the next, or their gradient, after the mask.
    fn masked(&self, x: Data, mask: Option<&Data>, layer: usize) -> Result<Data> {
        let Some(mask) = mask else { return Ok(x) };
        let factors = part(mask, layer * self.output(), self.output());
        let y = Data::new_at(x.place(), x.dtype(), x.len())?;
        let product = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
        ops::formula(&product, &[(&x, Walk::Dense), (&factors, Walk::Dense)], &y, Output::Write)?;
        Ok(y)
    }

    /// Elements of the outputs between layers that are alive at a time, which are not counted as saved.
    fn passing(&self) -> usize {
        (self.layers - 1).min(2) * self.output()
    }
}

impl Call for Recurrent {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let inputs = x.iter().map(|v| computed(&v.data, run.dtype)).collect::<Result<Vec<_>>>()?;
        let outputs: Vec<Data> = y.iter().map(|v| v.data.clone()).collect();
        // On a GPU nothing is kept: backward runs the layers again.
        let trace = self.run_forward(run, &inputs, &outputs, run.keep, run.again)?;
        match trace {
            Some(trace) => run.save(trace),
            // A draw is no trace.
            None if self.drops() => run.saved.clear(),
            None => {}
        }
        Ok(())
    }

    fn last_draw(&self) -> Option<LastDraw> {
        Some(self.seed.last())
    }

    fn multiplications(&self) -> f64 {
        let each = |l: usize| (self.width(l) + self.hidden) as f64;
        let columns: f64 = (0..self.layers).map(each).sum();
        columns * self.rows() as f64 * self.gate_rows() as f64 * self.directions as f64
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let (hidden, output) = (self.hidden, self.output());
        let panels = self.gate_rows() * hidden.next_multiple_of(32);
        let mask = if self.drops() { output } else { 0 };
        let forward = self.passing() + 2 * mask;
        let sums = self.rows() * self.cell.biases() * hidden;
        let widest = self.width(0).max(self.width(self.layers - 1));
        let weights = self.gate_rows() * (widest + hidden);
        // Gradients between layers: of a layer's output and of its input.
        let between = match self.layers {
            1 => 0,
            2 if !self.drops() => output,
            _ => 2 * output,
        };
        let backward = sums + weights + between + mask + self.passing();
        let bytes = |n: usize| n.saturating_mul(dtype.size());
        [bytes(forward + panels), bytes(backward + panels)]
    }

    fn saves(&self, dtype: DType) -> Option<usize> {
        let extra = self.cell.has_extra() as usize * self.hidden;
        let parts = (self.layers * self.directions * self.rows()).saturating_mul(self.gate_rows() + extra);
        let between = (self.layers - 1) * self.output();
        let mask = if self.drops() { between } else { 0 };
        self.training.then(|| (parts + between + mask).saturating_sub(self.passing()).saturating_mul(dtype.size()))
    }

    fn needs(&self, want: &[bool]) -> Option<Needs> {
        let bias = self.bias_input().map_or(0, |b| 1 << b);
        let x = if want[self.first_weight()] { 0 } else { 1 };
        self.training.then_some(Needs { x: 0b11_1111 & !bias & !x, y: 1 })
    }

    fn backward(&self, run: &Run, gradients: Gradients) -> Result<()> {
        self.run_backward(run, gradients)
    }
}
