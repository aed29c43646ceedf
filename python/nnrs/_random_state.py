"""All random state of a process, to be kept and brought back: of nnrs, of NumPy's global generator and of `random`.

Random functions of the engine (`F.dropout`, `F.rand`, ...) draw from one stream, which is a key and a count of draws.
"""

from __future__ import annotations

import random as python_random
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _core, random
from ._core import Function, Variable
from ._errors import ArgumentTypeError, FormatError, check_integer, describe, failures_as, message


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
    raise ArgumentTypeError(message("Checkpoints", "generators", expected, describe(generator)))


def check_state(function: str, generator: Any, state: Mapping[str, Any], where: str) -> None:
    """Raise a FormatError unless `set_state` can take `state` for a generator."""
    now = state_of(generator)
    if not isinstance(state, Mapping) or _kind(state) != _kind(now):
        found = _kind(state) if isinstance(state, Mapping) else describe(state)
        hint = "the script that resumes has to make the generators that the other one had"
        raise FormatError(message(function, where, f"the state of a {_kind(now)}", found, hint))

    def told(error: Exception) -> Exception:
        text = f"the state of a {_kind(now)}: {type(error).__name__} {error}"
        return FormatError(message(function, where, text))

    with failures_as(told):
        fresh = _fresh(generator)
        if fresh is not None:
            set_state(fresh, state)


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


def all_state() -> dict[str, Any]:
    """The state of everything random that is not an object of the user's."""
    key, number = _core.random_stream()
    return {
        "pseed": random.pseed,
        "prng": state_of(random.prng),
        "numpy": {"kind": "RandomState", "state": np.random.get_state(legacy=False)},
        "python": state_of(python_random._inst),  # type: ignore[attr-defined]
        "engine": {"key": key, "number": number},
    }


def check_all(function: str, state: Any) -> None:
    """Raise a FormatError unless `set_all` can take `state`."""
    if not isinstance(state, Mapping):
        raise FormatError(message(function, "path", "a checkpoint with random state", describe(state)))
    check_state(function, random.prng, state.get("prng", {}), "nnrs.random.prng")
    check_state(function, np.random.mtrand._rand, state.get("numpy", {}), "numpy.random")  # type: ignore[attr-defined]
    check_state(function, python_random._inst, state.get("python", {}), "random")  # type: ignore[attr-defined]
    check_integer(function, "pseed", state.get("pseed"), 0)
    engine = state.get("engine", {})
    if not _is_draw(engine.get("key"), engine.get("number")):
        raise FormatError(message(function, "path", "the key and number of the engine's stream", describe(engine)))


def _is_draw(key: Any, number: Any) -> bool:
    return all(type(part) is int and 0 <= part < 2**64 for part in (key, number))


def set_all(state: Mapping[str, Any]) -> None:
    """Bring back what `all_state` gave."""
    random.pseed = state["pseed"]
    set_state(random.prng, state["prng"])
    np.random.set_state(state["numpy"]["state"])
    set_state(python_random._inst, state["python"])  # type: ignore[attr-defined]
    _core.set_random_stream(state["engine"]["key"], state["engine"]["number"])


# --- functions with a seed of their own -------------------------------------------------------------------------------

_Draw = tuple[str, int, tuple[int, int] | None]  # a function's name, its seed, its last draw


def _seeded(y: Variable) -> list[Function]:
    """The functions of a graph that have a seed, in the order of a visit."""
    found: list[Function] = []

    def note(f: Function) -> None:
        seed = f.arguments.get("seed", -1)
        if isinstance(seed, int) and seed >= 0:
            found.append(f)

    y.visit(note)
    return found


def draws_of(y: Variable) -> list[_Draw]:
    """Which numbers the functions of a graph have drawn last, those that have a seed of their own."""
    return [(f.name, int(f.arguments["seed"]), f._draw) for f in _seeded(y)]


def check_draws(function: str, y: Variable, draws: Any, where: str) -> None:
    """Raise a FormatError unless `set_draws` can take `draws`."""
    here, there = [(name, seed) for name, seed, _ in draws_of(y)], [(name, seed) for name, seed, _ in draws]
    if here != there or not all(draw is None or _is_draw(*draw) for _, _, draw in draws):
        hint = "the script that resumes has to build the same graphs"
        raise FormatError(message(function, where, f"a graph whose functions with a seed are {here}", there, hint))


def set_draws(y: Variable, draws: list[_Draw]) -> None:
    """Bring back what `draws_of` gave."""
    for f, (_, _, draw) in zip(_seeded(y), draws, strict=True):
        f._draw = draw
