//! `gru`: a recurrent layer of gated units.

use super::recurrent::{Layers, rule, used};
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::recurrent::Cell;
use nnrs_kernels::shape::Shape;

function! {
    /// Recurrent layers of gated units (Cho et al., 2014). Of the gates r, z, n: `r = sigmoid(W_r x + U_r h_before + b_r)`, z likewise,
    /// `n = tanh(W_n x + b_n + r (U_n h_before + b_h))`, `h = (1 - z) n + z h_before`. The biases are b_r, b_z, b_n, b_h.
    GRU gru in Layer, any_device
    inputs {
        x: "Sequences of shape (steps, batch, inputs).",
        h: "States before the first step, of shape (layers, directions, batch, hidden).",
        weight_l0: "Weights of the first layer, of shape (directions, 3, hidden, inputs + hidden): columns for x, then for h.",
        weight [optional]: "Weights of the other layers, of shape (layers - 1, directions, 3, hidden, directions * hidden + hidden); None if there is one layer.",
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
        h_n: "States after the last step, of h's shape.",
    }
}

impl GRU {
    fn layers(&self) -> Layers {
        Layers {
            cell: Cell::Gru,
            num_layers: self.num_layers,
            dropout: self.dropout,
            bidirectional: self.bidirectional,
            training: self.training,
        }
    }
}

impl Function for GRU {
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
