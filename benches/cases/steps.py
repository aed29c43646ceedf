"""Steps that several cases share: of a training, and forward and backward with a given gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .case import Kit, Step


def nabla_training(kit: Kit, loss: Any, solver: Any) -> Step:
    """Zero the gradients of all parameters, forward, backward, update."""
    solver.set_parameters(kit.nn.get_parameters())

    def step():
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def torch_training(loss: Callable[[], Any], solver: Any) -> Step:
    def step():
        solver.zero_grad()
        loss().backward()
        solver.step()

    return step


def nabla_gradients(y: Any, leaves: Sequence[Any], seed: Any) -> Step:
    """Forward, and the gradients of the leaves from that of y."""

    def step():
        y.forward(clear_no_need_grad=True)
        for x in leaves:
            x.grad.zero()
        y.backward(seed, clear_buffer=True)

    return step
