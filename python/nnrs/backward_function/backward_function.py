"""Gradients as functions, under NNabla's names.

`AffineDataGrad(ctx, base_axis)` of the module `affine` is called with the gradient of y and the weight, and gives that
of x, whose shape it has to be told.

>>> import nnrs as nn
>>> from nnrs.backward_function.affine import AffineDataGrad
>>> gradient = AffineDataGrad(nn.get_current_context(), base_axis=1)
>>> gradient.xshape = (1, 3)
>>> gx = gradient(nn.Variable.from_numpy_array([[1.0, 2.0]]), nn.Variable.from_numpy_array([[1, 0], [0, 1], [1, 1]]))
>>> gx.forward()
>>> gx.d.tolist()
[[1.0, 2.0, 3.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Context, Variable
from .._errors import ArgumentError, message
from .._gradient_rules import (
    ARGUMENT_NAMES,
    CLASS_NAMES,
    DATA,
    FILTER,
    GRADIENTS,
    STATISTICS,
    UNARY,
    Places,
    fused_gradients,
    gradients_of,
    named,
)
from .._modes import context_scope, get_current_context


class _Gradient:
    """A gradient, made of functions that have gradients themselves."""

    function: str = ""
    """The class name of the function that it is a gradient of."""
    names: Sequence[str] = ()
    """The arguments of that."""

    def __init__(self, ctx: Context | None = None, *given: Any, **args: Any) -> None:
        """Keep the context, by default the current one at each call, and the function's arguments."""
        self._ctx = ctx
        self.args = named(self.name, self.names, given, args)

    @property
    def name(self) -> str:
        """The class's."""
        return type(self).__name__

    def __call__(self, *inputs: Variable | None) -> Any:
        """The gradient, from that of y and from inputs."""
        with context_scope(self._ctx or get_current_context()):
            return self._made(inputs)

    def _made(self, inputs: Sequence[Variable | None]) -> Any:
        raise NotImplementedError

    def _shape(self, attribute: str) -> Any:
        if (shape := getattr(self, attribute)) is None:
            raise ArgumentError(
                message(self.name, attribute, "the shape of what the gradient is of, set before", "None")
            )
        return shape


class UnaryDataGrad(_Gradient):
    """The gradient of a linear function of x by x, called with that of y."""

    places: Places = UNARY
    shape_of = "xshape"
    xshape: Sequence[int] | None = None

    def _made(self, inputs: Sequence[Variable | None]) -> Any:
        return gradients_of(self.function, self.places, inputs, [self._shape(self.shape_of)], self.args)[0]


class LinearDataGrad(UnaryDataGrad):
    """The gradient of a linear function of x and a weight by x, called with that of y and the weight."""

    places = DATA


class LinearFilterGrad(UnaryDataGrad):
    """The gradient of a linear function of x and a weight by the weight, called with that of y and x."""

    places, shape_of = FILTER, "wshape"
    wshape: Sequence[int] | None = None


class ConcatenateDataGrad(_Gradient):
    """The gradients of `concatenate`, called with that of y."""

    function, names = "Concatenate", ARGUMENT_NAMES["concatenate"]
    xshapes: Sequence[Sequence[int]] | None = None

    def _made(self, inputs: Sequence[Variable | None]) -> Any:
        shapes = self._shape("xshapes")
        return tuple(gradients_of(self.function, UNARY * len(shapes), inputs, shapes, self.args))


class MaxPoolingBackwardDataGrad(UnaryDataGrad):
    """The gradient of that of `max_pooling` by the latter's gradient of y, called with the gradient of this and x."""

    function, names = "MaxPoolingBackward", ARGUMENT_NAMES["max_pooling_backward"]
    places, shape_of = DATA, "yshape"
    yshape: Sequence[int] | None = None


class BatchNormalizationBackward(_Gradient):
    """The gradients of `batch_normalization` by x, beta and gamma, called with that of y and with all inputs."""

    function, names = "BatchNormalization", ARGUMENT_NAMES["batch_normalization"]

    def _made(self, inputs: Sequence[Variable | None]) -> Any:
        made = _core.own_rule(self.function, list(inputs[:1]), list(inputs[1:]), [None], self.args)  # type: ignore[arg-type]
        made = made[:-STATISTICS]
        return made[0] if len(made) == 1 else tuple(made)


class FusedBatchNormalizationBackward(_Gradient):
    """The gradients of `fused_batch_normalization` by x, beta and gamma, and by z where `is_add` is set.

    It is called with the gradient of y, x, beta, gamma, mean, variance, y and perhaps z.
    """

    names = ("axes", "decay_rate", "eps", "batch_stat", "nonlinearity")
    is_add = False

    def _made(self, inputs: Sequence[Variable | None]) -> Any:
        gy, *x = inputs[:6]
        made = fused_gradients(self.name, gy, x, inputs[6], **self.args)  # type: ignore[arg-type]
        return tuple(made[: 3 + self.is_add])


def _classes() -> dict[str, list[type[_Gradient]]]:
    """By the modules that have them."""
    bases: dict[Places, type[_Gradient]] = {UNARY: UnaryDataGrad, DATA: LinearDataGrad, FILTER: LinearFilterGrad}
    found: dict[str, list[type[_Gradient]]] = {
        "batch_normalization": [BatchNormalizationBackward],
        "concatenate": [ConcatenateDataGrad],
        "fused_batch_normalization": [FusedBatchNormalizationBackward],
        "max_pooling_backward": [MaxPoolingBackwardDataGrad],
    }
    for name, places in GRADIENTS.items():
        function, kind, _ = name.rsplit("_", 2)
        if places in bases:
            fields = {"function": CLASS_NAMES[function], "names": ARGUMENT_NAMES[function]}
            made = type(f"{CLASS_NAMES[function]}{kind.title()}Grad", (bases[places],), fields)
            found.setdefault(function, []).append(made)
    return found


CLASSES = _classes()
