//! `rnn`, `lstm` and `gru`: recurrent layers with their weights.

use super::argument_types::{Init, Rng};
use super::declare::parametric;
use super::layer::{LayerParameters, glorot, side_by_side};
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// Recurrent layers (Elman, 1990); T steps, B samples, I inputs, L layers, D directions, H hidden units.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let made = pf::rnn("r", &Variable::new([5, 2, 3]), &Variable::new([1, 1, 2, 4]), pf::RNN::default())?;
    /// assert_eq!((made[0].shape(), made[1].shape()), ([5, 2, 4].into(), [1, 1, 2, 4].into()));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    RNN rnn in "rnn", outputs several
    inputs { x: "Sequences of shape (T, B, I).", h: "States before the first step, of shape (L, D, B, H)." }
    required {}
    options {
        w0_init: Init = Init::default(), "Initial weights of the first layer; by default uniform with the limits of `calc_uniform_lim_glorot`, of the inputs' and the states' columns each.";
        w_init: Init = Init::default(), "Initial weights of the other layers, likewise.";
        b_init: Init = Init::default(), "Initial biases; by default zeros.";
        num_layers: i64 = 1, "Not used, as in NNabla: there are as many layers as `h` has.";
        nonlinearity: String = "tanh".to_string(), "'tanh' or 'relu'.";
        dropout: f64 = 0.0, "Share of the numbers between layers that are dropped in training.";
        bidirectional: bool = false, "Whether D is 2.";
        training: bool = true, "Whether there is dropout, and a gradient.";
        rng: Rng = Rng::default(), "Random generator of the initial weights.";
        with_bias: bool = true, "Whether there are biases.";
        fix_parameters: bool = false, "Whether weights and biases stay as they are in training.";
    }
    parameters {
        "weight_l0" "(D, H, I + H)": "Weights of the first layer.";
        "weight" "(L - 1, D, H, D * H + H)": "Weights of the other layers.";
        "bias" "(L, D, H)": "Biases.";
    }
    returns "y of shape (T, B, D * H), and the states after the last step, of h's shape."
    example ">>> y, h_n = rnn(Variable((5, 2, 3)), Variable((1, 1, 2, 4)))\n>>> y.shape, h_n.shape\n((5, 2, 4), (1, 1, 2, 4))"
}

parametric! {
    /// Long short-term memory (Hochreiter and Schmidhuber, 1997); letters as of `rnn`.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let state = Variable::new([2, 1, 2, 4]);
    /// let made = pf::lstm("l", &Variable::new([5, 2, 3]), &state, &state, pf::LSTM::default())?;
    /// assert_eq!((made.len(), made[0].shape()), (3, [5, 2, 4].into()));
    /// assert_eq!(parameter::get_parameter("l/lstm/weight_l0").unwrap().shape(), [1, 4, 4, 7].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    LSTM lstm in "lstm", outputs several
    inputs {
        x: "Sequences of shape (T, B, I).",
        h: "States before the first step, of shape (L, D, B, H).",
        c: "States c before the first step, of h's shape.",
    }
    required {}
    options {
        w0_init: Init = Init::default(), "Initial weights of the first layer, as of `rnn`; the gates are i, f, n, o.";
        w_init: Init = Init::default(), "Initial weights of the other layers, likewise.";
        b_init: Init = Init::default(), "Initial biases; by default zeros.";
        num_layers: i64 = 1, "Not used, as in NNabla: there are as many layers as `h` has.";
        dropout: f64 = 0.0, "Share of the numbers between layers that are dropped in training.";
        bidirectional: bool = false, "Whether D is 2.";
        training: bool = true, "Whether there is dropout, and a gradient.";
        rng: Rng = Rng::default(), "Random generator of the initial weights.";
        with_bias: bool = true, "Whether there are biases.";
        fix_parameters: bool = false, "Whether weights and biases stay as they are in training.";
    }
    parameters {
        "weight_l0" "(D, 4, H, I + H)": "Weights of the first layer.";
        "weight" "(L - 1, D, 4, H, D * H + H)": "Weights of the other layers.";
        "bias" "(L, D, 4, H)": "Biases.";
    }
    returns "y of shape (T, B, D * H), and the states h and c after the last step, of h's shape."
    example ">>> from nnrs.parameter import get_parameters\n>>> state = Variable((2, 1, 2, 4))\n>>> y, h_n, c_n = lstm(Variable((5, 2, 3)), state, state)\n>>> {name: v.shape for name, v in get_parameters().items()}\n{'lstm/weight_l0': (1, 4, 4, 7), 'lstm/weight': (1, 1, 4, 4, 8), 'lstm/bias': (2, 1, 4, 4)}"
}

parametric! {
    /// Gated recurrent units (Cho et al., 2014); letters as of `rnn`.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let options = pf::GRU { bidirectional: true, ..Default::default() };
    /// let made = pf::gru("g", &Variable::new([5, 2, 3]), &Variable::new([1, 2, 2, 4]), options)?;
    /// assert_eq!((made.len(), made[0].shape()), (2, [5, 2, 8].into()));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    GRU gru in "gru", outputs several
    inputs { x: "Sequences of shape (T, B, I).", h: "States before the first step, of shape (L, D, B, H)." }
    required {}
    options {
        w0_init: Init = Init::default(), "Initial weights of the first layer, as of `rnn`; the gates are r, z, n.";
        w_init: Init = Init::default(), "Initial weights of the other layers, likewise.";
        b_init: Init = Init::default(), "Initial biases, of which the fourth is the state's in n; by default zeros.";
        num_layers: i64 = 1, "Not used, as in NNabla: there are as many layers as `h` has.";
        dropout: f64 = 0.0, "Share of the numbers between layers that are dropped in training.";
        bidirectional: bool = false, "Whether D is 2.";
        training: bool = true, "Whether there is dropout, and a gradient.";
        rng: Rng = Rng::default(), "Random generator of the initial weights.";
        with_bias: bool = true, "Whether there are biases.";
        fix_parameters: bool = false, "Whether weights and biases stay as they are in training.";
    }
    parameters {
        "weight_l0" "(D, 3, H, I + H)": "Weights of the first layer.";
        "weight" "(L - 1, D, 3, H, D * H + H)": "Weights of the other layers.";
        "bias" "(L, D, 4, H)": "Biases.";
    }
    returns "y of shape (T, B, D * H), and the states after the last step, of h's shape."
    example ">>> y, h_n = gru(Variable((5, 2, 3)), Variable((1, 2, 2, 4)), bidirectional=True)\n>>> y.shape\n(5, 2, 8)"
}

/// The parameters of a layer.
struct Weights {
    layers: i64,
    first: Variable,
    /// Weights of the other layers and biases, where there are some.
    more: [Option<Variable>; 2],
}

/// How a layer's parameters begin.
struct Begin<'a> {
    layer: LayerParameters,
    inits: [&'a Init; 3],
    with_bias: bool,
}

macro_rules! begin {
    ($self:ident) => {
        Begin {
            layer: LayerParameters { fixed: $self.fix_parameters, rng: $self.rng.clone() },
            inits: [&$self.w0_init, &$self.w_init, &$self.b_init],
            with_bias: $self.with_bias,
        }
    };
}

impl Begin<'_> {
    /// The parameters for inputs and states like these; `gates` and `biases` as axes.
    fn weights(&self, x: &Variable, h: &Variable, gates: &[usize], biases: &[usize]) -> Result<Weights> {
        let ([_, _, inputs], [layers, directions, _, hidden]) =
            (sizes::<3>("x", x, "(steps, batch, inputs)")?, sizes::<4>("h", h, "(layers, directions, batch, hidden)")?);
        let weight = |name, before: &[usize], n: usize, init: &Init| {
            let shape = [before, &[directions], gates, &[hidden, n + hidden]].concat();
            let usual = side_by_side(&self.layer, [n, hidden].map(|n| (n, glorot(n, hidden, &[]))));
            self.layer.parameter_or(name, &shape, init, usual)
        };
        let first = weight("weight_l0", &[], inputs, self.inits[0])?;
        let others = || weight("weight", &[layers - 1], directions * hidden, self.inits[1]);
        let others = (layers > 1).then(others).transpose()?;
        let shape = [&[layers, directions], biases, &[hidden]].concat();
        let bias = || self.layer.parameter("bias", &shape, self.inits[2], Usual::Constant(0.0));
        let bias = self.with_bias.then(bias).transpose()?;
        // A bias takes the place of weights that are not there.
        let more = if others.is_some() { [others, bias] } else { [bias, None] };
        Ok(Weights { layers: layers as i64, first, more })
    }
}

fn sizes<const N: usize>(name: &str, v: &Variable, axes: &str) -> Result<[usize; N]> {
    let shape = v.shape();
    let wrong = |_| Error::shape(name, format!("an array of shape {axes}")).actual(&shape);
    shape[..].try_into().map_err(wrong)
}

impl RNN {
    fn build(&self, x: &Variable, h: &Variable) -> Result<Vec<Variable>> {
        let w = begin!(self).weights(x, h, &[], &[])?;
        let rule = f::RNN {
            num_layers: w.layers,
            nonlinearity: self.nonlinearity.clone(),
            dropout: Some(self.dropout),
            bidirectional: self.bidirectional,
            training: self.training,
        };
        f::rnn(x, h, &w.first, w.more[0].as_ref(), w.more[1].as_ref(), rule)
    }
}

/// The rule of a layer with gates.
macro_rules! rule {
    ($self:ident, $name:ident, $w:ident) => {
        f::$name {
            num_layers: $w.layers,
            dropout: Some($self.dropout),
            bidirectional: $self.bidirectional,
            training: $self.training,
        }
    };
}

impl LSTM {
    fn build(&self, x: &Variable, h: &Variable, c: &Variable) -> Result<Vec<Variable>> {
        let w = begin!(self).weights(x, h, &[4], &[4])?;
        f::lstm(x, h, c, &w.first, w.more[0].as_ref(), w.more[1].as_ref(), rule!(self, LSTM, w))
    }
}

impl GRU {
    fn build(&self, x: &Variable, h: &Variable) -> Result<Vec<Variable>> {
        let w = begin!(self).weights(x, h, &[3], &[4])?;
        f::gru(x, h, &w.first, w.more[0].as_ref(), w.more[1].as_ref(), rule!(self, GRU, w))
    }
}
