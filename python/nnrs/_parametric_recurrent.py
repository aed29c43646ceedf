"""Parametric functions of recurrent layers, in Python as in NNabla: `rnn`, `lstm`, `gru`, and a step of an LSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ._core import NdArray, Variable
from ._errors import ShapeError, message
from ._parametric_api import Initializer, Rng, parametric_function_api

Input: TypeAlias = Variable | NdArray

_PARAMETERS = [
    ("weight_l0", "Weights of the first layer.", "(D, {}H, I + H)", True),
    ("weight", "Weights of the other layers.", "(L - 1, D, {}H, D * H + H)", True),
    ("bias", "Biases.", "(L, D, {}H)", True),
]


def _parameters(gates: str, biases: str) -> list[tuple[str, str, str, bool]]:
    each = zip(_PARAMETERS, (gates, gates, biases), strict=True)
    return [(name, text, shape.format(n), need_grad) for (name, text, shape, need_grad), n in each]


def _usual(rng: Rng, inputs: int) -> Callable[[tuple[int, ...]], np.ndarray]:
    """Uniform numbers for the inputs' columns, then for the states', each with the limits of its own part."""
    from . import random
    from .initializer import UniformInitializer, calc_uniform_lim_glorot

    def make(shape: tuple[int, ...]) -> np.ndarray:
        hidden, drawn = shape[-2], random.prng if rng is None else rng
        parts = [(n, calc_uniform_lim_glorot(n, hidden)) for n in (inputs, hidden)]
        made = [UniformInitializer(limits, drawn)((*shape[:-1], n)) for n, limits in parts]
        return np.concatenate(made, axis=-1)

    return make


def _weights(
    function: str,
    x: Any,
    h: Any,
    gates: tuple[int, ...],
    biases: tuple[int, ...],
    inits: tuple[Initializer, Initializer, Initializer],
    rng: Rng,
    with_bias: bool,
    fix_parameters: bool,
) -> tuple[int, list[Any]]:
    """The number of layers, which is h's, and the parameters: weights of the first layer, of the others, biases."""
    from .initializer import ConstantInitializer
    from .parameter import get_parameter_or_create

    for name, v, axes in (("x", x, "(steps, batch, inputs)"), ("h", h, "(layers, directions, batch, hidden)")):
        shape = getattr(v, "shape", ())
        if len(shape) != axes.count(",") + 1:
            raise ShapeError(message(function, name, f"an array of shape {axes}", shape))
    inputs, (layers, directions, _, hidden) = x.shape[2], h.shape

    def parameter(name: str, shape: tuple[int, ...], init: Initializer) -> Any:
        return get_parameter_or_create(name, shape, init, True, not fix_parameters)

    def weight(name: str, before: tuple[int, ...], n: int, init: Initializer) -> Any:
        usual: Any = _usual(rng, n) if init is None else init
        return parameter(name, (*before, directions, *gates, hidden, n + hidden), usual)

    first = weight("weight_l0", (), inputs, inits[0])
    others = weight("weight", (layers - 1,), directions * hidden, inits[1]) if layers > 1 else None
    zeros: Any = ConstantInitializer() if inits[2] is None else inits[2]
    bias = parameter("bias", (layers, directions, *biases, hidden), zeros) if with_bias else None
    return layers, [first, others, bias]


@parametric_function_api("rnn", _parameters("", ""))
def rnn(
    x: Input,
    h: Input,
    w0_init: Initializer = None,
    w_init: Initializer = None,
    b_init: Initializer = None,
    num_layers: int = 1,
    nonlinearity: str = "tanh",
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
) -> Any:
    """Recurrent layers (Elman, 1990); T steps, B samples, I inputs, L layers, D directions, H hidden units.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        w0_init: Initial weights of the first layer; by default uniform with the limits of `calc_uniform_lim_glorot`, of
            the inputs' and the states' columns each.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        nonlinearity: 'tanh' or 'relu'.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states after the last step, of h's shape.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> y, h_n = rnn(Variable((5, 2, 3)), Variable((1, 1, 2, 4)))
    >>> y.shape, h_n.shape
    ((5, 2, 4), (1, 1, 2, 4))
    >>> clear_parameters()
    """
    from . import functions as F

    inits = (w0_init, w_init, b_init)
    layers, weights = _weights("rnn", x, h, (), (), inits, rng, with_bias, fix_parameters)
    call: Any = F.rnn
    return call(x, h, *weights, layers, nonlinearity, dropout, bidirectional, training)


@parametric_function_api("lstm", _parameters("4, ", "4, "))
def lstm(
    x: Input,
    h: Input,
    c: Input,
    w0_init: Initializer = None,
    w_init: Initializer = None,
    b_init: Initializer = None,
    num_layers: int = 1,
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
) -> Any:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); letters as of `rnn`.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        c: States c before the first step, of h's shape.
        w0_init: Initial weights of the first layer, as of `rnn`; the gates are i, f, n, o.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states h and c after the last step, of h's shape.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters, get_parameters
    >>> state = Variable((2, 1, 2, 4))
    >>> y, h_n, c_n = lstm(Variable((5, 2, 3)), state, state)
    >>> {name: v.shape for name, v in get_parameters().items()}
    {'lstm/weight_l0': (1, 4, 4, 7), 'lstm/weight': (1, 1, 4, 4, 8), 'lstm/bias': (2, 1, 4, 4)}
    >>> clear_parameters()
    """
    from . import functions as F

    inits = (w0_init, w_init, b_init)
    layers, weights = _weights("lstm", x, h, (4,), (4,), inits, rng, with_bias, fix_parameters)
    call: Any = F.lstm
    return call(x, h, c, *weights, layers, dropout, bidirectional, training)


@parametric_function_api("gru", _parameters("3, ", "4, "))
def gru(
    x: Input,
    h: Input,
    w0_init: Initializer = None,
    w_init: Initializer = None,
    b_init: Initializer = None,
    num_layers: int = 1,
    dropout: float = 0.0,
    bidirectional: bool = False,
    training: bool = True,
    rng: Rng = None,
    with_bias: bool = True,
    fix_parameters: bool = False,
) -> Any:
    """Gated recurrent units (Cho et al., 2014); letters as of `rnn`.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        w0_init: Initial weights of the first layer, as of `rnn`; the gates are r, z, n.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases, of which the fourth is the state's in n; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states after the last step, of h's shape.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> y, h_n = gru(Variable((5, 2, 3)), Variable((1, 2, 2, 4)), bidirectional=True)
    >>> y.shape
    (5, 2, 8)
    >>> clear_parameters()
    """
    from . import functions as F

    inits = (w0_init, w_init, b_init)
    layers, weights = _weights("gru", x, h, (3,), (4,), inits, rng, with_bias, fix_parameters)
    call: Any = F.gru
    return call(x, h, *weights, layers, dropout, bidirectional, training)


@parametric_function_api(
    "lstm",
    [
        ("affine/W", "Weights of all gates.", "(inputs + state_size, 4, state_size)", True),
        ("affine/b", "Biases of all gates.", "(4, state_size)", True),
    ],
)
def lstm_cell(
    x: Input,
    h: Input,
    c: Input,
    state_size: int,
    w_init: Initializer = None,
    b_init: Initializer = None,
    fix_parameters: bool = False,
) -> Any:
    """One step of long short-term memory (Hochreiter and Schmidhuber, 1997), as a graph; its gates are i, o, f, n.

    Args:
        x: Input of shape (batch, inputs).
        h: State h of shape (batch, state_size).
        c: State c of shape (batch, state_size).
        state_size: Size of the states.
        w_init: Initial weights; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial biases; by default zeros.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        The states h and c after the step.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> state = Variable((2, 4))
    >>> h, c = lstm_cell(Variable((2, 3)), state, state, 4)
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    >>> clear_parameters()
    """
    from . import functions as F
    from . import parametric_functions as PF

    join: Any = F.concatenate
    both = join(x, h, axis=1)
    sums = PF.affine(both, (4, state_size), w_init=w_init, b_init=b_init, fix_parameters=fix_parameters)
    i, o, f, n = F.split(sums, axis=1)
    c_new = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(n)
    return F.sigmoid(o) * F.tanh(c_new), c_new


class LSTMCell:
    """An LSTM that is called step by step and keeps its states.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters
    >>> cell = LSTMCell(2, 4)
    >>> for _ in range(3):
    ...     h = cell(Variable((2, 3)))
    >>> h.shape, h is cell.h
    ((2, 4), True)
    >>> clear_parameters()
    """

    def __init__(
        self,
        batch_size: int,
        state_size: int,
        h: Variable | None = None,
        c: Variable | None = None,
        name: str | None = None,
    ) -> None:
        """Make a cell.

        Args:
            batch_size: Samples in a step.
            state_size: Size of the states.
            h: State h before the first step, of shape (batch_size, state_size); by default zeros.
            c: State c, likewise.
            name: Name of the scope that the cell's parameters are in.
        """
        self.batch_size = batch_size
        self.state_size = state_size
        self.name = name
        self.h: Variable = self._zeros() if h is None else h
        self.c: Variable = self._zeros() if c is None else c

    def _zeros(self) -> Variable:
        state = Variable((self.batch_size, self.state_size))
        state.data.zero()
        return state

    def reset_state(self) -> None:
        """Set the states to zero."""
        self.h.data.zero()
        self.c.data.zero()

    def __call__(
        self, x: Variable, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False
    ) -> Variable:
        """Do a step.

        Args:
            x: Input of shape (batch_size, inputs).
            w_init: Initial weights, as of `lstm_cell`.
            b_init: Initial biases.
            fix_parameters: Whether weights and biases stay as they are in training.

        Returns:
            The state h after the step.
        """
        call: Any = lstm_cell
        step = (self.state_size, w_init, b_init, fix_parameters)
        self.h, self.c = call(x, self.h, self.c, *step, name=self.name)
        return self.h
