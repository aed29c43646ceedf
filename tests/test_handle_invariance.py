"""Holding the variables inside a graph changes no bit of what it computes, whatever the types of the contexts."""

from __future__ import annotations

import random

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf
from nnrs.ext_utils import get_extension_context

UNARY = [
    F.sin,
    F.tanh,
    F.identity,
    F.sigmoid,
    lambda v: v * 1.5,
    lambda v: F.reshape(v, (v.size,)),
    lambda v: F.reshape(v, (1, v.size)),
    lambda v: F.reshape(v, v.shape, inplace=False),
    lambda v: F.sum(v, axis=0, keepdims=True),
    lambda v: F.transpose(v, tuple(reversed(range(v.ndim)))),
    lambda v: F.softmax(v, axis=0),
    lambda v: F.broadcast(F.reshape(v, (1, v.size)), (2, v.size)),
    lambda v: v.get_unlinked_variable(need_grad=True) if v.parent is None else F.identity(v),
    lambda v: F.slice(v, stop=(1,)),
    lambda v: F.mul_scalar(v, 0.5, inplace=True),
]
BINARY = [F.add2, F.mul2, lambda a, b: F.add2(a, b, inplace=True), F.minimum2, lambda a, b: F.concatenate(a, b, axis=0)]


def program(seed: int, types: list[str], hold: bool) -> list[np.ndarray]:
    """The gradients of the leaves, and the loss, of a random graph; its inner variables are held, or let go at once."""
    rng = random.Random(seed)
    g = np.random.RandomState(seed)
    leaves = [leaf(g.randn(rng.choice([1, 2]), 3)) for _ in range(3)]
    variables, held = list(leaves), []
    for _ in range(rng.randint(4, 10)):
        with nn.context_scope(get_extension_context("cpu", type_config=rng.choice(types))):
            a = rng.choice(variables)
            same = [v for v in variables if v.shape == a.shape]
            y = rng.choice(BINARY)(a, rng.choice(same)) if rng.random() < 0.4 else rng.choice(UNARY)(a)
        variables.append(y)
        if hold:
            held.append(y)
    loss = F.add_n(*[F.sum(v) for v in rng.sample(variables, 2)])
    del a, y, same
    for v in leaves:
        v.grad.zero()
    if not hold:
        variables.clear()
    for _ in range(rng.randint(1, 2)):
        loss.forward(clear_no_need_grad=rng.random() < 0.3)
        loss.backward(clear_buffer=rng.random() < 0.5)
    return [loss.d.copy(), *(v.g.copy() for v in leaves)]


@pytest.mark.parametrize("types", [["float"], ["float", "half"], ["float", "half", "double", "bfloat16"]], ids=" ".join)
def test_holding_changes_no_bit(types):
    for seed in range(300):
        lean, held = (program(seed, types, hold) for hold in (False, True))
        for a, b in zip(lean, held, strict=True):
            assert a.tobytes() == b.tobytes(), f"seed {seed}: {a} and {b}"
