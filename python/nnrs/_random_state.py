"""All random state of a process, to be kept and brought back: of nnrs, of NumPy's global generator and of `random`.

Random functions of the engine (`F.dropout`, `F.rand`, ...) draw from one stream, which is a key and a count of draws.
"""

from __future__ import annotations

import random as python_random
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _core, random
from ._errors import ArgumentError, ArgumentTypeError, FormatError, check_integer, describe, message

# (key, draws so far) of the engine's stream. Without them each checkpoint starts the stream anew: see `_engine_state`.
_stream: Callable[[], tuple[int, int]] | None = getattr(_core, "random_stream", None)
_set_stream: Callable[[int, int], None] | None = getattr(_core, "set_random_stream", None)


def state_of(generator: Any) -> dict[str, Any]:
    """What a generator of NumPy's or of `random`, or any with `get_state` and `set_state`, is at."""
    if isinstance(generator, np.random.Generator):
        return {"kind": "Generator", "state": generator.bit_generator.state}
    if isinstance(generator, np.random.RandomState):
        return {"kind": "RandomState", "state": generator.get_state(legacy=False)}
    if isinstance(generator, python_random.Random):
        version, numbers, gauss = generator.getstate()
        return {"kind": "Random", "state": (version, np.array(numbers, np.uint64), gauss)}
    if hasattr(generator, "get_state") and hasattr(generator, "set_state"):
        return {"kind": type(generator).__name__, "state": generator.get_state()}
    expected = "a random generator of NumPy's, or one with get_state() and set_state(state)"
    raise ArgumentTypeError(message("save", "generators", expected, describe(generator)))


def check_state(function: str, generator: Any, state: Mapping[str, Any], where: str) -> None:
    """Raise a FormatError unless `set_state` can take `state` for a generator."""
    now = state_of(generator)
    if not isinstance(state, Mapping) or _kind(state) != _kind(now):
        found = _kind(state) if isinstance(state, Mapping) else describe(state)
        hint = "the script that resumes has to make the generators that the other one had"
        raise FormatError(message(function, where, f"the state of a {_kind(now)}", found, hint))
    try:
        fresh = _fresh(generator)
        if fresh is not None:
            set_state(fresh, state)
    except Exception as error:
        text = f"the state of a {_kind(now)}: {type(error).__name__} {error}"
        raise FormatError(message(function, where, text)) from error


def _fresh(generator: Any) -> Any:
    """Another generator of that kind, to try a state with; None for a user's."""
    if isinstance(generator, np.random.Generator):
        return np.random.Generator(type(generator.bit_generator)())
    if isinstance(generator, np.random.RandomState):
        return np.random.RandomState(0)
    return python_random.Random() if isinstance(generator, python_random.Random) else None


def _kind(state: Mapping[str, Any]) -> str:
    inner = state.get("state")
    bits = inner.get("bit_generator") if isinstance(inner, Mapping) else None
    return f"{state.get('kind')} of {bits}" if bits else str(state.get("kind"))


def set_state(generator: Any, state: Mapping[str, Any]) -> None:
    """Bring a generator back to what `state_of` gave; the object stays, and so who shares it."""
    value = state["state"]
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = value
    elif isinstance(generator, python_random.Random):
        version, numbers, gauss = value
        generator.setstate((version, tuple(int(n) for n in numbers), gauss))
    else:
        generator.set_state(value)


def all_state(mark: str) -> dict[str, Any]:
    """The state of everything random that is not an object of the user's.

    Args:
        mark: Names this state among others, for engines that cannot tell their own.
    """
    return {
        "pseed": random.pseed,
        "prng": state_of(random.prng),
        "numpy": {"kind": "RandomState", "state": np.random.get_state(legacy=False)},
        "python": state_of(python_random._inst),  # type: ignore[attr-defined]
        "engine": _engine_state(mark),
    }


def _engine_state(mark: str) -> dict[str, int]:
    """The engine's stream; where it cannot be asked, a new one, which the run that goes on has from here on, too."""
    if _stream is not None:
        key, number = _stream()
        return {"key": key, "number": number}
    seed = zlib.crc32(f"{random.pseed} {mark}".encode()) >> 1
    _core.set_function_seed(seed)
    return {"key": seed, "number": 0}


def check_all(function: str, state: Any) -> None:
    """Raise a FormatError unless `set_all` can take `state`."""
    if not isinstance(state, Mapping):
        raise FormatError(message(function, "path", "a checkpoint with random state", describe(state)))
    check_state(function, random.prng, state.get("prng", {}), "nnrs.random.prng")
    check_state(function, np.random.mtrand._rand, state.get("numpy", {}), "numpy.random")  # type: ignore[attr-defined]
    check_state(function, python_random._inst, state.get("python", {}), "random")  # type: ignore[attr-defined]
    check_integer(function, "pseed", state.get("pseed"), 0)
    engine = state.get("engine", {})
    if not all(type(engine.get(part)) is int for part in ("key", "number")):
        raise FormatError(message(function, "path", "the key and number of the engine's stream", describe(engine)))
    if engine["number"] and _set_stream is None:
        raise ArgumentError(message(function, "path", "a checkpoint of this version of nnrs", "one of a later version"))


def set_all(state: Mapping[str, Any]) -> None:
    """Bring back what `all_state` gave."""
    random.pseed = state["pseed"]
    set_state(random.prng, state["prng"])
    np.random.set_state(state["numpy"]["state"])
    set_state(python_random._inst, state["python"])  # type: ignore[attr-defined]
    engine = state["engine"]
    if _set_stream is not None:
        _set_stream(engine["key"], engine["number"])
    else:
        _core.set_function_seed(engine["key"])
