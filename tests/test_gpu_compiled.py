"""Element-wise work by kernels that are compiled while it runs: the same bits as by the kernel that reads formulas step
by step, for all ways in which arrays are read and written.

On a GPU where NVRTC is; NNRS_CUDA=emulate NNRS_CUDA_LIBRARIES=1 has the system's C++ compiler make the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from backend import BACKEND
from nnrs.ext_utils import get_extension_context

pytestmark = pytest.mark.skipif(BACKEND == "cpu", reason="a test of GPUs")

Array = np.ndarray
Graph = Callable[..., nn.Variable]


@pytest.fixture(autouse=True)
def _compiler() -> Iterator[None]:
    from nnrs.ext import cuda

    if "NVRTC" in cuda.why_no_library():
        pytest.skip("no NVRTC")
    old = cuda.set_compiler(True)
    graphs = cuda.set_graphs(True)
    yield
    cuda.set_compiler(old)
    cuda.set_graphs(graphs)


def emulated() -> bool:
    from nnrs.ext import cuda

    return cuda.libraries()["NVRTC"] == "emulated"


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def special(seed: int, *shape: int) -> Array:
    """A tenth of them are zeros, infinities, NaN, very large or very small."""
    rng = np.random.default_rng(seed)
    few = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-42, -1e-42, 6e4, 1.0, -1.0], np.float32)
    return np.where(rng.random(shape) < 0.1, rng.choice(few, shape), rng.normal(size=shape)).astype(np.float32)


def results(build: Graph, arrays: list[Array], type_config: str, runs: int) -> list[Array]:
    """Output and gradients of `build`, after `runs` runs."""
    with nn.context_scope(get_extension_context(BACKEND, type_config=type_config)):
        x = [nn.Variable.from_numpy_array(a, need_grad=True) for a in arrays]
        y = build(*x)
        for _ in range(runs):
            for v in x:
                v.g = 1  # the gradients are added to what is there
            y.forward()
            y.backward(1.5)
    return [y.d.copy(), *(v.g.copy() for v in x)]


def check(
    build: Graph, arrays: list[Array], type_config: str = "float", *, new: bool = True, dear: bool = True
) -> None:
    """`new`: nothing before has compiled the same kernels. `dear`: of sines and such, which another version of NVIDIA's
    compiler may round otherwise; all else is the same bits everywhere.
    """
    from nnrs.ext import cuda

    cuda.set_compiler(False)
    before = cuda.compiled_kernels()
    step_by_step = results(build, arrays, type_config, 3)
    assert cuda.compiled_kernels() == before
    cuda.set_compiler(True)
    compiled = results(build, arrays, type_config, 3)
    assert cuda.compiled_kernels() > before or not new, cuda.why_not_compiled()
    for found, wanted in zip(compiled, step_by_step, strict=True):
        if dear and not emulated():
            close = {"float": 1e-5, "double": 1e-13, "half": 2e-3, "bfloat16": 2e-2}[type_config]
            np.testing.assert_allclose(found, wanted, rtol=close, atol=close)
            continue
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))


def sum_of(*functions: Callable[[nn.Variable], nn.Variable]) -> Graph:
    def build(x: nn.Variable) -> nn.Variable:
        total = functions[0](x)
        for f in functions[1:]:
            total = total + f(x)
        return total

    return build


FORMULAS: dict[str, Graph] = {
    "activations": sum_of(F.relu, F.leaky_relu, F.elu, F.selu, F.swish, F.softplus, F.gelu, F.relu6, F.hard_sigmoid),
    "exponential": sum_of(F.exp, F.tanh, F.sigmoid, lambda x: F.log(F.abs(x)), F.log_sigmoid, F.mish, F.erf),
    "trigonometric": sum_of(F.sin, F.cos, F.tan, F.atan, F.sinh, F.cosh, F.asinh),
    "inverse": sum_of(F.asin, F.acos, F.atanh, lambda x: F.acosh(x + 2), lambda x: F.atan2(x, x + 1)),
    "rounding": sum_of(F.round, F.floor, F.ceil, F.sign, F.abs, lambda x: F.clip_by_value(x, x - 1, x * 2)),
    "powers": sum_of(lambda x: F.abs(x) ** 2.5, lambda x: 2.0**x, lambda x: x * x, lambda x: 3.0 / x, lambda x: -x),
    "fewer instructions": sum_of(
        lambda x: F.leaky_relu(x * 0.5 + 0.25, 1.0),
        lambda x: F.leaky_relu(0.75 + x * -0.125, 1e-3),
        lambda x: F.leaky_relu(x * 2 + 1e-20, -0.5),
    ),
}


def cases() -> list[tuple[str, str]]:
    """All formulas in float, and some in the other types: the system's compiler takes a second for each kernel."""
    few = [("activations", t) for t in ("half", "bfloat16", "double")]
    return [*((name, "float") for name in FORMULAS), *few, ("rounding", "half"), ("fewer instructions", "double")]


@pytest.mark.parametrize("name,type_config", cases())
def test_formulas(name: str, type_config: str) -> None:
    check(FORMULAS[name], [special(0, 4111)], type_config, dear=name not in ("rounding", "fewer instructions"))


def test_comparisons() -> None:
    def build(x: nn.Variable, z: nn.Variable) -> nn.Variable:
        chosen = F.where(F.greater(x, z), x * 2, z)
        both = F.logical_and(F.less_equal(x, z), F.greater_scalar(x, 0.25))
        return chosen + both + F.isnan(x) + F.isinf(z) + F.maximum2(x, z) + F.logical_xor(x, z) + F.minimum2(x, 0.5 * z)

    check(build, [special(0, 4096), special(1, 4096)], dear=False)


SHAPES = {
    "dense, all sizes of a rest": [(4097,), (4097,)],
    "one value": [(8, 513), (1, 1)],
    "rows in packs": [(33, 128), (1, 128)],
    "columns": [(128, 33), (128, 1)],
    "channels": [(4, 8, 8, 16), (1, 8, 1, 1)],
    "channels of odd images": [(4, 8, 11, 13), (1, 8, 1, 1)],
    "odd rows": [(65, 67), (1, 67)],
    "both ways": [(64, 1, 16), (1, 5, 16), (64, 5, 1)],
    "other grids": [(4, 6, 10, 20), (4, 1, 1, 20), (1, 6, 1, 1), (1, 1, 10, 1), (6, 1, 20)],
    "odd middle": [(3, 5, 7, 48), (1, 5, 1, 48), (3, 1, 7, 1)],
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes(name: str) -> None:
    def build(*x: nn.Variable) -> nn.Variable:
        h = F.tanh(x[0]) * 0.5
        for v in x[1:]:
            h = F.leaky_relu(h * v + 0.25) - v
        return h

    arrays = [numbers(k, *shape) for k, shape in enumerate(SHAPES[name])]
    check(build, arrays)
    if name in ("rows in packs", "odd rows", "other grids"):
        check(build, arrays, "half")


def test_dear_formulas_are_loops() -> None:
    def build(x: nn.Variable, b: nn.Variable) -> nn.Variable:
        h = x
        for _ in range(6):
            # Well conditioned: another rounding of a sine stays small.
            h = F.sin(F.cos(h * 0.5) * F.tan(x * 0.3)) + F.pow2(F.abs(h) + 1.0, b * 0.1)
        return h

    arrays = [numbers(0, 9, 460), numbers(1, 1, 460)]
    check(build, arrays)
    check(build, arrays, "half")


def test_arrays_that_begin_anywhere() -> None:
    base = nn.NdArray.from_numpy_array(numbers(0, 5003))
    for start in (1, 2, 3, 4):

        def build(x: nn.Variable, start: int = start) -> nn.Variable:
            part = nn.Variable((4998,))
            part.data = base.narrow(0, start, 4998)
            return F.tanh(x) * part + part

        check(build, [numbers(1, 4998)], new=start in (1, 4))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64])
def test_inputs_of_whole_numbers(dtype: type) -> None:
    whole = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 120, 4102).astype(dtype)

    def build(x: nn.Variable) -> nn.Variable:
        labels = nn.Variable(whole.shape)
        labels.data = nn.NdArray.from_numpy_array(whole)
        return x * labels - labels

    check(build, [numbers(1, 4102)], dear=False)


def test_several_outputs() -> None:
    def build(x: nn.Variable, b: nn.Variable) -> nn.Variable:
        a = (x * b).apply(persistent=True)
        c = F.exp(a).apply(persistent=True)
        return F.sum(a * c) + F.sum(c - x)

    check(build, [numbers(0, 37, 113), numbers(1, 37, 1)])


def count() -> int:
    from nnrs.ext import cuda

    return cuda.compiled_kernels()


def runs(y: nn.Variable, n: int) -> int:
    """How many kernels `n` runs compiled."""
    before = count()
    for _ in range(n):
        y.forward()
    return count() - before


def test_what_pays() -> None:
    from nnrs.ext import cuda

    cuda.set_graphs(False)
    with nn.context_scope(get_extension_context(BACKEND)):
        large, small = (nn.Variable.from_numpy_array(numbers(0, n)) for n in (4096, 4095))
        y = F.sin(large) * 1.0625
        assert runs(y, 1) == 0
        assert runs(y, 1) == 1
        assert runs(y, 3) == 0
        assert runs(F.sin(small) * 1.0625, 5) == 0
        # Another number each time is another formula each time.
        assert sum(runs(F.cos(large) * (1.0 + k / 64), 1) for k in range(5)) == 0


def test_what_is_captured_is_compiled_before() -> None:
    from nnrs.ext import cuda

    with nn.context_scope(get_extension_context(BACKEND)):
        y = F.sin(nn.Variable.from_numpy_array(numbers(0, 12))) * 1.03125
        assert runs(y, 6) == 1
    assert any("replayed" in line and "replayed 0" not in line for line in cuda.graphs(y)), cuda.graphs(y)
    np.testing.assert_allclose(y.d, np.sin(numbers(0, 12)) * 1.03125, rtol=1e-6)


def test_functions_at_once() -> None:
    """Without a graph that is run again."""
    before = count()
    x = numbers(0, 70, 61)
    with nn.context_scope(get_extension_context(BACKEND)), nn.auto_forward():
        for _ in range(3):
            y = F.tanh(nn.Variable.from_numpy_array(x)) * 1.15625
    assert count() > before
    np.testing.assert_allclose(y.d, np.tanh(x) * np.float32(1.15625), rtol=1e-5)


def trained(solver: Callable[[], object], sizes: list[int], updates: int) -> list[Array]:
    with nn.context_scope(get_extension_context(BACKEND)):
        weights = {str(k): nn.Variable.from_numpy_array(numbers(k, n), need_grad=True) for k, n in enumerate(sizes)}
        made = solver()
        made.set_parameters(weights)
        for step in range(updates):
            for k, w in enumerate(weights.values()):
                y = F.mul_scalar(nn.Variable.from_numpy_array(numbers(10 * step + k, *w.shape)), 1.0)
                y.forward()
                w.grad = y.data
            made.weight_decay(0.01)
            made.update()
    return [w.d.copy() for w in weights.values()]


@pytest.mark.parametrize("solver", [S.Adam, S.Momentum, S.AdamW], ids=lambda s: s.__name__)
def test_solvers(solver: Callable[[], object]) -> None:
    from nnrs.ext import cuda

    sizes = [5000, 3, 4096, 1, 9001]
    cuda.set_compiler(False)
    step_by_step = trained(solver, sizes, 5)
    cuda.set_compiler(True)
    before = count()
    compiled = trained(solver, sizes, 5)
    assert count() > before
    for found, wanted in zip(compiled, step_by_step, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_compiler_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from nnrs.ext import cuda

    if not emulated():
        pytest.skip("NVRTC does not fail")
    x, number = numbers(0, 4096), float(np.random.default_rng().uniform(1, 2))
    with nn.context_scope(get_extension_context(BACKEND)):
        y = F.sin(nn.Variable.from_numpy_array(x)) * number
        failed = len(cuda.why_not_compiled())
        monkeypatch.setenv("CXX", "false")
        assert runs(y, 2) == 0
        assert len(cuda.why_not_compiled()) == failed + 1
        assert "false" in cuda.why_not_compiled()[-1]
        monkeypatch.delenv("CXX")
        assert runs(y, 3) == 0, "it is remembered"
        np.testing.assert_allclose(y.d, np.sin(x) * number, rtol=1e-5)
