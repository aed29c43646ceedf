"""The solvers. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

from ._calls import checked_new
from .solver import Solver, SolverState

__all__ = [
    "Adam",
    "AdamW",
    "Momentum",
    "Nesterov",
    "Sgd",
    "Solver",
    "SolverState",
]


class Sgd(Solver):
    """Stochastic gradient descent, `w = w - lr g`.

    Args:
        lr: Learning rate.
    """

    @checked_new
    def __new__(cls, lr: float = 0.001) -> Sgd:
        return super().__new__(cls, "Sgd", (lr,))


class Momentum(Solver):
    """Gradient descent with momentum, `m = momentum m + lr g`, `w = w - m` (Polyak, 1964). The learning rate goes into
    `m`, so a change of it leaves the past steps as they were.

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9) -> Momentum:
        return super().__new__(cls, "Momentum", (lr, momentum))


class Nesterov(Solver):
    """Nesterov's accelerated gradient, `m' = momentum m - lr g`, `w = w + (1 + momentum) m' - momentum m` (Nesterov, 1983).

    Args:
        lr: Learning rate.
        momentum: Share of the last step that goes on.
    """

    @checked_new
    def __new__(cls, lr: float = 0.001, momentum: float = 0.9) -> Nesterov:
        return super().__new__(cls, "Nesterov", (lr, momentum))


class Adam(Solver):
    """Adam, `w = w - a_t mean / (sqrt(var) + eps)` with `mean = beta1 mean + (1 - beta1) g`,
    `var = beta2 var + (1 - beta2) g^2`, `a_t = alpha sqrt(1 - beta2^t) / (1 - beta1^t)` (Kingma and Ba, 2015).

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0.
    """

    @checked_new
    def __new__(cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8) -> Adam:
        return super().__new__(cls, "Adam", (alpha, beta1, beta2, eps))


class AdamW(Solver):
    """Adam with decoupled weight decay, Adam's step and `- eta wd w` at once; eta is the learning rate as a share of the
    first one (Loshchilov and Hutter, 2019). `weight_decay(rate)` stands in for `wd` in the next update.

    Args:
        alpha: Step size.
        beta1: Decay of the running mean of the gradient.
        beta2: Decay of the running mean of its square.
        eps: Small number that keeps the divisor from 0.
        wd: Weight decay rate, not multiplied by alpha.
    """

    @checked_new
    def __new__(
        cls, alpha: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, wd: float = 0.0001
    ) -> AdamW:
        return super().__new__(cls, "AdamW", (alpha, beta1, beta2, eps, wd))


def __getattr__(name: str) -> Any:
    from ._missing import missing_name

    raise missing_name("nnrs.solvers", name)
