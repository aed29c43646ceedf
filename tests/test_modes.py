"""Modes: auto_forward and no_grad.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf

pytestmark = pytest.mark.usefixtures("fusion")


def test_auto_forward_computes_at_once():
    with nn.auto_forward():
        assert nn.get_auto_forward()
        x = leaf(X)
        y = F.sin(F.tanh(x)) * x
        close(y.d, np.sin(np.tanh(X)) * X)
        y.backward()
    assert not nn.get_auto_forward()
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2) * X + np.sin(np.tanh(X)))
    nn.set_auto_forward(True)
    try:
        close(F.exp(x).d, np.exp(X))
    finally:
        nn.set_auto_forward(False)


def test_auto_forward_is_left_when_the_block_raises():
    with pytest.raises(ZeroDivisionError), nn.auto_forward():
        raise ZeroDivisionError
    assert not nn.get_auto_forward()


def test_a_dynamic_graph_can_run_again():
    x = leaf(X)
    with nn.auto_forward():
        y = F.exp(F.sin(x))
    x.d = X * 2
    y.forward()
    close(y.d, np.exp(np.sin(X * 2)))


def test_dynamic_nodes_are_freed_at_once():
    functions, variables = nn._core.live_nodes()
    x = leaf(X)
    with nn.auto_forward():
        for _ in range(100):
            y = F.sin(x)
    assert nn._core.live_nodes() == (functions + 1, variables + 2)
    del y


def test_no_grad_keeps_no_history():
    x = leaf(X)
    with nn.auto_forward(), nn.no_grad():
        y = F.sin(F.tanh(x))
        assert y.parent is None and not y.need_grad
        close(y.d, np.sin(np.tanh(X)))
    with nn.auto_forward():
        assert F.sin(x).parent is not None
