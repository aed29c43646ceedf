"""Recomputation: intermediate data is dropped in forward and computed again, once, just before backward reads it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _calls, _core
from ._errors import check_flag
from ._modes import ModeScope


def get_global_recompute() -> bool:
    """Whether the outputs of new functions are marked for recomputation.

    >>> get_global_recompute()
    False
    """
    return _core.get_recompute()


def set_global_recompute(recompute: bool) -> None:
    """Mark the outputs of new functions for recomputation, or stop doing so: in all threads, as in NNabla."""
    _core.set_recompute(check_flag("set_global_recompute", "recompute", recompute))


def recompute(recompute_: bool = True) -> ModeScope[None]:
    """Within the `with` block, outputs of new functions have `Variable.recompute` set.

    In a static graph their data is dropped after its last use in forward, whatever the clear flags say, but for
    persistent variables and the one that forward is called on. In a dynamic graph it is dropped as soon as no handle
    to the variable is left. Backward computes it again, once, with the same random numbers; running statistics are
    not updated a second time.

    >>> import nnrs as nn
    >>> x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    >>> with nn.recompute():
    ...     h = nn.functions.exp(x)
    >>> h.recompute
    True
    """
    return ModeScope(
        _core.own_recompute, _core.set_own_recompute, lambda: (check_flag("recompute", "recompute_", recompute_), None)
    )


def recompute_fn(recompute_: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the function body runs within `recompute`.

    >>> import nnrs as nn
    >>> @recompute_fn()
    ... def block(x):
    ...     return nn.functions.sin(nn.functions.exp(x))
    >>> block(nn.Variable((2,))).recompute
    True
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kw: Any) -> Any:
            with recompute(recompute_):
                return function(*args, **kw)

        return wrapped

    return decorate


def forget(func: Callable[..., Any], *xs: Any, **kw: Any) -> Any:
    """Call `func` without keeping what it computes on the way, as Chainer's `forget` does.

    Backward computes the inside again just before it is needed, and drops it again: memory for time. `func` itself is
    called once; what runs a second time are the functions that it recorded, so dropout draws the same numbers again,
    parameters used inside get their gradients, and the gradient can be differentiated again. Calls nest, and work in
    static graphs and under `auto_forward`. `nnrs.config.in_recomputing` is True while functions run a second time.

    Args:
        func: Takes Variables (and whatever else it likes); returns a Variable, or a tuple or list of some.
        xs: Its arguments. NumPy arrays and NdArrays become Variables; anything else is passed on as it is.
        kw: Keyword arguments, likewise.

    Returns:
        What `func` returns.

    Raises:
        TypeError: If `func` cannot be called, or returns something else.

    >>> import numpy as np
    >>> import nnrs as nn
    >>> import nnrs.functions as F
    >>> x = nn.Variable.from_numpy_array(np.ones((2, 3), "float32"), need_grad=True)
    >>> y = F.forget(lambda v: F.exp(F.sin(v)), x)
    >>> y.forward()
    >>> y.backward()
    """
    from ._errors import ArgumentTypeError, describe, message

    if not callable(func):
        raise ArgumentTypeError(message("forget", "func", "a callable", describe(func)))
    outer = _core.get_recompute()
    with recompute():
        ys = func(*map(_variable, xs), **{k: _variable(v) for k, v in kw.items()})
    for y in ys if isinstance(ys, (tuple, list)) else (ys,):
        if not isinstance(y, _core.Variable):
            raise ArgumentTypeError(message("forget", "func", "a function that returns Variables", describe(y)))
        if y.parent is not None:
            y.recompute = outer
    return ys


def _variable(x: Any) -> Any:
    import numpy as np

    if isinstance(x, np.ndarray):
        return _core.Variable.from_numpy_array(x)
    if isinstance(x, _core.NdArray):
        v = _core.Variable(x.shape)
        v.data = x
        return v
    return x


_calls.check_functions(globals())
