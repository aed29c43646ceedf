"""Batch normalization as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ... import functions as F
from ... import initializer as I
from ..._borrowed import borrower
from ..._core import Variable
from ..._errors import ArgumentError, check_type, message
from ..._param_init import known_of
from ..._parametric_api import ParamInit
from .module import Module, _initial

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BatchNormalization"]

__getattr__ = borrower(__name__)


class BatchNormalization(Module):
    """Batch normalization (Ioffe and Szegedy, 2015), `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        n_features: Number of channels.
        n_dims: Number of axes of the inputs.
        axes: The axis of the channels, in a list.
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Whether the statistics of the batch are used, but in tests.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.

    >>> layer = BatchNormalization(3, 4)
    >>> layer(Variable((2, 3, 8, 8))).shape, layer.beta.shape
    ((2, 3, 8, 8), (1, 3, 1, 1))
    """

    beta: Variable
    gamma: Variable
    mean: Variable
    var: Variable

    def __init__(
        self,
        n_features: int,
        n_dims: int,
        axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
        decay_rate: float = 0.9,
        eps: float = 1e-5,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: ParamInit = None,
    ) -> None:
        if len(axes) != 1 or not -n_dims <= axes[0] < n_dims:
            raise ArgumentError(message("BatchNormalization", "axes", f"one axis of {n_dims}, in a list", axes))
        sizes = [1] * n_dims
        sizes[axes[0]] = n_features
        check_type(
            "BatchNormalization", "param_init", param_init, (Mapping, type(None)), "initial values by name, a dict"
        )
        init = known_of("BatchNormalization", ("beta", "gamma", "mean", "var"), param_init or {}, stacklevel=3)

        def make(name: str, usual: float) -> Variable:
            return _initial("BatchNormalization", name, init.get(name), I.ConstantInitializer(usual), tuple(sizes))

        self.beta = make("beta", 0).apply(need_grad=not fix_parameters)
        self.gamma = make("gamma", 1).apply(need_grad=not fix_parameters)
        self.mean = make("mean", 0)
        self.var = make("var", 1)
        self.axes = axes
        self.decay_rate = decay_rate
        self.eps = eps
        self.batch_stat = batch_stat
        self.output_stat = output_stat

    def __call__(self, inp: Variable, test: bool = False) -> Any:
        """The layer's output for `inp`; with `test` by the running statistics."""
        parts: Any = (self.beta, self.gamma, self.mean, self.var)
        batch_stat = self.batch_stat and not test
        call: Any = F.batch_normalization
        return call(inp, *parts, self.axes, self.decay_rate, self.eps, batch_stat, self.output_stat)


class BatchNorm1d(BatchNormalization):
    """Batch normalization of arrays with 3 axes, as `Conv1d` makes them.

    Args:
        n_features: Number of channels.
        axes: The axis of the channels, in a list.
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Whether the statistics of the batch are used, but in tests.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name, as of `BatchNormalization`.

    >>> BatchNorm1d(3)(Variable((2, 3, 8))).shape
    (2, 3, 8)
    """

    def __init__(
        self,
        n_features: int,
        axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
        decay_rate: float = 0.9,
        eps: float = 1e-5,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: ParamInit = None,
    ) -> None:
        more = (axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init)
        super().__init__(n_features, 3, *more)


class BatchNorm2d(BatchNormalization):
    """Batch normalization of arrays with 4 axes, as `Conv2d` makes them.

    Args:
        n_features: Number of channels.
        axes: The axis of the channels, in a list.
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Whether the statistics of the batch are used, but in tests.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name, as of `BatchNormalization`.

    >>> BatchNorm2d(3)(Variable((2, 3, 8, 8))).shape
    (2, 3, 8, 8)
    """

    def __init__(
        self,
        n_features: int,
        axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
        decay_rate: float = 0.9,
        eps: float = 1e-5,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: ParamInit = None,
    ) -> None:
        more = (axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init)
        super().__init__(n_features, 4, *more)


class BatchNorm3d(BatchNormalization):
    """Batch normalization of arrays with 5 axes, as `Conv3d` makes them.

    Args:
        n_features: Number of channels.
        axes: The axis of the channels, in a list.
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Whether the statistics of the batch are used, but in tests.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name, as of `BatchNormalization`.

    >>> BatchNorm3d(3)(Variable((2, 3, 8, 8, 8))).shape
    (2, 3, 8, 8, 8)
    """

    def __init__(
        self,
        n_features: int,
        axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
        decay_rate: float = 0.9,
        eps: float = 1e-5,
        batch_stat: bool = True,
        output_stat: bool = False,
        fix_parameters: bool = False,
        param_init: ParamInit = None,
    ) -> None:
        more = (axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init)
        super().__init__(n_features, 5, *more)
