"""Modules that networks are built of: `ConvBn`, `ResUnit`.

>>> import nnrs as nn
>>> unit = ResUnit(8, stride=2)
>>> unit(nn.Variable((1, 4, 16, 16))).shape
(1, 8, 8, 8)
>>> list(unit.get_parameters(grad_only=True))[:3]
['@conv1/conv/W', '@conv1/bn/beta', '@conv1/bn/gamma']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import functions as F
from .. import parametric_functions as PF
from .._core import Variable
from .._errors import ArgumentError, check_integer, message
from .module import Module

_Sizes = int | Sequence[int]


def complete_dims(s: Any, dims: int) -> Any:
    """`s` for each of `dims` axes: itself, if it is a list of as many, else as often.

    Args:
        s: Number, or list of numbers.
        dims: Number of axes.

    Raises:
        ValueError: If it is a list of another length.

    >>> complete_dims(3, 2)
    (3, 3)
    """
    if not isinstance(s, Iterable):
        return (s,) * dims
    sizes = s if isinstance(s, Sequence) else tuple(s)
    if len(sizes) != dims:
        raise ArgumentError(message("complete_dims", "s", f"a number, or {dims} of them", str(sizes)))
    return sizes


def get_conv_same_pad(k: Iterable[int]) -> tuple[int, ...]:
    """Padding with which a convolution of odd kernel sizes keeps an image's size.

    Args:
        k: The kernel's sizes.

    >>> get_conv_same_pad((3, 5))
    (1, 2)
    """
    return tuple(size // 2 for size in k)


class ConvBn(Module):
    """A convolution of images without bias, batch normalization and, if given, an activation.

    Args:
        outmaps: Number of maps.
        kernel: Size of the kernel, one number or two; the image is padded by half of it.
        stride: Stride, one number or two.
        act: Activation, a function of a Variable.

    >>> import nnrs as nn
    >>> ConvBn(8, kernel=3, stride=2)(nn.Variable((1, 4, 16, 16))).shape
    (1, 8, 8, 8)
    """

    def __init__(
        self, outmaps: int, kernel: _Sizes = 1, stride: _Sizes = 1, act: Callable[[Variable], Variable] | None = None
    ) -> None:
        self.outmaps = outmaps
        self.kernel = kernel
        self.stride = stride
        self.act = act

    def call(self, x: Variable, training: bool = True) -> Variable:
        """The graph.

        Args:
            x: Images, (N, C, H, W).
            training: Whether to normalize by the batch's statistics and note them, and not by those noted.
        """
        kernel = complete_dims(self.kernel, 2)
        stride = complete_dims(self.stride, 2)
        h = PF.convolution(x, self.outmaps, kernel, get_conv_same_pad(kernel), stride, with_bias=False)
        h = PF.batch_normalization(h, batch_stat=training)
        return h if self.act is None else self.act(h)


class ResUnit(Module):
    """A residual unit: three `ConvBn` (1, 3 and 1 wide, the first two with a quarter of the maps) beside a skip.

    Args:
        channels: Number of maps, 4 or more.
        stride: Stride of the second convolution and of the skip.
        skip_by_conv: Whether the skip is a `ConvBn` too; else it is `x` as it is, which must fit.

    >>> import nnrs as nn
    >>> ResUnit(8, skip_by_conv=False)(nn.Variable((1, 8, 16, 16))).shape
    (1, 8, 16, 16)
    """

    def __init__(self, channels: int, stride: _Sizes = 1, skip_by_conv: bool = True) -> None:
        inner = check_integer("ResUnit", "channels", channels, 4) // 4
        self.conv1 = ConvBn(inner, 1, 1, act=F.relu)
        self.conv2 = ConvBn(inner, 3, stride, act=F.relu)
        self.conv3 = ConvBn(channels, 1)
        self.skip_by_conv = skip_by_conv
        self.skip = ConvBn(channels, 1, stride)

    def call(self, x: Variable, training: bool = True) -> Variable:
        """The graph.

        Args:
            x: Images, (N, C, H, W).
            training: Whether the normalizations go by the batch's statistics.
        """
        h = self.conv3(self.conv2(self.conv1(x, training), training), training)
        skip = self.skip(x, training) if self.skip_by_conv else x
        return F.relu(F.add2(h, skip))
