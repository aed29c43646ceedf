"""Transposed convolution as an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import functions as F
from ... import initializer as I
from ..._borrowed import borrower
from ..._core import Variable
from ..._errors import ArgumentError, message
from ..._parametric_api import Initializer, Rng
from .module import Module, _initial

__all__ = ["Deconv1d", "Deconv2d", "Deconv3d", "DeconvNd", "Deconvolution"]

__getattr__ = borrower(__name__)


class Deconvolution(Module):
    """Transposed convolution over the last axes, as many as the kernel has.

    Args:
        inmaps: Number of input channels.
        outmaps: Number of output channels.
        kernel: Sizes of the kernel.
        pad: Zeros before and after each axis; by default none.
        stride: Step of each axis; by default 1.
        dilation: Distance of the kernel's elements; by default 1.
        group: Number of groups of channels, a divisor of both.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: Axis of the channels.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    >>> layer = Deconvolution(3, 5, (3, 3))
    >>> layer(Variable((2, 3, 8, 8))).shape, layer.W.shape
    ((2, 5, 10, 10), (3, 5, 3, 3))
    """

    W: Variable
    b: Variable | None

    def __init__(
        self,
        inmaps: int,
        outmaps: int,
        kernel: Sequence[int],
        pad: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        group: int = 1,
        w_init: Initializer = None,
        b_init: Initializer = None,
        base_axis: int = 1,
        fix_parameters: bool = False,
        rng: Rng = None,
        with_bias: bool = True,
    ) -> None:
        if group < 1 or inmaps % group or outmaps % group:
            expected = f"a divisor of inmaps={inmaps} and outmaps={outmaps}"
            raise ArgumentError(message("Deconvolution", "group", expected, group))
        usual = I.UniformInitializer(I.calc_uniform_lim_glorot(inmaps, outmaps, tuple(kernel)), rng=rng)
        zeros = I.ConstantInitializer()
        need_grad = not fix_parameters
        shape = (inmaps, outmaps // group, *kernel)
        self.W = _initial("Deconvolution", "w_init", w_init, usual, shape).apply(need_grad=need_grad)
        b = _initial("Deconvolution", "b_init", b_init, zeros, (outmaps,)) if with_bias else None
        self.b = None if b is None else b.apply(need_grad=need_grad)
        self.base_axis = base_axis
        self.pad = pad
        self.stride = stride
        self.dilation = dilation
        self.group = group

    def __call__(self, inp: Variable) -> Any:
        """The layer's output for `inp`."""
        sizes = (self.pad, self.stride, self.dilation)
        return F.deconvolution(inp, self.W, self.b, self.base_axis, *sizes, self.group)


Deconv1d = Deconv2d = Deconv3d = DeconvNd = Deconvolution
