//! `rnn`: a recurrent layer of plain cells.

use super::recurrent::{Layers, rule, used};
use crate::function;
use crate::function::{ArgValue, Call, Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::recurrent::Cell;
use nnrs_kernels::shape::Shape;

function! {
    /// Recurrent layers (Elman, 1990), `h = tanh(W x + U h_before + b)` at each step.
    RNN rnn in Layer, any_device
    inputs {
        x: "Sequences of shape (steps, batch, inputs).",
        h: "States before the first step, of shape (layers, directions, batch, hidden).",
        weight_l0: "Weights of the first layer, of shape (directions, hidden, inputs + hidden): columns for x, then for h.",
        weight [optional]: "Weights of the other layers, of shape (layers - 1, directions, hidden, directions * hidden + hidden); None if there is one layer.",
        bias [optional]: "Biases of shape (layers, directions, hidden).",
    }
    args {
        num_layers: i64 = 1, "Layers, of which each has the one before as its input.";
        nonlinearity: String = "tanh".to_string(), "'tanh' or 'relu'.";
        dropout: Option<f64> = None, "Share of the numbers between layers that are dropped in training; None: 0.";
        bidirectional: bool = false, "Whether each layer goes through the steps in both directions.";
        training: bool = true, "Whether there is dropout, and a gradient."
    }
    outputs {
        y: "Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).",
        h_n: "States after the last step, of h's shape.",
    }
}

impl RNN {
    fn check(&self) -> Result<()> {
        match self.nonlinearity.as_str() {
            "tanh" | "relu" => Ok(()),
            other => Err(Error::arg("nonlinearity", "'tanh' or 'relu'").actual(format!("'{other}'"))),
        }
    }

    fn layers(&self) -> Layers {
        Layers {
            cell: if self.nonlinearity == "relu" { Cell::Relu } else { Cell::Tanh },
            num_layers: self.num_layers,
            dropout: self.dropout,
            bidirectional: self.bidirectional,
            training: self.training,
        }
    }
}

impl Function for RNN {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        self.check()?;
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
