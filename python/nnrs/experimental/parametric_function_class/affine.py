"""A fully connected layer as an object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import functions as F
from ... import initializer as I
from ..._borrowed import borrower
from ..._core import Variable
from ..._parametric_api import Initializer, Rng
from .module import Module, _initial

__all__ = ["Affine", "Linear"]

__getattr__ = borrower(__name__)


class Affine(Module):
    """Affine layer (fully connected layer), `y = x W + b`.

    Args:
        n_inmaps: Number of inputs of a sample.
        n_outmaps: Number of outputs; of several sizes their product.
        base_axis: First axis that is not a sample's number.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    >>> layer = Affine(12, 5)
    >>> layer(Variable((8, 3, 4))).shape, layer.W.shape, layer.b.shape
    ((8, 5), (12, 5), (5,))
    """

    W: Variable
    b: Variable | None

    def __init__(
        self,
        n_inmaps: int,
        n_outmaps: int | Sequence[int],
        base_axis: int = 1,
        w_init: Initializer = None,
        b_init: Initializer = None,
        fix_parameters: bool = False,
        rng: Rng = None,
        with_bias: bool = True,
    ) -> None:
        outmaps = math.prod(n_outmaps) if isinstance(n_outmaps, Sequence) else n_outmaps
        usual = I.UniformInitializer(I.calc_uniform_lim_glorot(n_inmaps, outmaps), rng=rng)
        zeros = I.ConstantInitializer()
        need_grad = not fix_parameters
        self.W = _initial("Affine", "w_init", w_init, usual, (n_inmaps, outmaps)).apply(need_grad=need_grad)
        self.b = (
            _initial("Affine", "b_init", b_init, zeros, (outmaps,)).apply(need_grad=need_grad) if with_bias else None
        )
        self.base_axis = base_axis

    def __call__(self, inp: Variable) -> Any:
        """The layer's output for `inp`."""
        return F.affine(inp, self.W, self.b, self.base_axis)


Linear = Affine
