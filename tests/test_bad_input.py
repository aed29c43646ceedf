"""Bad input, item by item: a clear error or the right result, the process alive, nothing lost.

Files are in test_bad_files.py, hooks in test_bad_hooks.py and test_threads.py, texts in test_errors.py.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.initializer as I
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from graph_helpers import leaf
from nnrs import NdArray, Variable

pytestmark = pytest.mark.usefixtures("still_works")

BAD = (ValueError, TypeError, RuntimeError, MemoryError, IndexError, OverflowError)


def var(*shape) -> Variable:
    return leaf(np.ones(shape))


def both(call, *inputs) -> None:
    """Runs forward and backward of what `call` makes, by graph and at once; an error must be one of nnrs's."""
    for static in (True, False):
        try:
            y = call(*inputs) if static else call(*(v.data for v in inputs))
            y = y[0] if isinstance(y, (list, tuple)) else y
            if static:
                y.forward()
                if y.need_grad:
                    y.backward()
        except BAD as e:
            assert isinstance(e, nn.Error), f"{type(e)}: {e}"
            assert "internal error" not in str(e), str(e)


# Wrong shapes, types, axes


SHAPES = [(), (1,), (3,), (0,), (2, 3), (0, 3), (3, 0), (2, 0, 3), (2, 3, 4), (1, 2, 3, 4), (2, 1, 2, 1, 2)]
ONE = """tanh relu softmax log_softmax sum mean max min prod norm global_average_pooling crelu celu transpose flip split
identity sign dropout matrix_diag matrix_diag_part""".split()
TWO = """add2 sub2 mul2 div2 pow2 maximum2 affine batch_matmul softmax_cross_entropy categorical_cross_entropy
sigmoid_cross_entropy squared_error huber_loss top_n_error embed convolution equal logical_and prelu concatenate stack
gather one_hot deconvolution where""".split()


@pytest.mark.parametrize("name", ONE)
def test_any_shape_into_functions_of_one_input(name):
    f = getattr(F, name, None)
    if f is None:
        pytest.skip(f"F.{name} is not there yet")
    for shape in SHAPES:
        more = {"transpose": {"axes": (1, 0)}}.get(name, {})
        both(lambda x, more=more: f(x, **more), var(*shape))
        for axis in (0, 1, -1, 5, -7, 2**40):
            if name in (
                "softmax",
                "log_softmax",
                "sum",
                "mean",
                "max",
                "min",
                "prod",
                "norm",
                "crelu",
                "celu",
                "split",
            ):
                try:
                    both(lambda x, axis=axis: f(x, axis=axis), var(*shape))
                except (TypeError, OverflowError):
                    assert axis == 2**40


@pytest.mark.parametrize("name", TWO)
def test_any_two_shapes_into_functions_of_two_inputs(name):
    f = getattr(F, name, None)
    if f is None:
        pytest.skip(f"F.{name} is not there yet")
    for a in SHAPES:
        for b in SHAPES:
            if name == "where":
                both(f, var(*a), var(*b), var(*b))
            elif name == "one_hot":
                both(lambda x, b=b: f(x, b), leaf(np.zeros(a), False))
            else:
                both(f, var(*a), leaf(np.zeros(b), name not in ("embed", "gather")))


@pytest.mark.parametrize("name", ["max_pooling", "average_pooling", "sum_pooling"])
def test_pooling_with_any_numbers(name):
    f = getattr(F, name)
    for shape in SHAPES:
        for kernel in [(2, 2), (1, 1), (0, 1), (-1, 2), (9, 9), (2,), (), (2, 2, 2), (2**31, 2), (2**62, 2**62)]:
            for more in [
                {},
                {"stride": (0, 1)},
                {"stride": (-1, 1)},
                {"pad": (1, 1)},
                {"pad": (-1, 0)},
                {"pad": (2**40, 1)},
            ]:
                both(lambda x, k=kernel, m=more: f(x, k, **m), var(*shape))


def test_convolution_with_any_numbers():
    x, w = var(1, 2, 5, 5), var(2, 2, 3, 3)
    for name in ("pad", "stride", "dilation"):
        for value in [(0, 0), (1, 1), (-1, 1), (-9, -9), (1,), (), (1, 1, 1), (100, 1), (2**31, 1), (2**62, 2**62)]:
            both(lambda x, w, a={name: value}: F.convolution(x, w, **a), x, w)
    for more in [{"group": g} for g in (0, -1, 2, 3, 2**40)] + [{"base_axis": b} for b in (0, 2, 3, 4, -1, -3, -9, 99)]:
        both(lambda x, w, m=more: F.convolution(x, w, **m), x, w)
    both(lambda x, w: F.convolution(x, w, channel_last=True), x, w)
    for name, value in [("pad", 1), ("stride", "ab"), ("dilation", 2.5), ("group", None)]:
        with pytest.raises(TypeError):
            F.convolution(x, w, **{name: value})


NO_VARIABLES = [None, 3, "x", [1.0], np.ones(3), object(), NdArray, {}, (Variable((3,)),)]


@pytest.mark.parametrize("given", NO_VARIABLES, ids=lambda v: type(v).__name__)
def test_inputs_that_are_no_variables(given):
    for call in (F.tanh, F.sum, lambda v: F.add2(Variable((3,)), v), lambda v: F.affine(v, v), lambda v: F.add_n(v, v)):
        with pytest.raises((TypeError, ValueError)):
            call(given)
    for method in ("rewire_on", "visit"):
        with pytest.raises(TypeError):
            getattr(F.tanh(Variable((3,))), method)(given if method == "rewire_on" else 3)


def test_too_many_and_too_few_inputs():
    x = var(3)
    for call in (
        F.tanh,
        F.add2,
        F.add_n,
        F.mul_n,
        lambda: F.add2(x),
        lambda: F.tanh(x, x, x, x, x),
        lambda: F.affine(x),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_unknown_keywords():
    x = var(3)
    plan = functools.partial(nn.memory.plan, x)
    for call in (F.tanh, F.leaky_relu, x.forward, F.tanh(x).forward, F.tanh(x).backward, Variable, plan):
        with pytest.raises(TypeError, match="surely_not"):
            call(x, surely_not=1) if call in (F.tanh, F.leaky_relu) else call(surely_not=1)


# NaN labels and other labels that are none


@pytest.mark.host
@pytest.mark.parametrize("name", ["softmax_cross_entropy", "categorical_cross_entropy", "top_n_error"])
@pytest.mark.parametrize("label", [np.nan, np.inf, -np.inf, -1, -2, 3, 1e30, -1e30, 2**31, 1.7])
def test_labels_that_are_none(name, label):
    x = leaf(np.full((2, 3), 1 / 3))
    t = Variable.from_numpy_array(np.array([[label], [1]], "float32"))
    y = getattr(F, name)(x, t)
    if not -(2**63) < label < 3:  # NaN, too
        with pytest.raises(nn.Error, match=f"{name}.*labels less than 3"):
            y.forward()
        return
    y.forward()
    y.backward()
    if name == "top_n_error":
        return
    first = name == "softmax_cross_entropy"
    expected = np.log(3) if label == 1.7 else 0  # a negative label is left out, a fraction is cut
    np.testing.assert_allclose(y.d[:, 0], [expected, np.log(3)], rtol=1e-6)
    row = [1 / 3, -2 / 3, 1 / 3] if first else [0, -3, 0]
    np.testing.assert_allclose(x.g, [row if label == 1.7 else [0, 0, 0], row], rtol=1e-6)


@pytest.mark.host
@pytest.mark.parametrize("index", [np.nan, np.inf, -1, 5, 1e30, -1e30])
def test_indices_outside_of_the_rows(index):
    w = leaf(np.arange(6).reshape(3, 2))
    i = Variable.from_numpy_array(np.array([index, 1], "float32"))
    for call in (F.embed, lambda i, w: F.gather(w, i)):
        try:
            y = call(i, w)
            y.forward()
            y.backward()
        except (ValueError, IndexError, AttributeError) as e:
            assert isinstance(e, (nn.Error, AttributeError))
            continue
        assert np.array_equal(y.d[1], [2, 3]) and np.array_equal(y.d[0], [0, 0]), "zeros where there is no row"


@pytest.mark.host
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_numbers_that_are_no_index_are_called_so(bad):
    x, w = leaf(np.ones(1)), leaf(np.arange(6).reshape(3, 2))
    index = Variable.from_numpy_array(np.array([[bad]], "float32"))
    calls = {
        "scatter_nd": lambda: F.scatter_nd(x, index, shape=(3,)),
        "gather_nd": lambda: F.gather_nd(w, index),
        "scatter_add": lambda: F.scatter_add(w, index, leaf(np.ones((1, 1)))),
        "gather": lambda: F.gather(w, index),
        "embed": lambda: F.embed(index, w),
        "softmax_cross_entropy": lambda: F.softmax_cross_entropy(w[:1], index),
    }
    for name, call in calls.items():
        if bad == -np.inf and name == "softmax_cross_entropy":
            continue  # a negative label is left out
        with pytest.raises(nn.Error, match="got a number that is no index"):
            call().forward()


# Empty and huge


def test_losses_and_products_of_nothing():
    assert np.array_equal(_run(F.affine, var(0, 3), var(3, 2)), np.zeros((0, 2)))
    assert np.array_equal(_run(F.affine, var(2, 0), var(0, 3)), np.zeros((2, 3)))
    assert _run(F.sum, var(0, 3)) == 0
    assert np.array_equal(_run(lambda x: F.sum(x, axis=0), var(0, 3)), [0, 0, 0])
    assert _run(F.add2, var(0, 3), var(1, 3)).shape == (0, 3)
    assert _run(F.convolution, var(0, 2, 5, 5), var(3, 2, 3, 3)).shape == (0, 3, 3, 3)
    assert _run(lambda x: F.max_pooling(x, (2, 2)), var(0, 2, 4, 4)).shape == (0, 2, 2, 2)


def _run(call, *inputs):
    y = call(*inputs)
    y.forward()
    y.backward()
    for v in inputs:
        assert v.g.shape == v.shape
    return y.d


def test_huge_shapes_are_refused_or_never_touched():
    before = nn.memory.stats().live
    for shape in [
        (2**62,),
        (2**31, 2**31),
        (2**63 - 1,),
        (2**32, 2**32),
        (2**16,) * 4,
        (2**20,) * 50,
        (1,) * 70,
        (0, 2**62, 4),
    ]:
        try:
            v = Variable(shape, need_grad=True)
            y = F.add2(F.tanh(v), v)
            F.sum(y)
            F.reshape(v, (-1,)) if v.size else None
        except BAD as e:
            assert isinstance(e, nn.Error)
    assert nn.memory.stats().live == before
    x, w = Variable((2**20, 2**20)), Variable((2**20, 2**30))
    for call in (
        lambda: F.affine(x, w),
        lambda: F.broadcast(Variable((1, 1)), (2**40, 2**40)),
        lambda: F.broadcast(Variable((1,)), (2**62,)),
        lambda: F.reshape(Variable((2, 3)), (2**62, 2**62)),
        lambda: F.concatenate(x, x, axis=0),
        lambda: F.tile(Variable((2,)), (2**62,)),
        lambda: F.one_hot(Variable((3, 1)), (2**62,)),
        lambda: F.pad(Variable((3,)), (2**62, 2**62)),
        lambda: F.constant(1.0, (2**62,)),
        lambda: F.arange(0, 1e30, 1e-10),
        lambda: F.linspace(0, 1, 2**62),
        lambda: F.rand(shape=(2**62,)),
        lambda: F.randn(shape=(-1,)),
        lambda: F.matrix_diag(Variable((2**40,))),
    ):
        try:
            y = call()
        except AttributeError:
            continue  # a function that is still to come
        except BAD as e:
            assert isinstance(e, nn.Error), f"{type(e)} {e}"
            continue
        with pytest.raises(MemoryError):
            y.forward()
    assert nn.memory.stats().live == before


def test_numbers_out_of_range_as_arguments():
    x = var(2, 3)
    for call in (
        lambda: F.sum(x, axis=2**70),
        lambda: F.reshape(x, (2**70,)),
        lambda: F.add_scalar(x, 10**400),
        lambda: F.leaky_relu(x, alpha=1j),
        lambda: Variable((2**70,)),
        lambda: NdArray((2**70,)),
        lambda: x.data.narrow(0, 2**70, 1),
        lambda: x.size_from_axis(2**70),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            call()
    assert np.isinf(_run(lambda x: F.add_scalar(x, np.inf), x)).all()


def test_a_sequence_that_lies():
    class Lies:
        def __len__(self):
            return 10**9

        def __getitem__(self, i):
            raise KeyError(i)

        def __iter__(self):
            raise ZeroDivisionError

    class Endless:
        def __index__(self):
            raise ZeroDivisionError

    for call in (lambda v: Variable(v), lambda v: F.reshape(var(2), v), lambda v: F.sum(var(2), axis=v)):
        for wrong in (Lies(), (Endless(),), Endless()):
            with pytest.raises((TypeError, ValueError, ZeroDivisionError, KeyError)):
                call(wrong)


def test_arrays_that_lie():
    class Raises:
        def __array__(self, *a, **k):
            raise ZeroDivisionError

    class NoArray:
        __array_interface__ = {"shape": (-3,), "typestr": "<f4", "data": None, "version": 9}

    class Another:
        def __array__(self, *a, **k):
            return "text"

    for wrong in (Raises(), NoArray(), Another()):
        with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
            NdArray.from_numpy_array(wrong)
        v = var(3)
        with pytest.raises((TypeError, ValueError, ZeroDivisionError)):
            v.d = wrong
        assert np.array_equal(v.d, [1, 1, 1])


def test_the_states_of_a_solver_are_not_read_from_a_file_of_parameters(tmp_path):
    nn.clear_parameters()
    PF.affine(nn.Variable((2, 3)), 2)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    for name in ("p.h5", "p.safetensors"):
        nn.save_parameters(str(tmp_path / name))
        with pytest.raises(nn.Error, match="holds no states of a solver"):
            solver.load_states(str(tmp_path / name))
    nn.clear_parameters()
    empty = S.Sgd()
    empty.save_states(str(tmp_path / "empty.h5"))
    empty.load_states(str(tmp_path / "empty.h5"))


@pytest.mark.parametrize("layer", [PF.batch_normalization, PF.layer_normalization])
def test_initial_values_by_name(layer):
    with pytest.raises(nn.Error, match="argument 'param_init': expected initial values by name, .* got 5"):
        layer(nn.Variable((2, 3)), param_init=5)


@pytest.mark.parametrize("path", ["/" + 300 * "a" + ".h5", "a\0b.h5", "/proc/x.safetensors", "/nowhere/x.h5"])
def test_paths_that_cannot_be_written(path):
    with pytest.raises(nn.Error, match="cannot write"):
        nn.save_parameters(path)
    with pytest.raises(nn.Error, match="cannot write"):
        S.Sgd().save_states(path)


def test_a_large_variable_is_no_list_of_numbers():
    x = nn.Variable((1, 1, 4, 4))
    calls = lambda v: F.max_pooling(x, (2, 2), stride=v), lambda v: F.sum(x, axis=v), lambda v: F.transpose(x, v)  # noqa: E731
    for call in calls:
        for v in (nn.Variable((2**40,)), nn.NdArray((2**40,))):
            with pytest.raises(nn.Error, match="got <(Variable|NdArray)"):
                call(v)


@pytest.mark.parametrize("f", [F.softmax_cross_entropy, F.categorical_cross_entropy])
@pytest.mark.parametrize("shape", [(4, 6), (4, 0), (4, 2)])
def test_labels_of_another_shape_in_a_gradient_graph(f, shape):
    x = nn.Variable.from_numpy_array(np.random.default_rng(1).uniform(0.1, 1, (4, 6)), need_grad=True)
    t = nn.Variable.from_numpy_array([[1], [2], [3], [4]])
    (g,) = nn.grad([F.sum(f(x, t))], [x])
    g.forward()
    t.reset_shape(shape, True)
    t.d = 0
    with pytest.raises(nn.Error, match="shape"):
        g.forward()


@pytest.mark.parametrize("make", [lambda: range(10**9), lambda: itertools.repeat(1), lambda: np.zeros(10**7)])
@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: F.sum(x, axis=n),
        lambda x, n: F.max_pooling(x, n),
        lambda x, n: F.transpose(x, n),
        lambda x, n: F.reshape(x, n),
        lambda x, n: F.convolution(x, x, stride=n),
        lambda x, n: nn.Variable(n),
    ],
)
def test_lists_that_do_not_end_soon(call, make):
    with pytest.raises(nn.Error):
        call(nn.Variable((1, 1, 4, 4)), make())


class Liar(list):
    """Says that it has more elements than there is memory for."""

    def __len__(self):
        return 2**60


@pytest.mark.parametrize(
    "call",
    [
        lambda x, xs, flags: nn.grad(xs, [x]),
        lambda x, xs, flags: nn.grad([x], xs),
        lambda x, xs, flags: nn.grad([x], [x], persistent_outputs=flags),
        lambda x, xs, flags: nn.forward_all(xs),
    ],
)
def test_lists_of_variables_that_do_not_end_soon(call):
    x = leaf([1.0])
    with pytest.raises(nn.Error, match="1048576 .* at most"):
        call(x, itertools.repeat(x), itertools.repeat(True))
    call(x, Liar([x]), Liar([True]))


def test_initial_values_that_cannot_be_drawn():
    for limits in [(-1e308, 1e308), (0, float("inf")), (0, float("nan")), 3]:
        with pytest.raises(nn.Error, match="lim"):
            I.UniformInitializer(limits)((2,))
    with pytest.raises(nn.Error, match="lim"):
        I.UniformIntInitializer((3, 3))((2,))
    assert PF.affine(nn.Variable((2, 0)), 0, name="nothing").shape == (2, 0)
    assert I.UniformInitializer((0, float("inf")))((0, 3)).shape == (0, 3)


class Long(Variable):
    """As long as it is large: taken for a list it costs a walk over all elements."""

    def __getitem__(self, key):
        raise AssertionError("it is gone through")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, f: nn.Variable(x),
        lambda x, f: nn.NdArray(x),
        lambda x, f: nn.parameter.get_parameter_or_create("h", x),
        lambda x, f: nn.Variable((2,)).reset_shape(x, True),
        lambda x, f: nn.Variable((2,)).reshape(x),
        lambda x, f: nn.Variable((2,)).data.view(x),
        lambda x, f: F.reshape(nn.Variable((2,)), x),
        lambda x, f: F.transpose(nn.Variable((2,)), x),
        lambda x, f: I.ConstantInitializer(0)(x),
        lambda x, f: I.UniformInitializer()(x),
        lambda x, f: f.setup(x, x),
        lambda x, f: f.setup([x], x),
        lambda x, f: f.forward(x, x),
        lambda x, f: f.backward(x, x),
        lambda x, f: f.backward([x], [x], x),
        lambda x, f: f.recompute(x, x),
        lambda x, f: f.setup_recompute(x, x),
        lambda x, f: f.set_active_input_mask(x),
        lambda x, f: nn.forward_all(x),
        lambda x, f: S.Sgd().set_parameters(x),
        lambda x, f: PF.convolution(nn.Variable((1, 1, 3, 3)), 2, x),
        lambda x, f: I.calc_uniform_lim_glorot(2, 3, x),
    ],
)
def test_a_variable_is_no_list(call):
    x = Long((30,))
    with pytest.raises(nn.Error):
        call(x, F.sin(x).parent)


@pytest.mark.parametrize("n", [2**40, itertools.count(1)])
def test_a_shape_ends_soon(n):
    n = itertools.repeat(1, n) if isinstance(n, int) else n
    with pytest.raises(nn.Error, match="get_parameter_or_create: argument 'shape': expected a tuple of integers"):
        nn.parameter.get_parameter_or_create("h", n)


def test_more_axes_than_numpy_has():
    x = nn.Variable((1,) * 1000)
    for read in (lambda: x.d, lambda: x.g, lambda: x.data.data, lambda: x.data.cast(np.float64), lambda: np.array(x)):
        with pytest.raises(nn.Error, match="a shape that a NumPy array can have, got 1000 axes"):
            read()
    assert F.sum(x).shape == ()


def nested(depth: int) -> list:
    values: list = [1.0]
    for _ in range(depth):
        values = [values]
    return values


@pytest.mark.parametrize("values", [nested(100_000), [[1, 2], [3]]])
def test_lists_that_numpy_makes_no_array_of(values):
    x = nn.Variable((2,))
    with pytest.raises(nn.Error, match="argument 'data'"):
        nn.Variable.from_numpy_array(values)
    with pytest.raises(nn.Error, match="argument 'grad'"):
        nn.Variable.from_numpy_array([1.0], values)
    with pytest.raises(nn.Error, match="argument 'nparr'"):
        nn.NdArray.from_numpy_array(values)
    with pytest.raises(nn.Error, match="argument 'value'"):
        x.d = values
    with pytest.raises(nn.Error, match="argument 'grad'"):
        x.backward(values)


@pytest.mark.parametrize("name", ["he_forward", "he_backward", "glorot", "lim_glorot"])
def test_numbers_of_maps(name):
    f = I.calc_uniform_lim_glorot if name == "lim_glorot" else getattr(I, f"calc_normal_std_{name}")
    v = nn.Variable(())
    for given in [(v, 3), (3, v), (v, v), (3, 3, v), (3, 3, "a"), ("a", "b"), (None, 3), (3, 3, [[1], [2, 3]])]:
        with pytest.raises(nn.Error, match=f.__name__):
            f(*given)
    f(np.int64(3), 3.0, np.array([2, 2]))


def test_sizes_that_are_no_integers():
    for shape in [(float("inf"),), (float("nan"),), [None], ["a"], 2.5]:
        with pytest.raises(nn.Error, match="argument 'shape'"):
            nn.parameter.get_parameter_or_create("q", shape)


def test_names_that_no_file_can_hold():
    name, x = "a\ud800", nn.Variable((2,))
    solver = S.Sgd()
    calls = [
        lambda: nn.parameter.get_parameter_or_create(name, (2,)),
        lambda: nn.parameter.set_parameter(name, x),
        lambda: nn.parameter_scope(name).__enter__(),
        lambda: nn.save_parameters("never.h5", {name: x}),
        lambda: solver.set_parameters({name: x}),
        lambda: solver.set_states({name: S.SolverState()}),
    ]
    for call in calls:
        with pytest.raises(nn.Error):
            call()


def statistics(n: int) -> list[Variable]:
    return [leaf(np.full((1, n, 1, 1), v)) for v in (0, 1, 0.5, 2)]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    "wrong",
    [
        {"z": np.ones((2, 4, 5, 5))},
        {"z": 3},
        {"outputs": 5},
        {"outputs": []},
        {"outputs": [NdArray((3,))]},
        {"eps": "a"},
        {"nonlinearity": "elu", "nonlinearity_args": ["a"]},
    ],
)
def test_a_refused_fused_convolution_moves_no_statistics(static, wrong):
    x, w, own = var(2, 4, 5, 5), var(4, 4, 3, 3), statistics(4)
    wrong = {k: leaf(v) if isinstance(v, np.ndarray) else v for k, v in wrong.items()}
    before = [v.d.copy() for v in own]
    given = [x, w, None, *own]
    if not static:
        given = [v and v.data for v in given]
        wrong = {k: v.data if isinstance(v, Variable) else v for k, v in wrong.items()}
    with nn.auto_forward(True), pytest.raises(nn.Error, match="^fused_convolution: argument"):
        F.fused_convolution(*given, **wrong)
    for v, b in zip(own, before, strict=True):
        np.testing.assert_array_equal(v.d, b)


FUSED = [
    ({"nonlinearity": "leaky_relu", "nonlinearity_args": None}, "nonlinearity_args"),
    ({"nonlinearity": "leaky_relu", "nonlinearity_args": ["a"]}, "nonlinearity_args"),
    ({"nonlinearity": "elu", "nonlinearity_args": 0.3}, "nonlinearity_args"),
    ({"nonlinearity_args": [1, 2, 3]}, "nonlinearity_args"),
    ({"nonlinearity": ["relu"]}, "nonlinearity"),
    ({"base_axis": "a", "pad": (1, 1), "pad_mode": "reflect"}, "base_axis"),
    ({"base_axis": 9, "pad": (1, 1), "pad_mode": "reflect"}, "base_axis"),
    ({"pad": (1.5, 1), "pad_mode": "reflect"}, "pad"),
    ({"pad": 3, "pad_mode": "reflect"}, "pad"),
    ({"pad": (1,)}, "pad"),
    ({"pad": (1, 1), "constant_value": "a"}, "constant_value"),
    ({"channel_last": np.ones(2), "pad": (1, 1), "pad_mode": "reflect"}, "channel_last"),
    ({"eps": "a"}, "eps"),
    ({"decay_rate": "a"}, "decay_rate"),
    ({"bias": 3}, "bias"),
    ({"bias": nn.Variable((3,))}, "bias"),
    ({"group": "a"}, "group"),
    ({"outputs": [3]}, "outputs"),
]


@pytest.mark.parametrize(("wrong", "argument"), FUSED)
def test_errors_of_fused_convolution_name_it(wrong, argument):
    with pytest.raises(nn.Error, match=f"^fused_convolution: argument '{argument}'"):
        F.fused_convolution(var(2, 4, 5, 5), var(4, 4, 3, 3), **wrong)


def test_fused_batch_normalization_takes_arrays():
    x = var(2, 4, 5, 5)
    for given, wrong in ((x, {"output_stat": "x", "z": 3}), (3, {"z": x}), (x, {"nonlinearity": np.ones(2)})):
        with pytest.raises(nn.Error, match="^fused_batch_normalization: argument"):
            F.fused_batch_normalization(given, *statistics(4), **wrong)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"axes": None}, "axes"),
        ({"axes": "a"}, "axes"),
        ({"axes": [1.5]}, "axes"),
        ({"axes": 9}, "axes"),
        ({"param_init": 5}, "param_init"),
        ({"param_init": {"beta": 5}}, r"param_init\['beta'\]"),
        ({"param_init": {"var": np.ones(3)}}, r"param_init\['var'\]"),
        ({"comm": type("One", (), {"size": 1, "all_reduce": None}), "eps": "a"}, "eps"),
        ({"no_bias": np.ones(2)}, "no_bias"),
        ({"inp": None}, "inp"),
    ],
)
def test_sync_batch_normalization_with_wrong_arguments(wrong, argument):
    with pytest.raises(nn.Error, match=f"^sync_batch_normalization: argument '{argument}'"):
        PF.sync_batch_normalization(**{"inp": var(2, 4, 5, 5), "comm": None, **wrong})
    assert not nn.get_parameters(grad_only=False)
