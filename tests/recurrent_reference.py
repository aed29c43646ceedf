"""What the cases of `rnn`, `lstm` and `gru` share: a step at a time, as the books have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from function.case import Maker, normal

# A step: products of x and of h for each gate, biases, and states to new states h and c.
Step = Callable[[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray, Any], tuple[np.ndarray, Any]]
STEPS, BATCH, INPUTS, HIDDEN = 2, 2, 3, 2


def sigmoid(a: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-a))


def layers(
    step: Step,
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray | None,
    first: np.ndarray,
    others: np.ndarray | None,
    bias: np.ndarray | None,
    biases: int,
) -> tuple[np.ndarray, ...]:
    """All layers and directions. Weights and biases have an axis for the gates."""
    h_n, c_n = np.zeros_like(h), np.zeros_like(h)
    for layer in range(h.shape[0]):
        out = []
        for direction in range(h.shape[1]):
            w = first[direction] if others is None or layer == 0 else others[layer - 1, direction]
            wx, wh = w[..., : x.shape[2]], w[..., x.shape[2] :]
            b = np.zeros((biases, h.shape[3])) if bias is None else bias[layer, direction]
            state, own = h[layer, direction], None if c is None else c[layer, direction]
            y = np.zeros((*x.shape[:2], h.shape[3]))
            for t in range(len(x))[:: -1 if direction else 1]:
                state, own = step([x[t] @ g.T for g in wx], [state @ g.T for g in wh], b, state, own)
                y[t] = state
            out.append(y)
            h_n[layer, direction] = state
            if own is not None:
                c_n[layer, direction] = own
        x = np.concatenate(out, axis=2)
    return (x, h_n) if c is None else (x, h_n, c_n)


def inputs(
    gates: tuple[int, ...],
    biases: tuple[int, ...],
    n_layers: int = 1,
    directions: int = 1,
    has_c: bool = False,
    with_bias: bool = True,
    steps: int = STEPS,
    batch: int = BATCH,
    n: int = INPUTS,
    hidden: int = HIDDEN,
    scale: float = 0.7,
) -> list[Any]:
    """x, states, weights of the first layer and of the others, biases."""
    state: Maker = normal(n_layers, directions, batch, hidden)
    wide = directions * hidden + hidden
    return [
        normal(steps, batch, n),
        *([state, state] if has_c else [state]),
        normal(directions, *gates, hidden, n + hidden, scale=scale),
        normal(n_layers - 1, directions, *gates, hidden, wide, scale=scale) if n_layers > 1 else None,
        normal(n_layers, directions, *biases, hidden, scale=0.5) if with_bias else None,
    ]
