"""Learning rates that change as a network trains: a scheduler gives the rate of an iteration.

>>> scheduler = LinearWarmupScheduler(CosineScheduler(0.1, max_iter=100), warmup_iter=10)
>>> [round(scheduler.get_learning_rate(i), 4) for i in (0, 9, 50, 100)]
[0.01, 0.098, 0.05, 0.0]

A solver takes it with `solver.set_learning_rate(scheduler.get_learning_rate(i))`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .._errors import ArgumentError, ArgumentTypeError, check_number, check_type, describe, message


class BaseLearningRateScheduler:
    """What schedulers are: objects with `get_learning_rate`, for a class of your own.

    >>> class Halves(BaseLearningRateScheduler):
    ...     def get_learning_rate(self, iter):
    ...         return 0.5**iter
    >>> LinearWarmupScheduler(Halves(), 2).get_learning_rate(1)
    0.5
    """

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration.

        Args:
            iter: Number of the iteration, from 0 on.

        Raises:
            NotImplementedError: If the subclass does not give it.
        """
        raise NotImplementedError(f"{type(self).__name__}.get_learning_rate is missing: it gives an iteration's rate")


class PolynomialScheduler(BaseLearningRateScheduler):
    """`init_lr * (1 - iter / max_iter) ** power`; 0 after `max_iter`.

    Args:
        init_lr: Rate of the first iteration.
        max_iter: Number of iterations.
        power: Exponent.

    >>> PolynomialScheduler(0.1, 100, 2).get_learning_rate(50)
    0.025
    """

    def __init__(self, init_lr: float, max_iter: int, power: float) -> None:
        self.init_lr = _number(self, "init_lr", init_lr)
        self.max_iter = _positive(self, "max_iter", max_iter)
        self.power = _number(self, "power", power)

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration, counted from 0."""
        left = max(1.0 - iter * 1.0 / self.max_iter, 0.0)
        return float(self.init_lr * left**self.power)


class CosineScheduler(BaseLearningRateScheduler):
    """`init_lr * (cos(pi * iter / max_iter) + 1) / 2`.

    Args:
        init_lr: Rate of the first iteration.
        max_iter: Number of iterations; the rate is 0 then.

    >>> CosineScheduler(0.1, 100).get_learning_rate(50)
    0.05
    """

    def __init__(self, init_lr: float, max_iter: int) -> None:
        self.init_lr = _number(self, "init_lr", init_lr)
        self.max_iter = _positive(self, "max_iter", max_iter)

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration, counted from 0."""
        return float(self.init_lr * ((math.cos(iter * 1.0 / self.max_iter * math.pi) + 1.0) * 0.5))


class ExponentialScheduler(BaseLearningRateScheduler):
    """`init_lr * gamma ** (iter // iter_interval)`.

    Args:
        init_lr: Rate of the first iteration.
        gamma: Factor.
        iter_interval: Iterations from one multiplication to the next.

    >>> ExponentialScheduler(0.5, 0.5, 10).get_learning_rate(25)
    0.125
    """

    def __init__(self, init_lr: float, gamma: float, iter_interval: int = 1) -> None:
        self.init_lr = _number(self, "init_lr", init_lr)
        self.gamma = _number(self, "gamma", gamma)
        self.iter_interval = _positive(self, "iter_interval", iter_interval)

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration, counted from 0."""
        return float(self.init_lr * self.gamma ** (iter // self.iter_interval))


class StepScheduler(BaseLearningRateScheduler):
    """`init_lr`, multiplied by `gamma` at each of some iterations.

    Args:
        init_lr: Rate of the first iteration.
        gamma: Factor.
        iter_steps: Those iterations, in any order.

    >>> StepScheduler(1, 0.5, [10, 20]).get_learning_rate(20)
    0.25
    """

    def __init__(self, init_lr: float, gamma: float, iter_steps: Iterable[int]) -> None:
        self.init_lr = _number(self, "init_lr", init_lr)
        self.gamma = _number(self, "gamma", gamma)
        check_type("StepScheduler", "iter_steps", iter_steps, Iterable, "a list of iterations")
        self.iter_steps = list(iter_steps)

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration, counted from 0."""
        rate = self.init_lr
        for step in self.iter_steps:
            if iter >= step:
                rate *= self.gamma
        return float(rate)


class LinearWarmupScheduler(BaseLearningRateScheduler):
    """Another scheduler's rates, times a factor that rises to 1 over the first iterations.

    Args:
        scheduler: The other scheduler.
        warmup_iter: How many iterations have a smaller rate.

    >>> LinearWarmupScheduler(StepScheduler(1, 1, []), 4).get_learning_rate(0)
    0.25
    """

    def __init__(self, scheduler: BaseLearningRateScheduler, warmup_iter: int) -> None:
        if not callable(getattr(scheduler, "get_learning_rate", None)):
            raise ArgumentTypeError(message("LinearWarmupScheduler", "scheduler", "a scheduler", describe(scheduler)))
        self.scheduler = scheduler
        self.warmup_iter = _number(self, "warmup_iter", warmup_iter)

    def get_learning_rate(self, iter: int) -> float:
        """The rate of an iteration, counted from 0."""
        rate = self.scheduler.get_learning_rate(iter)
        if iter < self.warmup_iter:
            rate *= (iter + 1) * 1.0 / self.warmup_iter
        return float(rate)


def _number(scheduler: object, argument: str, value: float) -> float:
    """`value` as it is, if it is a number."""
    check_number(type(scheduler).__name__, argument, value)
    return value


def _positive(scheduler: object, argument: str, value: int) -> int:
    if not check_number(type(scheduler).__name__, argument, value) > 0:
        raise ArgumentError(message(type(scheduler).__name__, argument, "a number above 0", value))
    return value
