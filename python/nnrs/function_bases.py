"""The function library as NNabla registers it: what `nnrs.functions` has, without what it adds in Python.

Most functions are those of `nnrs.functions`. The normalizations differ: they take `no_scale` and `no_bias`, and give
the statistics, too, where more than one output is asked for (`n_outputs`). Reductions call their arguments `axes` and
`keep_dims`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from . import _core, functions
from . import function as F
from ._calls import misfit
from ._errors import ArgumentError, Error, message
from ._missing import missing_name
from .auto_forward import get_auto_forward
from .context import get_current_context
from .function import _RENAMED

__all__ = ["F", "function_api", "get_auto_forward", "get_current_context"]

# In `nnrs.functions` they have another order of arguments or none of NNabla's `outputs`.
_AS_REGISTERED = (
    "fixed_point_quantize interpolate istft min_max_quantize norm_normalization "
    "patch_correlation pow2_quantize quantize_linear scatter_nd spectral_norm stft"
).split()
_WITH_STATISTICS = (
    "batch_normalization fused_batch_normalization group_normalization instance_normalization layer_normalization "
    "sync_batch_normalization tensor_normalization weight_standardization".split()
)
_LEFT_OUT = {"no_bias": "beta", "no_scale": "gamma"}
_IN_PYTHON = ["fused_batch_normalization", "fused_convolution", "sync_batch_normalization"]


def function_api(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of functions whose first argument is a context: that of the call is the current one.

    Args:
        func: Function with `ctx` as its first argument.

    Raises:
        ValueError: If there is no argument `ctx`.

    >>> @function_api
    ... def backend_of(ctx, x):
    ...     return ctx.backend
    >>> backend_of(1), str(inspect.signature(backend_of))
    (['cpu:float'], '(x)')
    """
    signature = inspect.signature(func)
    if next(iter(signature.parameters), None) != "ctx":
        raise ArgumentError(message("function_api", "func", "a function with 'ctx' as its first argument", signature))

    @functools.wraps(func)
    def call(*args: Any, **kw: Any) -> Any:
        return func(get_current_context(), *args, **kw)

    parameters = list(signature.parameters.values())[1:]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__function_api_base__ = func  # type: ignore[attr-defined]
    return call


def _without_statistics(function: Callable[..., Any]) -> inspect.Signature:
    """The signature without `output_stat`, and with `n_outputs` and `outputs`."""
    own = inspect.signature(function)
    parameters = [p for name, p in own.parameters.items() if name not in ("output_stat", "n_outputs", "outputs")]
    for name, default in (("n_outputs", -1), ("outputs", None)):
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return own.replace(parameters=parameters)


def _by_count(name: str) -> Callable[..., Any]:
    """A normalization that gives the statistics if more than one output is asked for."""
    known = {f["name"]: f for f in _core.registry()}.get(name)
    function = getattr(functions, f"_{name}" if known else name)
    signature = _without_statistics(function)

    @functools.wraps(function)
    def call(*args: Any, **kw: Any) -> Any:
        if refused := misfit(call, name, args, kw):
            raise refused
        bound = signature.bind(*args, **kw)
        bound.apply_defaults()
        given = bound.arguments
        n_outputs, outputs = given.pop("n_outputs"), given.pop("outputs")
        given["output_stat"] = n_outputs is not None and n_outputs > 1
        if known is None:
            return function(**given)
        given.update({flag: given.get(flag) or given.get(v) is None for flag, v in _LEFT_OUT.items()})
        inputs = tuple(v for v in (given[i[0]] for i in known["inputs"]) if v is not None)
        return _core.call(index, inputs, tuple(given[a[0]] for a in known["args"]), n_outputs, outputs)

    index = _core.function_index(name)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _renamed(function: Callable[..., Any], names: dict[str, str]) -> Callable[..., Any]:
    """The function with other names of its arguments."""
    back = {new: old for old, new in names.items()}
    own = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kw: Any) -> Any:
        return function(*args, **{back.get(k, k): v for k, v in kw.items()})

    parameters = [p.replace(name=names.get(name, name)) for name, p in own.parameters.items()]
    call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def _registered(name: str) -> Callable[..., Any]:
    """The function as the registry has it, where another one in Python stands before it."""
    function = getattr(functions, f"_{name}")

    @functools.wraps(function)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return function(*args, **kw)
        except TypeError as error:
            refused = None if isinstance(error, Error) else misfit(call, name, args, kw)
            if refused is None:
                raise
        raise refused

    call.__name__ = name
    return call


def _base(name: str) -> Callable[..., Any]:
    if name in _WITH_STATISTICS:
        return _by_count(name)
    if name in _RENAMED:
        return _renamed(getattr(functions, name), _RENAMED[name])
    return _registered(name) if name in _AS_REGISTERED else getattr(functions, name)  # type: ignore[no-any-return]


for _name in sorted([*(f["name"] for f in _core.registry()), *_IN_PYTHON]):
    globals()[_name] = _base(_name)
    __all__.append(_name)


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name)
