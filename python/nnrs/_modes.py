"""Modes of the current thread, hooks, and running several variables at once."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _calls, _core
from ._core import Context, Variable, get_auto_forward, get_current_context
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_callable,
    check_flag,
    check_list,
    check_switch,
    check_type,
    describe,
    is_of_user_code,
    message,
)

__all__ = ["get_auto_forward", "get_current_context"]

T = TypeVar("T")


class ModeScope(_core.ModeScope, contextlib.ContextDecorator, Generic[T]):
    """A `with`, or a decorator, that sets something and takes it back, also where a signal's handler raises.

    Args:
        get: Gives what is set. It and `set` are compiled: see src/python/mode_scope.rs.
        set: Sets it.
        make: Gives what to set, and what the block gets by `as`.
    """

    def __init__(self, get: Callable[[], Any], set: Callable[[Any], Any], make: Callable[[], tuple[Any, T]]) -> None:
        self._how = (get, set, make)

    if TYPE_CHECKING:

        def __enter__(self) -> T: ...

    def _recreate_cm(self) -> ModeScope[T]:
        return ModeScope(*self._how)


def forward_all(
    variables: Sequence[Variable],
    clear_buffer: bool = False,
    clear_no_need_grad: bool = False,
    function_pre_hook: Callable[[Any], None] | None = None,
    function_post_hook: Callable[[Any], None] | None = None,
) -> None:
    """Run the graphs behind several variables in one pass; what they share runs once.

    Args:
        variables: The variables to compute.
        clear_buffer: Drop data between the leaves and the variables as soon as it is used.
        clear_no_need_grad: Drop data that the backward pass does not read.
        function_pre_hook: Called with each function before it runs.
        function_post_hook: Called with each function after it ran.
    """
    here = "forward_all"
    given = check_list(here, "variables", variables, Variable, "Variables")
    flags = check_flag(here, "clear_buffer", clear_buffer), check_flag(here, "clear_no_need_grad", clear_no_need_grad)
    _core.forward_all(given, *flags, function_pre_hook, function_post_hook)


def set_auto_forward(auto: bool) -> None:
    """Compute functions as soon as they are applied (dynamic graphs), or only on `forward` (static graphs).

    In all threads, as in NNabla; in a thread within a `with auto_forward()` of its own, in that block alone.
    """
    _core.set_auto_forward(check_flag("set_auto_forward", "auto", auto))


def auto_forward(auto: bool = True) -> ModeScope[None]:
    """Dynamic graphs within the `with` block, in this thread.

    >>> import nnrs as nn
    >>> with nn.auto_forward():
    ...     y = nn.Variable.from_numpy_array([1.0, 2.0]) * 2
    >>> y.d.tolist()
    [2.0, 4.0]
    """
    return ModeScope(
        _core.own_auto_forward,
        _core.set_own_auto_forward,
        lambda: (check_flag("auto_forward", "auto", auto), None),
    )


def no_grad(no_grad_: bool = True) -> ModeScope[None]:
    """Within the `with` block, new variables need no gradient and keep nothing for one."""
    return ModeScope(
        _core.no_grad_active, _core.set_no_grad, lambda: (check_flag("no_grad", "no_grad_", no_grad_), None)
    )


def _check_context(function: str, ctx: Any) -> None:
    if not isinstance(ctx, Context):
        hint = "nnrs.ext_utils.get_extension_context('cpu') makes one"
        raise ArgumentTypeError(message(function, "ctx", "a Context", describe(ctx), hint))


def set_default_context(ctx: Context) -> None:
    """Run the functions made from now on in `ctx`.

    In all threads, as in NNabla; in a thread within a `with context_scope()` of its own, in that block alone.
    """
    _check_context("set_default_context", ctx)
    _core.set_context(ctx)


def context_scope(ctx: Context) -> ModeScope[None]:
    """Run the functions made within the `with` block in `ctx`, in this thread."""

    def made() -> tuple[Context, None]:
        _check_context("context_scope", ctx)
        return ctx, None

    return ModeScope(_core.own_context, _core.set_own_context, made)


class ThreadModes:
    """The modes of the thread that makes it, for one that works for it."""

    def __init__(self) -> None:
        self._auto, self._context, self._recompute = get_auto_forward(), get_current_context(), _core.get_recompute()

    def take_over(self) -> None:
        """Let the thread that calls this have them."""
        _core.set_own_auto_forward(self._auto)
        _core.set_own_context(self._context)
        _core.set_own_recompute(self._recompute)


def _check_hook(function: str, key: Any, argument: str, hook: Any) -> None:
    check_type(function, "key", key, str, "a name as a str")
    check_callable(function, argument, hook)


def set_function_pre_hook(key: str, function_pre_hook: Callable[[Any], None]) -> None:
    """Call a hook with each function before it runs, in every run, until `unset_function_pre_hook(key)`."""
    _check_hook("set_function_pre_hook", key, "function_pre_hook", function_pre_hook)
    _core.set_function_hook(True, key, function_pre_hook)


def set_function_post_hook(key: str, function_post_hook: Callable[[Any], None]) -> None:
    """Call a hook with each function after it ran, in every run, until `unset_function_post_hook(key)`."""
    _check_hook("set_function_post_hook", key, "function_post_hook", function_post_hook)
    _core.set_function_hook(False, key, function_post_hook)


def unset_function_pre_hook(key: str) -> None:
    """Remove a hook set by `set_function_pre_hook`."""
    check_type("unset_function_pre_hook", "key", key, str, "a name as a str")
    _core.unset_function_hook(True, key)


def unset_function_post_hook(key: str) -> None:
    """Remove a hook set by `set_function_post_hook`."""
    check_type("unset_function_post_hook", "key", key, str, "a name as a str")
    _core.unset_function_hook(False, key)


def set_solver_pre_hook(key: str, solver_pre_hook: Callable[[], None]) -> None:
    """Call a hook, without arguments, before a solver works on a parameter, until `unset_solver_pre_hook(key)`."""
    _check_hook("set_solver_pre_hook", key, "solver_pre_hook", solver_pre_hook)
    _core.set_solver_hook(True, key, solver_pre_hook)


def set_solver_post_hook(key: str, solver_post_hook: Callable[[], None]) -> None:
    """Call a hook, without arguments, after a solver worked on a parameter, until `unset_solver_post_hook(key)`."""
    _check_hook("set_solver_post_hook", key, "solver_post_hook", solver_post_hook)
    _core.set_solver_hook(False, key, solver_post_hook)


def unset_solver_pre_hook(key: str) -> None:
    """Remove a hook set by `set_solver_pre_hook`."""
    check_type("unset_solver_pre_hook", "key", key, str, "a name as a str")
    _core.unset_solver_hook(True, key)


def unset_solver_post_hook(key: str) -> None:
    """Remove a hook set by `set_solver_post_hook`."""
    check_type("unset_solver_post_hook", "key", key, str, "a name as a str")
    _core.unset_solver_hook(False, key)


def set_num_threads(n: int) -> None:
    """Let the runs to come use `n` threads, the calling one included; at most 1024.

    The environment variables NNRS_NUM_THREADS and OMP_NUM_THREADS set the number from the start.

    Raises:
        ValueError: If `n` is less than 1.
        TypeError: If `n` is no integer.
    """
    _core.set_num_threads(min(whole_number("set_num_threads", "n", n, least=1), 1024))


def whole_number(function: str, argument: str, value: Any, least: int) -> int:
    """`value` as an int; an error if it is none, or less than `least`."""
    try:
        n = operator.index(value)
    except TypeError as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(function, argument, "an integer", describe(value))) from None
    if n < least:
        raise ArgumentError(message(function, argument, f"{least} or more", n))
    return n


def set_exact_convolution(on: bool) -> bool:
    """Do convolutions as sums of products, without transforms that round more (off unless told); gives the old setting.

    Convolutions of 3x3 kernels, or of three taps in a row, with stride 1 in float32 on the CPU otherwise go by
    Winograd's F(4x4, 3x3) or F(4, 3) where that is faster: the error's root of the mean square is below 2e-6 of the
    output's, the largest error below 2e-5 of it (a few 1e-5 where neighbouring points or weights differ by orders of
    magnitude). The environment variable NNRS_EXACT_CONVOLUTION=1 turns the setting on from the start; functions with a
    context whose backend ends in ':exact' (`nn.Context(["cpu:float:exact"])`) are done so whatever it says.

    Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016.
    """
    return _core.set_exact_convolution(check_switch("set_exact_convolution", "on", on))


def set_fusion(on: bool) -> bool:
    """Run neighbouring functions as one (the default), or each alone; gives the old setting.

    They are element-wise functions, and convolutions with what comes after them. Results are the same to the bit, but
    for sign and payload of a NaN. The environment variable NNRS_FUSION=0 turns it off from the start.
    """
    return _core.set_fusion(check_switch("set_fusion", "on", on))


_calls.check_functions(globals())
