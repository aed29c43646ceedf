"""Functions of the graph as objects, and functions of your own in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _core
from ._core import Context, Function, NdArray, Variable
from ._missing import missing_name
from ._modes import auto_forward as auto_forward_mode
from ._modes import context_scope, get_auto_forward, get_current_context

__all__ = ["Function", "Info", "PythonFunction", "UnsafeVariable"]

UnsafeVariable = Variable
"""What the methods of a `PythonFunction` get: in nnrs Variables, which share data and gradient with the graph's."""


_CONVOLUTION = "base_axis pad stride dilation group channel_last"
# Makers of functions that Python makes, most of them graphs of others, with NNabla's arguments.
_GRAPHS = {
    "FusedBatchNormalization": ("fused_batch_normalization", "axes decay_rate eps batch_stat nonlinearity"),
    "FusedConvolution": (
        "fused_convolution",
        f"{_CONVOLUTION} decay_rate eps batch_stat nonlinearity nonlinearity_args pad_mode constant_value",
    ),
    "SyncBatchNormalization": ("sync_batch_normalization", "comm group axes decay_rate eps batch_stat"),
}


def __getattr__(name: str) -> Any:
    if name in ("ProtoFunction", "ProtoVariable"):
        from .core import graph_def

        return getattr(graph_def, name)
    found = maker_of(name)
    if found is None:
        raise missing_name(__name__, name)
    return found


def maker_of(type_name: str) -> Callable[..., FunctionCall] | None:
    """NNabla's maker of functions of a type, as `Affine(ctx, base_axis)`; None if there is no such type.

    >>> maker_of("Affine").__name__, maker_of("Any")
    ('Affine', None)
    """
    if type_name in _GRAPHS:
        function, parameters = _GRAPHS[type_name]
        return _maker(type_name, function, parameters.split())
    entry = _entry(type_name)
    return None if entry is None else _maker(type_name, entry["name"], list(_own_names(entry).values()))


@functools.cache
def _entry(type_name: str) -> Any:
    """What the registry has of a type; None if it is not there."""
    return next((entry for entry in _core.registry() if entry["class_name"] == type_name), None)


# NNabla's names of arguments and inputs, where nnrs.functions has others.
_RENAMED = {
    **dict.fromkeys(("max", "mean", "min", "norm", "prod", "sum"), {"axis": "axes", "keepdims": "keep_dims"}),
    "gather_nd": {"data": "x"},
    "mean_subtraction": {"mean": "rmean"},
}
# Arguments that NNabla has not: it knows them from the inputs, or from how many outputs are asked for.
_COUNTED, _STATISTICS = ("rows", "places", "sequences", "count"), "output_stat"


def _own_names(entry: Any) -> dict[str, str]:
    """The registry's names of the arguments that NNabla's maker has, and NNabla's names of these."""
    renamed = _RENAMED.get(entry["name"], {})
    own = (arg[0] for arg in entry["args"] if arg[0] not in (*_COUNTED, _STATISTICS))
    return {name: renamed.get(name, name) for name in own}


def _maker(class_name: str, function: str, parameters: list[str]) -> Callable[..., FunctionCall]:
    signature = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("ctx", *parameters)]
    )

    def make(*args: Any, **kwargs: Any) -> FunctionCall:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as e:
            raise TypeError(f"{class_name}{signature}: {e}") from None
        ctx = given.pop("ctx")
        if not isinstance(ctx, Context):
            raise TypeError(f"{class_name}: argument 'ctx' is a Context, not {type(ctx).__name__}")
        return FunctionCall(class_name, given, ctx, function)

    make.__name__ = make.__qualname__ = class_name
    make.__doc__ = f"`nnrs.functions.{function}` with all its arguments given, to be called with its inputs."
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


@dataclass
class FunctionCall:
    """A function of the library with its arguments, to be called with its inputs.

    >>> import numpy as np, nnrs as nn
    >>> leaky = nn.function.LeakyReLU(nn.get_current_context(), 0.5, False)
    >>> y = leaky(nn.Variable.from_numpy_array(np.float32([-2, 2])))
    >>> y.forward()
    >>> y.d
    array([-1.,  2.], dtype=float32)
    """

    name: str
    arguments: dict[str, Any]
    context: Context
    _function: str = field(repr=False)

    def __call__(self, *inputs: Any, n_outputs: int = -1, auto_forward: bool = False, outputs: Any = None) -> Any:
        """Apply the function to its inputs, without those that its arguments leave out (`no_bias`).

        With more than one of `n_outputs` a normalization gives its statistics, too; `outputs` are taken where the
        function takes them.
        """
        with context_scope(self.context), auto_forward_mode(auto_forward or get_auto_forward()):
            entry = _entry(self.name)
            if entry is None or any(arg[0] in _COUNTED for arg in entry["args"]):
                from . import functions

                more = {} if outputs is None else {"outputs": outputs}
                if n_outputs > 1 and self._function.endswith("batch_normalization"):
                    more[_STATISTICS] = True
                return getattr(functions, self._function)(*inputs, **self.arguments, **more)
            given = {own: self.arguments[name] for own, name in _own_names(entry).items()}
            given[_STATISTICS] = n_outputs > 1
            arguments = tuple(given[arg[0]] for arg in entry["args"])
            return _core.call(_core.function_index(entry["name"]), inputs, arguments, n_outputs, outputs)


@dataclass
class Info:
    """What a function of the graph is called and was called with.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.leaky_relu(nn.Variable((2,)), alpha=0.5).parent.info.type_name
    'LeakyReLU'
    """

    type_name: str
    args: dict[str, Any] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.type_name)


class PythonFunction:
    """Base of functions whose setup, forward and backward are Python methods.

    A subclass has a `name` and the methods below; calling an instance with Variables makes a function of the graph,
    with an NdArray among them it is computed at once. The methods get lists of Variables that share data and gradient
    with the graph's (`.d`, `.g`, `.data`, `.grad`, `.shape`), on the thread that runs the graph. What they raise comes
    out of the call, `forward` or `backward` that ran them. They may run other graphs, but not the one they are part of.

    Derivatives through `nn.grad` need the gradient as a graph: `nnrs.backward_functions.register(name, rule)`.

    An instance may keep a Variable that was made with it (`self.y = self(x)`): the garbage collector finds that cycle.
    One that keeps several of the same graph is freed when it lets go of all but one.

    >>> import nnrs as nn
    >>> class Square(PythonFunction):
    ...     name = "Square"
    ...     def min_outputs(self):
    ...         return 1
    ...     def setup_impl(self, inputs, outputs):
    ...         outputs[0].reset_shape(inputs[0].shape, True)
    ...     def forward_impl(self, inputs, outputs):
    ...         outputs[0].d = inputs[0].d ** 2
    ...     def backward_impl(self, inputs, outputs, propagate_down, accum):
    ...         if propagate_down[0]:
    ...             g = 2 * inputs[0].d * outputs[0].g
    ...             inputs[0].g = inputs[0].g + g if accum[0] else g
    ...     def grad_depends_input_data(self, i, j):
    ...         return True
    ...     def grad_depends_output_data(self, i, o):
    ...         return False
    >>> x = nn.Variable.from_numpy_array([1.0, 2.0, 3.0], need_grad=True)
    >>> y = Square()(x)
    >>> y.forward()
    >>> y.d.tolist()
    [1.0, 4.0, 9.0]
    >>> y.backward()
    >>> x.g.tolist()
    [2.0, 4.0, 6.0]
    """

    _ctx: Context | None = None

    def __init__(self, ctx: Context | None = None) -> None:
        """Keep the context for the function; by default the current one at each call."""
        self._ctx = ctx

    def __call__(
        self, *inputs: Variable | NdArray, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None
    ) -> Any:
        """Apply the function.

        Args:
            inputs: At least one Variable or NdArray.
            n_outputs: How many outputs; `min_outputs()` by default.
            outputs: NdArrays that hold the outputs' data.

        Returns:
            A Variable (an NdArray where an input is one), or a tuple of them where there are several outputs.
        """
        given = None if outputs is None else list(outputs)
        if self._ctx is None:
            return _core.call_python_function(self, inputs, n_outputs, given)
        with context_scope(self._ctx):
            return _core.call_python_function(self, inputs, n_outputs, given)

    @property
    def ctx(self) -> Context:
        """The context given to the constructor, or the current one."""
        return get_current_context() if self._ctx is None else self._ctx

    @property
    def name(self) -> str:
        """The name of the function: what `y.parent.name` says and gradient rules are registered under."""
        raise NotImplementedError("Implement `name`.")

    def min_outputs(self) -> int:
        """How many outputs the function has, where the call does not say (`n_outputs`)."""
        raise NotImplementedError("Implement `min_outputs`.")

    def setup_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        """Check the inputs and give the outputs their shapes, by `outputs[0].reset_shape(shape, True)`.

        Called when the function is applied, and again before a run in which an input has another shape.
        """
        raise NotImplementedError("Implement `setup_impl`.")

    def forward_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        """Write the data of the outputs. Called again for the same data where it is recomputed."""
        raise NotImplementedError("Implement `forward_impl`.")

    def backward_impl(
        self, inputs: list[Variable], outputs: list[Variable], propagate_down: list[bool], accum: list[bool]
    ) -> None:
        """Write the gradient of each input for which `propagate_down` is true, or add to it where `accum` is true."""
        raise NotImplementedError("Implement `backward_impl`.")

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        """Whether the gradient of input `i` reads the data of input `j`; what none reads may be dropped in forward."""
        raise NotImplementedError("Implement `grad_depends_input_data`.")

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        """Whether the gradient of input `i` reads the data of output `o`."""
        raise NotImplementedError("Implement `grad_depends_output_data`.")
