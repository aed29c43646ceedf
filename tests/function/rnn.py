"""`rnn`: recurrent layers of plain cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, normal
from recurrent_reference import inputs, layers


def step(x: list[Any], h: list[Any], b: np.ndarray, state: np.ndarray, own: Any) -> tuple[np.ndarray, Any]:
    return np.tanh(x[0] + h[0] + b[0]), None


def rectified(x: list[Any], h: list[Any], b: np.ndarray, state: np.ndarray, own: Any) -> tuple[np.ndarray, Any]:
    return np.maximum(x[0] + h[0] + b[0], 0), None


def reference(
    x: np.ndarray,
    h: np.ndarray,
    weight_l0: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    num_layers: int = 1,
    nonlinearity: str = "tanh",
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
) -> object:
    gates = [w if w is None else w[..., None, :, :] for w in (weight_l0, weight)]
    bias = bias if bias is None else bias[..., None, :]
    return layers(step if nonlinearity == "tanh" else rectified, x, h, None, *gates, bias, 1)


G, B = (), ()
BOTH = {"num_layers": 2, "bidirectional": True}
X, S, W = (3, 2, 3), (1, 1, 2, 2), (1, 2, 5)
CASES = [
    Case(inputs=inputs(G, B, steps=3), reshaped=inputs(G, B, steps=2, batch=3), name="a layer", second=False),
    Case(inputs=inputs(G, B, with_bias=False), name="no bias", second=False),
    Case(inputs=inputs(G, B, 1, 2), args={"bidirectional": True}, name="both directions", second=False),
    Case(inputs=inputs(G, B, 2), args={"num_layers": 2, "dropout": 0.0}, name="two layers", second=False),
    Case(inputs=inputs(G, B, 2, with_bias=False), args={"num_layers": 2}, name="two layers, no bias", second=False),
    Case(
        inputs=inputs(G, B, 2, 2, steps=2, batch=1, n=1),
        args=BOTH,
        name="two layers, both directions",
        tolerance={"second": 1e-4},
    ),
    Case(
        inputs=inputs(G, B, 3, 2),
        args={**BOTH, "num_layers": 3},
        name="three layers",
        second=False,
        tolerance={"grad": 1e-6},
    ),
    Case(inputs=inputs(G, B, steps=1), name="a step", second=False),
    Case(inputs=inputs(G, B, steps=0), name="no steps", differentiable=False, oracle=False, reason="NNabla cannot"),
    Case(inputs=inputs(G, B, n=0), name="no inputs", second=False, oracle=False, reason="NNabla dies"),
    Case(inputs=inputs(G, B, batch=0), name="no samples", differentiable=False, oracle=False, reason="NNabla cannot"),
    Case(inputs=inputs(G, B), args={"training": False}, name="inference", differentiable=False),
    # More hidden units than a task does at a time, and samples than a tile has.
    Case(
        inputs=inputs(G, B, steps=2, batch=15, n=1, hidden=37, scale=0.1),
        name="odd sizes",
        second=False,
        tolerance={"grad": 3e-6},
    ),
    Case(inputs=[normal(2, 2, 3), *inputs(G, B)[1:]], args={"dropout": 0.5}, name="dropout of one layer", second=False),
    Case(inputs=inputs(G, B), args={"nonlinearity": "relu"}, kinks=[], second=False, name="relu"),
    Case(inputs=inputs(G, B, 2, 2), args={**BOTH, "nonlinearity": "relu"}, second=False, name="relu, layers"),
]
ERRORS = [
    Error(inputs=[(3, 2), S, W], match="argument 'x'", name="x of two axes"),
    Error(inputs=[X, (1, 2, 2), W], match="argument 'h'", name="h of three axes"),
    Error(inputs=[X, (1, 1, 3, 2), W], match="argument 'h'", name="another batch"),
    Error(inputs=[X, S, W[:-1] + (4,)], match="argument 'weight_l0'", name="columns of the weight"),
    Error(inputs=[X, S, W, (1, 1, 2, 4), (1, 1, 2)], match="argument 'weight'", name="a weight too many"),
    Error(inputs=[X, S, W, None, (1, 1, 3)], match="argument 'bias'", name="bias"),
    Error(
        inputs=[X, (2, 1, 2, 2), W],
        args={"num_layers": 2},
        match="argument 'weight'",
        name="no weight",
        oracle=False,
        reason="NNabla dies",
    ),
    Error(inputs=[X, S, W], args={"num_layers": 0}, match="argument 'num_layers'", name="no layers"),
    Error(
        inputs=[X, S, W],
        args={"dropout": 1.0},
        match="argument 'dropout'",
        name="dropout",
        oracle=False,
        reason="NNabla ignores it",
    ),
    Error(inputs=[X, S, W], args={"nonlinearity": "sigmoid"}, match="argument 'nonlinearity'", name="nonlinearity"),
]
