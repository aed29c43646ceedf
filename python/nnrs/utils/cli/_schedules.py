"""The learning rates that an optimizer of a file asks for."""

from __future__ import annotations

from typing import Any

from ..._errors import ArgumentError, message


def schedule(command: str, solver: Any, rate: float) -> Any:
    """The scheduler of a message `Solver`.

    Args:
        command: Name of the command, for errors.
        solver: The message.
        rate: The learning rate at the beginning.

    Raises:
        ValueError: If it asks for one that there is not.
    """
    from ..learning_rate_scheduler import LinearWarmupScheduler

    made = _without_warmup(command, solver, rate)
    if solver.lr_warmup_scheduler_type == "Linear":
        iterations = solver.linear_warmup_scheduler_param.warmup_iter
        return LinearWarmupScheduler(made, iterations) if iterations > 0 else made
    return made


def _without_warmup(command: str, solver: Any, rate: float) -> Any:
    from .. import learning_rate_scheduler as L

    kind = solver.lr_scheduler_type
    if kind == "Polynomial" and (p := solver.polynomial_scheduler_param).power != 0:
        return L.PolynomialScheduler(rate, p.max_iter, p.power)
    if kind == "Cosine":
        return L.CosineScheduler(rate, solver.cosine_scheduler_param.max_iter)
    if kind == "Exponential" and (e := solver.exponential_scheduler_param).gamma != 1:
        return L.ExponentialScheduler(rate, e.gamma, max(e.iter_interval, 1))
    if kind == "Step" and (s := solver.step_scheduler_param).gamma != 1 and s.iter_steps:
        return L.StepScheduler(rate, s.gamma, list(s.iter_steps))
    if kind == "":
        return L.ExponentialScheduler(rate, solver.lr_decay or 1.0, max(solver.lr_decay_interval, 1))
    if kind not in ("Polynomial", "Exponential", "Step"):
        expected = "a scheduler of Polynomial, Cosine, Exponential or Step"
        raise ArgumentError(message(command, "config", expected, repr(kind)))
    return L.ExponentialScheduler(rate, 1.0, 1)
