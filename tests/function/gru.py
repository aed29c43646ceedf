"""`gru`: recurrent layers of gated units."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, normal
from recurrent_reference import inputs, layers, sigmoid


def step(x: list[Any], h: list[Any], b: np.ndarray, state: np.ndarray, own: Any) -> tuple[np.ndarray, Any]:
    r, z = (sigmoid(x[k] + h[k] + b[k]) for k in range(2))
    n = np.tanh(x[2] + b[2] + r * (h[2] + b[3]))
    return (1 - z) * n + z * state, None


def reference(
    x: np.ndarray,
    h: np.ndarray,
    weight_l0: np.ndarray,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    num_layers: int = 1,
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
) -> object:
    return layers(step, x, h, None, weight_l0, weight, bias, 4)


G, B = (3,), (4,)
BOTH = {"num_layers": 2, "bidirectional": True}
X, S, W = (3, 2, 3), (1, 1, 2, 2), (1, 3, 2, 5)
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
]
ERRORS = [
    Error(inputs=[(3, 2), S, W], match="argument 'x'", name="x of two axes"),
    Error(inputs=[X, (1, 2, 2), W], match="argument 'h'", name="h of three axes"),
    Error(inputs=[X, (1, 1, 3, 2), W], match="argument 'h'", name="another batch"),
    Error(inputs=[X, S, W[:-1] + (4,)], match="argument 'weight_l0'", name="columns of the weight"),
    Error(inputs=[X, S, W, (1, 1, 3, 2, 4), (1, 1, 4, 2)], match="argument 'weight'", name="a weight too many"),
    Error(inputs=[X, S, W, None, (1, 1, 4, 3)], match="argument 'bias'", name="bias"),
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
]
