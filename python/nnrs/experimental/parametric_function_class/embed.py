"""A table of features as an object."""

from __future__ import annotations

from typing import Any

from ... import functions as F
from ... import initializer as I
from ..._borrowed import borrower
from ..._core import Variable
from ..._parametric_api import Initializer
from .module import Module, _initial

__all__ = ["Embed"]

__getattr__ = borrower(__name__)


class Embed(Module):
    """Rows of a table of features, looked up by index.

    Args:
        n_inputs: Number of rows (words, say).
        n_features: Number of features of each.
        w_init: Initial table; by default uniform from -sqrt(3) to sqrt(3).
        fix_parameters: Whether the table stays as it is in training.

    >>> Embed(10, 4)(Variable((2, 3))).shape
    (2, 3, 4)
    """

    W: Variable

    def __init__(
        self, n_inputs: int, n_features: int, w_init: Initializer = None, fix_parameters: bool = False
    ) -> None:
        usual = I.UniformInitializer((-(3.0**0.5), 3.0**0.5))
        w = _initial("Embed", "w_init", w_init, usual, (n_inputs, n_features))
        self.W = w.apply(need_grad=not fix_parameters)

    def __call__(self, inp: Variable) -> Any:
        """The rows of the indices `inp`."""
        return F.embed(inp, self.W)
