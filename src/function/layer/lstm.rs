//! `lstm`: a recurrent layer with long short-term memory.

use super::recurrent::{Layers, rule, used};
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::recurrent::Cell;
use nnrs_kernels::shape::Shape;

function! {
    /// Recurrent layers with long short-term memory (Hochreiter and Schmidhuber, 1997). With `a = W x + U h_before + b` for each of the
    /// gates i, f, n, o: `c = sigmoid(f) c_before + sigmoid(i) tanh(n)`, `h = sigmoid(o) tanh(c)`.
    LSTM lstm in Layer, any_device
    inputs {
        x: "Sequences of shape (steps, batch, inputs).",
        h: "States before the first step, of shape (layers, directions, batch, hidden).",
        c: "States c before the first step, of h's shape.",
        weight_l0: "Weights of the first layer, of shape (directions, 4, hidden, inputs + hidden): columns for x, then for h.",
        weight [optional]: "Weights of the other layers, of shape (layers - 1, directions, 4, hidden, directions * hidden + hidden); None if there is one layer.",
        bias [optional]: "Biases of shape (layers, directions, 4, hidden).",
    }
    args {
        num_layers: i64 = 1, "Layers, of which each has the one before as its input.";
        dropout: Option<f64> = None, "Share of the numbers between layers that are dropped in training; None: 0.";
        bidirectional: bool = false, "Whether each layer goes through the steps in both directions.";
        training: bool = true, "Whether there is dropout, and a gradient."
    }
    outputs {
        y: "Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).",
        h_n: "States after the last step, of h's shape.", c_n: "States c after the last step, of c's shape.",
    }
}

impl LSTM {
    fn layers(&self) -> Layers {
        Layers {
            cell: Cell::Lstm,
            num_layers: self.num_layers,
            dropout: self.dropout,
            bidirectional: self.bidirectional,
            training: self.training,
        }
    }
}

impl Function for LSTM {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.layers().resolve(x)
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        used(self)
    }

    fn input_name(&self, i: usize) -> &'static str {
        self.layers().input_name(i)
    }

    fn has_state(&self) -> bool {
        self.layers().drops()
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        rule(g)
    }
}
