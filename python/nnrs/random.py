"""Random state: the NumPy generator behind the initializers, and the seed of random functions (dropout, rand, ...)."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _calls, _core, _forks
from ._errors import ArgumentError, ArgumentTypeError, describe, message

pseed: int = 313
"""Seed that `prng` was made with."""

if TYPE_CHECKING:
    prng: np.random.RandomState
    """Generator of initial parameter values. Read it as `nnrs.random.prng`: seeding puts a new one in its place."""


def __getattr__(name: str) -> Any:
    if name == "prng":  # made when first asked for: importing numpy.random takes 9 ms
        return globals().setdefault("prng", _guard(np.random.RandomState(pseed)))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


_own = threading.RLock()  # while another generator takes the place of `prng`, or is added to these:
_drawing: weakref.WeakSet[Any] = weakref.WeakSet()  # what threads hold while they draw from a generator


def _guard(generator: Any) -> Any:
    """Let forks wait for threads that draw from a generator of NumPy's, which is given back."""
    bits: Any = getattr(generator, "_bit_generator", None) or getattr(generator, "bit_generator", None)
    with _own:
        _drawing.update([bits.lock] if hasattr(bits, "lock") else [])
    return generator


def _held_by_draws() -> list[Any]:
    if threading.active_count() > 1:
        __getattr__("prng")  # no other thread may be importing it
    return list(_drawing)


_forks.hold(_held_by_draws)
_forks.hold(lambda: [_own])  # taken first


def set_function_seed(seed_value: int) -> None:
    """Seed the random functions of the engine (`F.dropout`, `F.rand`, ...).

    Args:
        seed_value: Integer from 0 to 2**31 - 1, or -1 for a seed that differs from run to run.

    >>> set_function_seed(7)
    """
    _core.set_function_seed(_checked("set_function_seed", seed_value, 2**31 - 1, least=-1))


def set_parameter_seed(seed_value: int) -> None:
    """Seed the generator of initial parameter values.

    Args:
        seed_value: Integer from 0 to 2**32 - 1.

    >>> import nnrs.random
    >>> nnrs.random.set_parameter_seed(313)
    >>> round(nnrs.random.prng.rand(), 6)
    0.16554
    """
    global prng, pseed
    value = _checked("set_parameter_seed", seed_value, 2**32 - 1)
    new = _guard(np.random.RandomState(value))
    with _own:
        pseed, prng = value, new


def seed(seed_value: int, set_function_seed: bool = True, set_parameter_seed: bool = True) -> None:
    """Seed everything random: parameter values and random functions.

    Args:
        seed_value: Integer from 0 to 2**31 - 1.
        set_function_seed: Whether to seed the random functions.
        set_parameter_seed: Whether to seed the initial parameter values.

    >>> seed(313)
    """
    value = _checked("seed", seed_value, 2**31 - 1 if set_function_seed else 2**32 - 1)
    if set_parameter_seed:
        globals()["set_parameter_seed"](value)
    if set_function_seed:
        globals()["set_function_seed"](value)


def _checked(function: str, value: int, most: int, least: int = 0) -> int:
    if not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(message(function, "seed_value", "an integer", describe(value)))
    if not least <= value <= most:
        raise ArgumentError(message(function, "seed_value", f"an integer from {least} to {most}", value))
    return int(value)


_calls.check_functions(globals())
