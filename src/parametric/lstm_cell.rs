//! `lstm_cell`: a step of an LSTM, as a graph.

use super::affine::{Affine, affine};
use super::argument_types::{Init, Size};
use super::declare::parametric;
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// One step of long short-term memory (Hochreiter and Schmidhuber, 1997), as a graph; its gates are i, o, f, n.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let state = Variable::new([2, 4]);
    /// let made = pf::lstm_cell("c", &Variable::new([2, 3]), &state, &state, 4, pf::LSTMCell::default())?;
    /// assert_eq!((made[0].shape(), made[1].shape()), ([2, 4].into(), [2, 4].into()));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    LSTMCell lstm_cell in "lstm", outputs several
    inputs {
        x: "Input of shape (batch, inputs).",
        h: "State h of shape (batch, state_size).",
        c: "State c of shape (batch, state_size).",
    }
    required { state_size: Size, "Size of the states."; }
    options {
        w_init: Init = Init::default(), "Initial weights; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial biases; by default zeros.";
        fix_parameters: bool = false, "Whether weights and biases stay as they are in training.";
    }
    parameters {
        "affine/W" "(inputs + state_size, 4, state_size)": "Weights of all gates.";
        "affine/b" "(4, state_size)": "Biases of all gates.";
    }
    returns "The states h and c after the step."
    example ">>> state = Variable((2, 4))\n>>> h, c = lstm_cell(Variable((2, 3)), state, state, 4)\n>>> h.shape, c.shape\n((2, 4), (2, 4))"
}

impl LSTMCell {
    fn build(&self, x: &Variable, h: &Variable, c: &Variable, Size(state): Size) -> Result<Vec<Variable>> {
        check(x, [("h", h), ("c", c)], state)?;
        let both = f::concatenate(&[x, h], f::Concatenate { axis: Some(1) })?;
        let layer = Affine {
            w_init: self.w_init.clone(),
            b_init: self.b_init.clone(),
            fix_parameters: self.fix_parameters,
            ..Default::default()
        };
        let gates = f::split(&affine("", &both, [4, state], layer)?, f::Split { axis: 1 })?;
        let [i, o, forget, new] = &gates[..] else {
            return Err(Error::graph("a split of 4 gates gave another number"));
        };
        let kept = (f::sigmoid(forget)? * c)?;
        let c_new = (kept + (f::sigmoid(i)? * f::tanh(new)?)?)?;
        Ok(vec![(f::sigmoid(o)? * f::tanh(&c_new)?)?, c_new])
    }
}

/// Checks the input's axes and the states' shape.
fn check(x: &Variable, states: [(&str, &Variable); 2], size: usize) -> Result<()> {
    let &[batch, _] = &x.shape()[..] else {
        return Err(Error::shape("x", "shape (batch, inputs)").actual(x.shape()));
    };
    for (name, state) in states {
        if state.shape()[..] != [batch, size] {
            return Err(
                Error::shape(name, format!("shape ({batch}, {size}) (batch, state_size)")).actual(state.shape())
            );
        }
    }
    Ok(())
}
