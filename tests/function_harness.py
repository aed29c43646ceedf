"""What the walker over all functions is built of: the package under test, the cases, calls, rounding, differences.

The package is named by NNRS_TEST_MODULE: `nnrs` (default), or `nnabla`, which checks the references themselves. NNabla
runs in float only and less strictly, since its errors are of other kinds.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from backend import BACKEND
from function.case import Case, Error

MODULE = os.environ.get("NNRS_TEST_MODULE", "nnrs")
ORACLE = MODULE == "nnabla"
nn = importlib.import_module(MODULE)
F = importlib.import_module(f"{MODULE}.functions")
get_extension_context = importlib.import_module(f"{MODULE}.ext_utils").get_extension_context

Array = np.ndarray
Arrays = list[Array | None]

FOLDER = Path(__file__).parent / "function"
TYPES = ("float",) if ORACLE else ("float", "double", "half", "bfloat16")
# Derivatives are compared with differences in the most precise type there is.
GRAD_TYPE = "float" if ORACLE else "double"
TOLERANCE = {"float": 1e-5, "double": 1e-12, "half": 4e-3, "bfloat16": 3e-2}
TOLERANCE |= {"grad": 5e-4, "second": 5e-3} if ORACLE else {"grad": 1e-8, "second": 1e-6}
# Steps of the differences; the stencil reaches twice as far, along several directions at once where nested or mixed:
# kinks are 0.1 away.
STEP = 1e-3
NESTED_STEP = 2e-3


@dataclass(frozen=True)
class Target:
    """One case of one function."""

    name: str
    module: ModuleType
    case: Case | Error
    id: str

    @property
    def function(self) -> Callable[..., Any]:
        """The function under test."""
        return getattr(F, self.name)

    def inputs(self, type_config: str) -> Arrays:
        """The case's inputs as numbers of that type."""
        return [None if x is None else rounded(x, type_config) for x in self.case.make(self.name)]

    def call(self, values: Sequence[Any], **more: Any) -> list[Any]:
        """The function called on variables or arrays: always a list of outputs."""
        call = getattr(self.case, "call", None)
        made = call(F, *values, **self.case.args) if call else self.function(*values, **self.case.args, **more)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def reference(self, inputs: Arrays) -> list[Array]:
        """The outputs as the case file's formula has them, in float64."""
        wide = [widened(x) for x in inputs]
        with np.errstate(all="ignore"):
            made = self.module.reference(*wide, **self.case.args)
        return [np.asarray(y, np.float64) for y in (made if isinstance(made, (tuple, list)) else [made])]


def widened(x: Array | None) -> Array | None:
    """Floating arrays in float64, the others as they are."""
    return x if x is None or x.dtype.kind != "f" else x.astype(np.float64)


def rounded(x: Array, type_config: str) -> Array:
    """x in the NumPy type nearest to the context's; bfloat16 is float32 with the low bits rounded away."""
    if x.dtype.kind != "f":
        return x
    if type_config == "bfloat16":
        return to_bfloat16(x)
    with np.errstate(over="ignore"):
        return x.astype({"float": np.float32, "double": np.float64, "half": np.float16}[type_config])


def to_bfloat16(x: Array) -> Array:
    """Round to the nearest bfloat16, ties to even, kept as float32."""
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    bits = single.view(np.uint32)
    nearest = ((bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)).astype(np.uint32)
    return np.where(np.isfinite(single), nearest.view(np.float32), single).astype(np.float32).reshape(x.shape)


def scope(type_config: str) -> Any:
    """A context scope in that type."""
    return nn.context_scope(get_extension_context(BACKEND, type_config=type_config))


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Errors say with what they came, where one test does several."""
    try:
        yield
    except Exception as e:
        raise AssertionError(f"with {what}: {type(e).__name__}: {e}") from e


@functools.cache
def modules() -> dict[str, ModuleType]:
    """All case files by the name of their function."""
    stems = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in ("__init__", "case", "families"))
    return {stem: importlib.import_module(f"function.{stem}") for stem in stems}


def targets(attribute: str = "CASES", wanted: Callable[[Any], bool] = lambda case: True) -> list[Target]:
    """All cases (or ERRORS) that are wanted and can run on the package under test."""
    found = []
    for name, module in modules().items():
        for number, case in enumerate(getattr(module, attribute, [])):
            if wanted(case) and (case.oracle or not ORACLE):
                found.append(Target(name, module, case, f"{name}-{case.name or number}"))
    return found


def variable(x: Array | None, need_grad: bool = False) -> Any:
    """A variable over the array's own type; None stays None."""
    return None if x is None else nn.Variable.from_numpy_array(x, need_grad=need_grad)


def variables(inputs: Arrays, wants: Sequence[bool]) -> list[Any]:
    """One variable an input, their gradients zero."""
    made = [variable(x, want) for x, want in zip(inputs, wants, strict=True)]
    for v in made:
        if v is not None:
            v.grad.zero()
    return made


def forward(target: Target, values: Sequence[Any]) -> list[Array]:
    """Build, run and read all outputs."""
    return run(target.call(values))


def run(outputs: Sequence[Any]) -> list[Array]:
    """Run a graph and copy what its outputs hold."""
    nn.forward_all(list(outputs))
    return [np.array(y.d) for y in outputs]


def weights(shapes: Sequence[tuple[int, ...]], seed: int) -> list[Array]:
    """Multiples of 1/8 between 0.5 and 2 with either sign: exact in float, never zero."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.integers(4, 17, s) / 8.0 * rng.choice([-1.0, 1.0], s)) for s in shapes]


def differentiated(target: Target, outputs: Sequence[Any]) -> list[Any]:
    """The outputs whose gradient is looked at."""
    chosen = target.case.grad_outputs
    return list(outputs) if chosen is None else [outputs[k] for k in chosen]


def backward(outputs: Sequence[Any], grads: Sequence[Array]) -> None:
    """backward() of one output, or of the weighted sum of several."""
    if len(outputs) == 1:
        outputs[0].backward(grads[0])
        return
    total = None
    for y, gy in zip(outputs, grads, strict=True):
        term = F.sum(F.mul2(y, variable(gy)))
        total = term if total is None else F.add2(total, term)
    total.forward()
    total.backward()


def replace(inputs: Arrays, places: Sequence[int], values: Sequence[Array]) -> Arrays:
    """The inputs with some exchanged."""
    changed = list(inputs)
    for place, value in zip(places, values, strict=True):
        changed[place] = value
    return changed


def slope(f: Callable[[float], Any], step: float) -> Any:
    """f'(0) by the central difference of fourth order."""
    return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step)


def mixed_slope(f: Callable[[float, float], float], step: float) -> float:
    """f's slope along both numbers at 0, of fourth order; half the calls of a slope of slopes."""

    def corners(h: float) -> float:
        return f(h, h) + f(-h, -h) - f(h, -h) - f(-h, h)

    return (16 * corners(step) - corners(2 * step)) / (48 * step**2)


def directions(shape: tuple[int, ...]) -> Iterator[Array]:
    """Each unit vector of a small array; four random directions in a large one, one of 81 wrong numbers is in none."""
    size = int(np.prod(shape))
    if size <= 20:
        yield from (np.eye(size)[k].reshape(shape) for k in range(size))
    else:
        rng = np.random.default_rng(size)
        yield from (rng.choice([-1.0, 0.0, 1.0], shape) for _ in range(4))


def first_differences(target: Target, xs: Arrays, places: list[int], ws: list[Array], grads: list[Array]) -> float:
    """How far the gradients are from the differences of sum(w * y), relative to their size; with `grad`, from that."""
    if target.case.grad is not None:
        expected = expected_grads(target, xs, places, ws)
        return max(error(g, e) for g, e in zip(grads, expected, strict=True))

    def along(place: int, v: Array) -> float:
        def moved(t: float) -> float:
            return weighted(target, replace(xs, [place], [xs[place] + t * v]), ws)

        return slope(moved, STEP)

    return difference(xs, places, grads, along)


def second_differences(target: Target, xs: Arrays, places: list[int], ws: list[Array], us: list[Array]) -> tuple:
    """Functions giving the slope of sum(u * gx) along a change of input `place`, and of the weight of output k."""

    def moved(inputs: Arrays, t: float) -> Arrays:
        return replace(inputs, places, [inputs[p] + t * u for p, u in zip(places, us, strict=True)])

    if target.case.grad is not None:

        def product(inputs: Arrays, gys: list[Array]) -> float:
            expected = expected_grads(target, inputs, places, gys)
            return sum(float((u * g).sum()) for u, g in zip(us, expected, strict=True))

        return (
            lambda place, v: slope(lambda t: product(replace(xs, [place], [xs[place] + t * v]), ws), NESTED_STEP),
            lambda k, v: slope(lambda t: product(xs, [w + t * v if j == k else w for j, w in enumerate(ws)]), 0.25),
        )

    def along_input(place: int, v: Array) -> float:
        return mixed_slope(lambda s, t: weighted(target, moved(replace(xs, [place], [xs[place] + t * v]), s), ws), STEP)

    @functools.cache
    def outputs(t: float) -> list[Array]:
        return differentiated(target, target.reference(moved(xs, t)))

    # sum(u * gx) is the slope of sum(w * y) along u, so that of y is the slope along w.
    return along_input, lambda k, v: float((v * slope(lambda t: outputs(t)[k], STEP)).sum())


def weighted(target: Target, inputs: Arrays, ws: list[Array]) -> float:
    """sum(w * y) of the reference."""
    outputs = differentiated(target, target.reference(inputs))
    return sum(float((w * y).sum()) for w, y in zip(ws, outputs, strict=True))


def expected_grads(target: Target, inputs: Arrays, places: list[int], ws: list[Array]) -> list[Array]:
    """The gradients as the case file's `grad` has them."""
    made = target.case.grad(ws[0] if len(ws) == 1 else tuple(ws), *inputs, **target.case.args)
    all_of_them = made if isinstance(made, (tuple, list)) else [made]
    return [np.asarray(all_of_them[p], np.float64) for p in places]


def difference(
    xs: Sequence[Array | None], places: Sequence[int], grads: Sequence[Array], along: Callable[[int, Array], float]
) -> float:
    """The largest distance between <grad, v> and the slope along v."""
    worst = 0.0
    for place, grad in zip(places, grads, strict=True):
        for v in directions(xs[place].shape):
            worst = max(worst, error(np.asarray((grad.astype(np.float64) * v).sum()), np.asarray(along(place, v))))
    return worst


def error(got: Array, expected: Array) -> float:
    """The largest distance of the elements, relative to those above 1; infinite where NaN or infinity differ."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(all="ignore"):
        distance = np.abs(got - expected) / np.maximum(1.0, np.abs(expected))
    distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    return float(distance.max(initial=0.0))


def tolerance(case: Case, key: str) -> float:
    """The case's own tolerance, but never below NNabla's when that runs."""
    own = case.tolerance.get(key, TOLERANCE[key])
    return max(own, TOLERANCE[key]) if ORACLE else own


def strided(x: Array) -> Array:
    """The same numbers as a transposed view of every second element of a larger array."""
    if x.ndim == 0:
        return x
    large = np.zeros((*x.T.shape[:-1], 2 * x.T.shape[-1]), x.dtype)
    large[..., ::2] = x.T
    return large[..., ::2].T


def takes(function: Callable[..., Any], keyword: str) -> bool:
    """Whether the function has that keyword."""
    parameters = inspect.signature(function).parameters
    return keyword in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def digest() -> dict[str, Array]:
    """Outputs and gradients of every case between two neighbours that could be fused with it.

    A case that fails has no entry: it fails in its own tests too, and must be missing with fusion and without.
    """
    found: dict[str, Array] = {}
    for target in targets(wanted=lambda case: case.check is None):
        with contextlib.suppress(Exception):
            found |= {f"{target.id}/{k}": a for k, a in enumerate(neighboured(target))}
    return found


def neighboured(target: Target) -> list[Array]:
    """mul_scalar, the function, add_scalar: all outputs, then all gradients."""
    inputs = target.inputs("float")
    wants = target.case.wants_grad(inputs) if target.case.differentiable else [False] * len(inputs)
    with scope("float"):
        leaves = variables(inputs, wants)
        scaled = [F.mul_scalar(v, 0.75) if want else v for v, want in zip(leaves, wants, strict=True)]
        outputs = [F.add_scalar(y, 0.5) for y in target.call(scaled)]
        del scaled
        made = run(outputs)
        if any(wants):
            chosen = differentiated(target, outputs)
            backward(chosen, weights([y.shape for y in chosen], seed=3))
        return made + [np.array(v.g) for v, want in zip(leaves, wants, strict=True) if want]


if __name__ == "__main__":
    np.savez(sys.argv[1], **digest())
