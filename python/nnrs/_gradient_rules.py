"""Rules under NNabla's names for gradients, and for functions that are made of others.

nnrs has no rules for these: a gradient is a graph of functions that have theirs. The rules here make this graph of
their inputs once more, and differentiate it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _core
from ._core import Variable
from ._errors import ArgumentError, ArgumentTypeError, describe, message
from .grad import grad

Rule = Callable[..., Any]
Given = Sequence[Variable | None]
Places = tuple[int | None, ...]

CLASS_NAMES: dict[str, str] = {entry["name"]: entry["class_name"] for entry in _core.registry()}
ARGUMENT_NAMES: dict[str, list[str]] = {
    entry["name"]: [argument for argument, *_ in entry["args"]] for entry in _core.registry()
}
STATISTICS = 2  # running ones, the last inputs of a batch normalization


def named(here: str, names: Sequence[str], given: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function by their names."""
    if len(given) > len(names):
        expected = f"at most {len(names)} arguments of the function, {list(names)}"
        raise ArgumentTypeError(message(here, None, f"expected {expected}, got {len(given)}"))
    by_name = dict(arguments)
    for argument, value in zip(names, given, strict=False):
        if argument in by_name:
            raise ArgumentTypeError(message(here, argument, "one value", "one by position and one by keyword"))
        by_name[argument] = value
    return by_name


def _apart(v: Variable) -> Variable:
    """The same numbers, where gradients end: another input may be made of v, or v of it."""
    from . import functions as F

    own: Variable = F.identity(v)
    own.need_grad = True
    return own


def _slopes(outputs: Given, inputs: Mapping[int, Variable], seeds: Given, count: int) -> Any:
    """The gradients of some of `count` inputs, as a rule returns them."""
    slopes = grad(list(outputs), list(inputs.values()), list(seeds))  # type: ignore[arg-type]
    found = dict(zip(inputs, slopes, strict=True))
    made = tuple(found.get(i) for i in range(count))
    return made[0] if count == 1 else made


def gradients_of(
    class_name: str, places: Places, inputs: Given, shapes: Iterable[Any], args: dict[str, Any]
) -> list[Any]:
    """The gradients of a linear function by those of its inputs whose shapes are given.

    Args:
        class_name: The function.
        places: For each input of the function which of `inputs` it is, or None for one that a gradient is of.
        inputs: The gradient of the function's output, and inputs.
        shapes: Those of the inputs that a gradient is of.
        args: The function's arguments.
    """
    left = iter(shapes)
    x = [Variable(next(left)) if i is None else inputs[i] for i in places]
    made = _core.own_rule(class_name, list(inputs[:1]), x, [None], args)  # type: ignore[arg-type]
    return [made[k] for k, i in enumerate(places) if i is None]


def _gradient_rule(here: str, class_name: str, names: Sequence[str], places: Places) -> Rule:
    """The rule of a gradient of a function that is linear in each input.

    Args:
        here: The rule's name.
        class_name: The function.
        names: Its arguments.
        places: As of `gradients_of`; none at all where the gradient is of all inputs.
    """

    def rule(
        grad_inputs: Given,
        inputs: Given,
        input_shapes: Any,
        outputs: Given,
        output_shapes: Any,
        *given: Any,
        **args: Any,
    ) -> Any:
        args = named(here, names, given, args)
        # Places that a function looks at (embed) are numbers of elements.
        own = {i: _apart(v) for i, v in enumerate(inputs) if v is not None and (i == 0 or class_name != "Embed")}
        at = places or (None,) * len(grad_inputs)
        x = [own.get(i, v) for i, v in enumerate(inputs)]
        made = gradients_of(class_name, at, x, (g.shape for g in grad_inputs if g is not None), args)
        return _slopes(made, own, grad_inputs, len(inputs))

    return _renamed(rule, here, f"The rule of the gradient of `nnrs.functions.{here.rpartition('_grad_')[0]}`.")


def _renamed(rule: Rule, here: str, doc: str) -> Rule:
    rule.__name__ = rule.__qualname__ = here
    rule.__doc__ = doc
    return rule


UNARY: Places = (None,)
DATA: Places = (None, 1)
FILTER: Places = (1, None)
GRADIENTS: dict[str, Places] = {
    "affine_data_grad": DATA,
    "affine_filter_grad": FILTER,
    "average_pooling_data_grad": UNARY,
    "concatenate_data_grad": (),
    "convolution_data_grad": DATA,
    "convolution_filter_grad": FILTER,
    "deconvolution_data_grad": DATA,
    "deconvolution_filter_grad": FILTER,
    "embed_filter_grad": FILTER,
    "global_average_pooling_data_grad": UNARY,
    "interpolate_data_grad": UNARY,
    "pad_data_grad": UNARY,
    "slice_data_grad": UNARY,
    "sum_pooling_data_grad": UNARY,
    "transpose_data_grad": UNARY,
    "unpooling_data_grad": UNARY,
}


def gradient_rules() -> dict[str, Rule]:
    """The rules of the gradients of linear functions, by their names without `_backward`."""

    def made(name: str, places: Places) -> Rule:
        function = name.rsplit("_", 2)[0]
        return _gradient_rule(f"{name}_backward", CLASS_NAMES[function], ARGUMENT_NAMES[function], places)

    return {name: made(name, places) for name, places in GRADIENTS.items()}


def batch_normalization_backward_backward(
    grad_inputs: Given,
    inputs: Given,
    input_shapes: Any,
    outputs: Given,
    output_shapes: Any,
    axes: Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    no_scale: bool = False,
    no_bias: bool = False,
) -> tuple[Variable | None, ...]:
    """The rule of the gradients of `batch_normalization` by x, beta and gamma.

    Their inputs are the gradient of y, x, beta (not if no_bias), gamma (not if no_scale) and the running statistics.
    """
    own = {i: _apart(v) for i, v in enumerate(inputs[:-STATISTICS]) if v is not None and (no_bias or i != 2)}
    x = [own.get(i, v) for i, v in enumerate(inputs)]
    args = {"axes": axes, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}
    args |= {"no_scale": no_scale, "no_bias": no_bias}
    made = _core.own_rule("BatchNormalization", x[:1], x[1:], [None], args)  # type: ignore[arg-type]
    return _slopes(made[: len(grad_inputs)], own, grad_inputs, len(inputs))  # type: ignore[no-any-return]


def fused_gradients(
    here: str, gy: Variable, inputs: Given, y: Variable | None, nonlinearity: str = "relu", **args: Any
) -> list[Any]:
    """The gradients of `fused_batch_normalization` by x, beta, gamma and z."""
    from . import functions as F

    if nonlinearity != "relu":
        raise ArgumentError(message(here, "nonlinearity", "'relu'", describe(nonlinearity)))
    if y is None:
        raise ArgumentError(
            message(here, "outputs", "the output of the function, by which ReLU's gradient goes", "None")
        )
    gz = gy * F.greater_scalar(y, 0)
    return [*_core.own_rule("BatchNormalization", [gz], inputs, [None], args)[:3], gz]  # type: ignore[arg-type]


def fused_batch_normalization_backward(
    grad_inputs: Given,
    inputs: Given,
    input_shapes: Any,
    outputs: Given,
    output_shapes: Any,
    axes: Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
) -> tuple[Variable | None, ...]:
    """The rule of `fused_batch_normalization`, of its inputs x, beta, gamma, mean, variance and perhaps z."""
    args = {"axes": axes, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}
    here = "fused_batch_normalization_backward"
    gx, gbeta, ggamma, gz = fused_gradients(here, grad_inputs[0], inputs[:5], outputs[0], nonlinearity, **args)  # type: ignore[arg-type]
    return (gx, gbeta, ggamma, None, None, gz)[: len(inputs)]


def fused_batch_normalization_backward_backward(
    grad_inputs: Given,
    inputs: Given,
    input_shapes: Any,
    outputs: Given,
    output_shapes: Any,
    axes: Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
) -> tuple[Variable | None, ...]:
    """The rule of the gradients of `fused_batch_normalization` by x, beta, gamma and perhaps z.

    Their inputs are the gradient of y, x, beta, gamma, mean, variance, y and perhaps z.
    """
    own = {i: _apart(v) for i, v in enumerate(inputs) if v is not None and i in (0, 1, 3)}
    x = [own.get(i, v) for i, v in enumerate(inputs)]
    args = {"axes": axes, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}
    here = "fused_batch_normalization_backward_backward"
    made = fused_gradients(here, own[0], x[1:6], x[6], nonlinearity, **args)
    return _slopes(made[: len(grad_inputs)], own, grad_inputs, len(inputs))  # type: ignore[no-any-return]


def _rebuilt(function: Callable[..., Any], grad_inputs: Given, inputs: Given, statistics: Sequence[int] = ()) -> Any:
    """The gradients of a function of all inputs but the running statistics, of which it gets copies."""
    own = {i: _apart(v) for i, v in enumerate(inputs) if v is not None and i not in statistics}
    copies = {i: _apart(inputs[i]) for i in statistics if i < len(inputs) and inputs[i] is not None}  # type: ignore[arg-type]
    y = function(*((own | copies).get(i) for i in range(len(inputs))))
    return _slopes([y], own, grad_inputs, len(inputs))


def fused_convolution_backward(
    grad_inputs: Given,
    inputs: Given,
    input_shapes: Any,
    outputs: Given,
    output_shapes: Any,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    nonlinearity_args: Sequence[float] = (),
    pad_mode: str = "constant",
    constant_value: float = 0.0,
) -> Any:
    """The rule of `fused_convolution` (NNabla's is an error, and does not know the last two arguments)."""
    from . import functions as F

    args: dict[str, Any] = {"base_axis": base_axis, "pad": pad, "stride": stride, "dilation": dilation, "group": group}
    args |= {"channel_last": channel_last, "decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}
    args |= {"nonlinearity": nonlinearity, "nonlinearity_args": list(nonlinearity_args)}
    args |= {"pad_mode": pad_mode, "constant_value": constant_value}

    def function(*x: Any) -> Any:
        return F.fused_convolution(*x, **args)

    return _rebuilt(function, grad_inputs, inputs, statistics=(5, 6))


def sync_batch_normalization_backward(
    grad_inputs: Given,
    inputs: Given,
    input_shapes: Any,
    outputs: Given,
    output_shapes: Any,
    comm: Any,
    group: str | None = None,
    axes: Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
) -> Any:
    """The rule of `sync_batch_normalization`, of x, beta, gamma, mean and variance. All processes call it together."""
    from . import functions as F

    args: dict[str, Any] = {"comm": comm, "group": group or "world", "axes": axes}
    args |= {"decay_rate": decay_rate, "eps": eps, "batch_stat": batch_stat}

    def function(*x: Any) -> Any:
        return F.sync_batch_normalization(*x, **args)

    return _rebuilt(function, grad_inputs, inputs, statistics=(3, 4))


OTHERS: dict[str, Rule] = {
    "batch_normalization_backward": batch_normalization_backward_backward,
    "fused_batch_normalization": fused_batch_normalization_backward,
    "fused_batch_normalization_backward": fused_batch_normalization_backward_backward,
    "fused_convolution": fused_convolution_backward,
    "sync_batch_normalization": sync_batch_normalization_backward,
}
