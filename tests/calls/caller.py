"""One process of random calls: prints the number of each call before it is made, so that the last one is known."""

from __future__ import annotations

import contextlib
import inspect
import io
import random
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.initializer as I
import nnrs.parametric_functions as PF
import nnrs.solvers as S

# Not called: what waits, prints for ever, or changes what the calls after it see (the process is for many).
LEFT_OUT = {"set_num_threads", "set_limit", "install", "memory_set_limit", "set_poison", "set_default_context", "wait"}
SHAPES: list[tuple[int, ...]] = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (2, 3),
    (3, 3),
    (2, 3, 4, 4),
    (0, 3),
    (1, 2, 3, 3),
    (2, 0, 2),
]
ALLOWED = (
    nn.Error,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    MemoryError,
    RuntimeError,
    ImportError,
    OSError,
    StopIteration,
    AssertionError,
    ZeroDivisionError,
)


class Odd:
    """An object that is nothing, and fails where it is asked."""

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __len__(self) -> int:
        return -1


def array(rng: random.Random, shape: tuple[int, ...] | None = None) -> np.ndarray:
    shape = rng.choice(SHAPES) if shape is None else shape
    a = np.random.default_rng(rng.randrange(1000)).normal(size=shape)
    a = np.asarray(3 * a)
    a = a.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "?", "f2"]))
    if a.size and a.dtype.kind == "f" and rng.random() < 0.2:
        a.flat[0] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
    return a


def variable(rng: random.Random, shape: tuple[int, ...] | None = None) -> nn.Variable:
    v = nn.Variable.from_numpy_array(array(rng, shape), need_grad=rng.choice([None, True, False]))
    for _ in range(rng.randrange(3)):
        with contextlib.suppress(nn.Error):
            v = rng.choice([F.exp, F.tanh, F.identity, F.sum])(v)
    return v


def number(rng: random.Random) -> Any:
    whole = [0, 1, 2, 3, -1, -2, 5, 7, 255, 2**31, -(2**31) - 1, 2**40, 2**63, -(2**63), 2**64, 10**30]
    other = [0.5, -1.5, 1e300, float("nan"), float("inf"), True, False, np.int64(2), np.float32(0.5), np.bool_(True)]
    return rng.choice(whole + other)


def value(rng: random.Random, depth: int = 0) -> Any:
    """Anything: most often something that is likely to be taken."""
    makers: list[Callable[[], Any]] = [
        lambda: variable(rng),
        lambda: variable(rng),
        lambda: nn.NdArray.from_numpy_array(array(rng)),
        lambda: array(rng),
        lambda: number(rng),
        lambda: number(rng),
        lambda: rng.choice(SHAPES),
        lambda: rng.choice([None, "", "x", "float", "\0", b"b", {}, Odd(), object(), ..., slice(0, 2), nn, len]),
        lambda: rng.choice([lambda *a: None, lambda *a: 1 / 0, nn.Context(["cpu:float"]), np.dtype("f4")]),
    ]
    if depth < 2:
        inside = lambda: [value(rng, depth + 1) for _ in range(rng.randrange(4))]  # noqa: E731
        makers += [inside, lambda: tuple(inside()), lambda: {"x": value(rng, depth + 1)}]
    return rng.choice(makers)()


def public(of: Any) -> list[str]:
    names = getattr(of, "__all__", None) or dir(of)
    return sorted(n for n in names if n not in LEFT_OUT and not n.startswith("_"))


def target(rng: random.Random) -> tuple[str, Any]:
    """A function, class or method, or a member to be set."""
    group = rng.choice(["F", "F", "F", "PF", "S", "I", "nn", "memory", "method", "method", "set"])
    if group in ("method", "set"):
        made = rng.choice(
            [
                lambda: variable(rng),
                lambda: nn.NdArray.from_numpy_array(array(rng)),
                lambda: F.add2(variable(rng), 1.0).parent,
                lambda: rng.choice([S.Sgd, S.Adam])(),
                lambda: nn.Context(),
            ]
        )()
        special = ["__getitem__", "__setitem__", "__add__", "__matmul__", "__pow__", "__eq__", "__len__", "__iter__"]
        names = public(made) + [n for n in special if hasattr(type(made), n)]
        name = rng.choice(names)
        if group == "set":
            return f"{type(made).__name__}.{name} =", lambda v=None, *a, **k: setattr(made, name, v)
        return f"{type(made).__name__}.{name}", getattr(made, name)
    module = {"F": F, "PF": PF, "S": S, "I": I, "nn": nn, "memory": nn.memory}[group]
    name = rng.choice(public(module))
    return f"{group}.{name}", getattr(module, name)


def arguments(rng: random.Random, f: Any) -> tuple[list[Any], dict[str, Any]]:
    """As many as it takes, or some."""
    try:
        parameters = [p for p in inspect.signature(f).parameters.values() if p.kind is not p.VAR_KEYWORD]
    except (TypeError, ValueError):
        return [value(rng) for _ in range(rng.randrange(4))], {}
    needed = [p for p in parameters if p.default is p.empty]
    alike = rng.choice(SHAPES) if rng.random() < 0.6 else None
    wild = rng.choice([0, 0, 0.3])
    given = [value(rng) if rng.random() < wild else fitting(rng, p.name, alike) for p in needed]
    optional = [p for p in parameters if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
    chosen = rng.sample(optional, min(len(optional), rng.randrange(4)))
    if rng.random() < 0.1:
        given = given[: rng.randrange(len(given) + 1)] + [value(rng)]
    return given, {p.name: value(rng) if rng.random() < wild else like(rng, p.default, alike) for p in chosen}


def fitting(rng: random.Random, name: str, shape: tuple[int, ...] | None) -> Any:
    """What an argument of that name may want."""
    small = [rng.randrange(-1, 4) for _ in range(rng.randrange(1, 4))]
    if name in ("axis", "num", "n_outmaps", "outmaps", "n_inputs", "n_features", "num_groups"):
        return rng.choice([small[0], abs(small[0])])
    if name in ("shape", "kernel", "axes", "repeats", "pad_width", "sizes", "stride"):
        return tuple(rng.choice([small, [abs(n) for n in small]]))
    return variable(rng, shape)


def like(rng: random.Random, default: Any, shape: tuple[int, ...] | None) -> Any:
    """A value of the kind of a default."""
    small = [rng.randrange(-2, 4) for _ in range(rng.randrange(1, 4))]
    kinds: dict[type, Callable[[], Any]] = {
        bool: lambda: rng.random() < 0.5,
        int: lambda: small[0],
        float: lambda: rng.uniform(-2, 2),
        str: lambda: rng.choice([default, "x"]),
        tuple: lambda: tuple(small),
        list: lambda: small,
    }
    other = lambda: rng.choice([None, small[0], tuple(small), [abs(n) for n in small], variable(rng, shape)])  # noqa: E731
    return kinds.get(type(default), other)()


def call(seed: int) -> str | None:
    """What was wrong with a call, if anything."""
    rng = random.Random(seed)
    name = "?"
    try:
        name, f = target(rng)
        given, named = arguments(rng, f) if callable(f) else ([], {})
        if callable(f):
            found = f(*given, **named)
            outputs = [
                v for v in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(v, nn.Variable)
            ]
            for v in outputs[:2]:
                v.forward(clear_no_need_grad=rng.random() < 0.3)
                v.backward(clear_buffer=rng.random() < 0.3)
    except ALLOWED as e:
        return f"{name}: {e}" if "internal error" in str(e) or "panic" in type(e).__name__.lower() else None
    except KeyboardInterrupt:
        return f"{name}: took more than a minute"
    except BaseException as e:
        return f"{name}: {type(e).__name__}: {e}"
    finally:
        nn.set_auto_forward(False)
        nn.clear_parameters()
    return None


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    nn.memory.set_limit(256 << 20)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    out = sys.stdout
    for seed in range(first, first + count):
        print(seed, file=out, flush=True)
        signal.alarm(60)
        with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = call(seed)
        signal.alarm(0)
        if wrong:
            print(f"{seed} {wrong}".replace("\n", " "), file=out, flush=True)


if __name__ == "__main__":
    main()
