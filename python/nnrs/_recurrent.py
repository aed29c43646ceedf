"""`rnn`, `lstm` and `gru` as NNabla has them: the weights of further layers, and biases, may be None."""

from __future__ import annotations

from typing import Any, TypeVar

from ._core import NdArray, Variable

A = TypeVar("A", Variable, NdArray)


def _given(*inputs: A | None) -> list[A]:
    return [v for v in inputs if v is not None]


def rnn(
    x: A,
    h: A,
    weight_l0: A,
    weight: A | None = None,
    bias: A | None = None,
    num_layers: int = 1,
    nonlinearity: str = "tanh",
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Recurrent layers (Elman, 1990), `h = tanh(W x + U h_before + b)` at each step.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        weight_l0: Weights of the first layer, for x and then for h, of shape
            (directions, hidden, inputs + hidden).
        weight: Weights of the other layers, of shape
            (layers - 1, directions, hidden, directions * hidden + hidden); None if there is one layer.
        bias: Biases of shape (layers, directions, hidden), or None.
        num_layers: Layers, of which each has the one before as its input.
        nonlinearity: 'tanh' or 'relu'.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, h = A(np.ones((3, 1, 2))), A(np.zeros((1, 1, 1, 4)))
    >>> w = A(np.full((1, 4, 6), 0.5))
    >>> y, h_n = F.rnn(x, h, w)
    >>> y.shape, h_n.shape
    ((3, 1, 4), (1, 1, 1, 4))
    """
    from . import functions as F

    more: Any = _given(weight, bias)
    args = (num_layers, nonlinearity, dropout, bidirectional, training, n_outputs, outputs)
    call: Any = F._rnn
    return call(x, h, weight_l0, *(more + [None] * (2 - len(more))), *args)


def lstm(
    x: A,
    h: A,
    c: A,
    weight_l0: A,
    weight: A | None = None,
    bias: A | None = None,
    num_layers: int = 1,
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Recurrent layers with long short-term memory (Hochreiter and Schmidhuber, 1997).

    With `a = W x + U h_before + b` for each of the gates i, f, n, o: `c = sigmoid(f) c_before + sigmoid(i) tanh(n)`,
    `h = sigmoid(o) tanh(c)`.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        c: States c before the first step, of h's shape.
        weight_l0: Weights of the first layer, for x and then for h, of shape
            (directions, 4, hidden, inputs + hidden).
        weight: Weights of the other layers, of shape
            (layers - 1, directions, 4, hidden, directions * hidden + hidden); None if there is one layer.
        bias: Biases of shape (layers, directions, 4, hidden), or None.
        num_layers: Layers, of which each has the one before as its input.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.
        c_n: States c after the last step, of c's shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, h = A(np.ones((3, 1, 2))), A(np.zeros((1, 1, 1, 4)))
    >>> w = A(np.full((1, 4, 4, 6), 0.5))
    >>> y, h_n, c_n = F.lstm(x, h, h, w)
    >>> y.shape, h_n.shape, c_n.shape
    ((3, 1, 4), (1, 1, 1, 4), (1, 1, 1, 4))
    """
    from . import functions as F

    more: Any = _given(weight, bias)
    args = (num_layers, dropout, bidirectional, training, n_outputs, outputs)
    call: Any = F._lstm
    return call(x, h, c, weight_l0, *(more + [None] * (2 - len(more))), *args)


def gru(
    x: A,
    h: A,
    weight_l0: A,
    weight: A | None = None,
    bias: A | None = None,
    num_layers: int = 1,
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Recurrent layers of gated units (Cho et al., 2014).

    Of the gates r, z, n: `r = sigmoid(W_r x + U_r h_before + b_r)`, z likewise,
    `n = tanh(W_n x + b_n + r (U_n h_before + b_h))`, `h = (1 - z) n + z h_before`.

    Args:
        x: Sequences of shape (steps, batch, inputs).
        h: States before the first step, of shape (layers, directions, batch, hidden).
        weight_l0: Weights of the first layer, for x and then for h, of shape
            (directions, 3, hidden, inputs + hidden).
        weight: Weights of the other layers, of shape
            (layers - 1, directions, 3, hidden, directions * hidden + hidden); None if there is one layer.
        bias: Biases b_r, b_z, b_n, b_h, of shape (layers, directions, 4, hidden), or None.
        num_layers: Layers, of which each has the one before as its input.
        dropout: Share of the numbers between layers that are dropped in training; None: 0.
        bidirectional: Whether each layer goes through the steps in both directions.
        training: Whether there is dropout, and a gradient.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Outputs of the last layer at all steps, of shape (steps, batch, directions * hidden).
        h_n: States after the last step, of h's shape.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, h = A(np.ones((3, 1, 2))), A(np.zeros((1, 1, 1, 4)))
    >>> w = A(np.full((1, 3, 4, 6), 0.5))
    >>> y, h_n = F.gru(x, h, w)
    >>> y.shape, h_n.shape
    ((3, 1, 4), (1, 1, 1, 4))
    """
    from . import functions as F

    more: Any = _given(weight, bias)
    args = (num_layers, dropout, bidirectional, training, n_outputs, outputs)
    call: Any = F._gru
    return call(x, h, weight_l0, *(more + [None] * (2 - len(more))), *args)
