"""Rules under NNabla's names that nnrs does not need itself: of gradients, and of functions that are made of others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import Variable, backward_functions

S = (1, 2, 1)


def leaf(*shape: int, seed: int = 0) -> Variable:
    return Variable.from_numpy_array(np.random.default_rng(seed).normal(size=shape), need_grad=True)


def statistics(*shape: int) -> list[Variable]:
    values = np.random.default_rng(9).normal(size=(2, *shape))
    return [Variable.from_numpy_array(v) for v in (values[0], np.abs(values[1]) + 0.5)]


def shapes(variables: Sequence[Variable | None]) -> list[tuple[int, ...] | None]:
    return [None if v is None else v.shape for v in variables]


def called(
    name: str, seeds: list[Variable], x: list[Variable], y: list[Variable], **args: object
) -> list[Variable | None]:
    made = getattr(backward_functions, name)(seeds, x, shapes(x), y, shapes(y), **args)
    assert isinstance(made, tuple if len(x) > 1 else Variable)
    return list(made) if isinstance(made, tuple) else [made]


def by_backward(outputs: Sequence[Variable], seeds: Sequence[Variable], leaves: Sequence[Variable]) -> list[np.ndarray]:
    """The gradients of leaves by the engine's backward."""
    for v in leaves:
        v.g = 0
    loss = sum((F.sum(y * g) for y, g in zip(outputs, seeds, strict=True)), start=F.constant(0, ()))
    loss.forward()
    loss.backward()
    return [v.g.copy() for v in leaves]


def values(variables: Sequence[Variable | None]) -> list[np.ndarray]:
    found = [F.constant(0, S) if v is None else v for v in variables]
    nn.forward_all(found)
    return [v.d.copy() for v in found]


def hold(mine: Sequence[Variable | None], wanted: Sequence[int], expected: Sequence[np.ndarray]) -> None:
    assert [i for i, v in enumerate(mine) if v is not None] == list(wanted)
    found = [v for v in mine if v is not None]
    nn.forward_all(found)
    for v, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(v.d, e, rtol=1e-9, atol=1e-9)


WINDOWS = {"base_axis": 1, "pad": (1, 0), "stride": (1, 2), "dilation": (1, 1), "group": 1, "channel_last": False}
POOL = {"kernel": (2, 2), "stride": (2, 2), "ignore_border": True, "pad": (0, 0), "channel_last": False}
# The function, shapes of its inputs, its arguments, and which of its inputs' gradients the rule is of.
LINEAR: dict[str, tuple[Callable[..., Variable], list[tuple[int, ...]], dict[str, object], list[int]]] = {
    "affine_data_grad": (F.affine, [(2, 3, 2), (2, 4)], {"base_axis": 2}, [0]),
    "affine_filter_grad": (F.affine, [(2, 3), (3, 4)], {}, [1]),
    "convolution_data_grad": (F.convolution, [(1, 2, 4, 5), (3, 2, 2, 2)], WINDOWS, [0]),
    "convolution_filter_grad": (F.convolution, [(1, 2, 4, 5), (3, 2, 2, 2)], WINDOWS, [1]),
    "deconvolution_data_grad": (F.deconvolution, [(1, 2, 4, 5), (2, 3, 2, 2)], WINDOWS, [0]),
    "deconvolution_filter_grad": (F.deconvolution, [(1, 2, 4, 5), (2, 3, 2, 2)], WINDOWS, [1]),
    "average_pooling_data_grad": (F.average_pooling, [(1, 2, 4, 4)], {**POOL, "including_pad": True}, [0]),
    "sum_pooling_data_grad": (F.sum_pooling, [(1, 2, 4, 4)], POOL, [0]),
    "global_average_pooling_data_grad": (F.global_average_pooling, [(1, 2, 4, 4)], {}, [0]),
    "pad_data_grad": (F.pad, [(2, 4)], {"pad_width": (1, 2), "mode": "constant", "constant_value": 5.0}, [0]),
    "slice_data_grad": (F.slice, [(4, 5)], {"start": (0, 1), "stop": (4, 3), "step": (2, 1)}, [0]),
    "transpose_data_grad": (F.transpose, [(2, 3, 4)], {"axes": (2, 0, 1)}, [0]),
    "unpooling_data_grad": (F.unpooling, [(1, 2, 2, 3)], {"kernel": (2, 2), "channel_last": False}, [0]),
    "interpolate_data_grad": (F.interpolate, [(1, 2, 3)], {"output_size": (4, 6), "mode": "linear"}, [0]),
    "concatenate_data_grad": (F.concatenate, [(2, 3), (2, 4)], {"axis": 1}, [0, 1]),
}


@pytest.mark.parametrize("name", LINEAR)
def test_rules_of_gradients_of_linear_functions(name: str) -> None:
    function, sizes, args, of = LINEAR[name]
    with nn.context_scope(nn.Context(["cpu:double"])):
        x = [leaf(*s, seed=k) for k, s in enumerate(sizes)]
        y = function(*x, **args | ({"align_corners": True} if name == "interpolate_data_grad" else {}))
        gy, seeds = leaf(*y.shape, seed=7), [leaf(*sizes[i], seed=8 + i) for i in of]
        inputs = [gy] + [v for i, v in enumerate(x) if i not in of]
        outputs = nn.grad([y], [x[i] for i in of], [gy])
        expected = by_backward(outputs, seeds, inputs)
        hold(called(f"{name}_backward", seeds, inputs, outputs, **args), range(len(inputs)), expected)
        hold(as_function(name, [x[i].shape for i in of], inputs, args), range(len(of)), [v.d for v in outputs])


def as_function(
    name: str, sizes: list[tuple[int, ...]], inputs: list[Variable], args: dict[str, object]
) -> list[Variable]:
    """The gradient itself, by the class under NNabla's name."""
    module, kind, _ = name.rsplit("_", 2)
    made = getattr(importlib.import_module(f"nnrs.backward_function.{module}"), class_of(name))(None, **args)
    assert made.name == class_of(name) and made.args == args
    attribute = "xshapes" if module == "concatenate" else "xshape" if kind == "data" else "wshape"
    with pytest.raises(nn.Error, match=f"argument '{attribute}': expected the shape of what the gradient is of"):
        made(*inputs)
    setattr(made, attribute, sizes if attribute == "xshapes" else sizes[0])
    found = made(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def class_of(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def test_a_gradient_of_places() -> None:
    places = Variable.from_numpy_array(np.array([0, 2, 2]))
    gy, seed = leaf(3, 4), leaf(3, 4, seed=1)
    with nn.context_scope(nn.Context(["cpu:double"])):
        hold(called("embed_filter_grad_backward", [seed], [gy, places], [gy]), [0], [seed.d[[0, 2, 2]]])


def test_inputs_that_are_made_of_each_other() -> None:
    """The gradient by each input goes through no other input."""
    w = leaf(3, 4)
    gy = F.affine(leaf(2, 3, seed=1), w)
    g, _ = called("affine_data_grad_backward", [leaf(2, 3, seed=2)], [gy, w], [gy])[::-1]
    assert g is not None
    alone = called("affine_data_grad_backward", [leaf(2, 3, seed=2)], [gy.get_unlinked_variable(), w], [gy])[1]
    assert alone is not None
    nn.forward_all([gy, g, alone])
    np.testing.assert_array_equal(g.d, alone.d)


@pytest.mark.parametrize("batch_stat", [True, False])
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_the_gradients_of_batch_normalization(batch_stat: bool, scale: bool, bias: bool) -> None:
    with nn.context_scope(nn.Context(["cpu:double"])):
        x, beta, gamma = leaf(4, 2, 3), leaf(*S, seed=1) if bias else None, leaf(*S, seed=2) if scale else None
        running, gy = statistics(*S), leaf(4, 2, 3, seed=3)
        given = [v for v in (x, beta, gamma) if v is not None]
        y = F.batch_normalization(x, beta, gamma, *running, batch_stat=batch_stat)
        seeds = [leaf(*v.shape, seed=4 + k) for k, v in enumerate(given)]
        wanted = [v for v in (gy, x, gamma) if v is not None]
        expected = by_backward(nn.grad([y], given, [gy]), seeds, wanted)
        inputs = [gy, *given, *statistics(*S)]
        args = {"axes": (1,), "batch_stat": batch_stat, "no_scale": not scale, "no_bias": not bias}
        from nnrs.backward_function.batch_normalization import BatchNormalizationBackward

        found = BatchNormalizationBackward(None, **args)(*inputs)
        first = nn.grad([y], given, [gy])
        hold(found if isinstance(found, tuple) else [found], range(len(given)), values(first))
        mine = called("batch_normalization_backward_backward", seeds, inputs, given, **args)
        hold(mine, [0, 1] + ([2 + bias] if scale else []), expected)


@pytest.mark.parametrize("batch_stat", [True, False])
@pytest.mark.parametrize("with_z", [True, False])
def test_fused_batch_normalization(batch_stat: bool, with_z: bool) -> None:
    with nn.context_scope(nn.Context(["cpu:double"])):
        x = [leaf(4, 2, 3), leaf(*S, seed=1), leaf(*S, seed=2)]
        z, gy = [leaf(4, 2, 3, seed=5)] * with_z, leaf(4, 2, 3, seed=3)
        y = F.fused_batch_normalization(*x, *statistics(*S), *z, batch_stat=batch_stat)
        y.forward()
        inputs, args = [*x, *statistics(*S), *z], {"axes": (1,), "batch_stat": batch_stat}
        held, kinds = Variable.from_numpy_array(y.d.copy()), [0, 1, 2, 5][: 3 + with_z]
        made = called("fused_batch_normalization_backward", [gy], inputs, [held], **args)
        hold(made, kinds, by_backward([y], [gy], [*x, *z]))
        seeds = [leaf(*v.shape, seed=4 + k) for k, v in enumerate([*x, *z])]
        expected = by_backward([made[k] for k in kinds], seeds, [gy, x[0], x[2]])  # type: ignore[misc]
        gradients = [gy, *x, *statistics(*S), held, *z]
        hold(
            called("fused_batch_normalization_backward_backward", seeds, gradients, list(x), **args),
            [0, 1, 3],
            expected,
        )
        from nnrs.backward_function.fused_batch_normalization import FusedBatchNormalizationBackward

        function = FusedBatchNormalizationBackward(nn.get_current_context(), **args)
        function.is_add = with_z
        hold(function(*gradients), range(len(kinds)), values([made[k] for k in kinds]))
        with pytest.raises(nn.Error, match="argument 'nonlinearity': expected 'relu'"):
            called("fused_batch_normalization_backward", [gy], inputs, [held], nonlinearity="tanh")


def test_einsum() -> None:
    with nn.context_scope(nn.Context(["cpu:double"])):
        x, gy = [leaf(2, 3), leaf(3, 4, seed=1)], leaf(2, 4, seed=2)
        expected = by_backward([F.einsum(*x, equation="ij,jk->ik")], [gy], x)
        hold(called("einsum_backward", [gy], x, [gy], equation="ij,jk->ik"), [0, 1], expected)


@pytest.mark.parametrize("normalized", [True, False])
def test_fused_convolution(normalized: bool) -> None:
    """What runs to have the gradient moves no running statistics."""
    with nn.context_scope(nn.Context(["cpu:double"])):
        x = [leaf(2, 2, 4, 4), leaf(3, 2, 2, 2, seed=1)]
        one = (1, 3, 1, 1)
        rest = [None, leaf(*one, seed=2), leaf(*one, seed=3), *statistics(*one)] if normalized else []
        args = {"pad": (1, 0), "nonlinearity": "tanh"}
        y = F.fused_convolution(*x, *rest, **args)
        gy, wanted = leaf(*y.shape, seed=4), [0, 1, 3, 4] if normalized else [0, 1]
        given = [*x, *rest]
        expected = by_backward([y], [gy], [given[i] for i in wanted])
        before = [v.d.copy() for v in given[5:]]
        hold(called("fused_convolution_backward", [gy], given, [y], **args), wanted, expected)
        assert all((v.d == b).all() for v, b in zip(given[5:], before, strict=True))


def test_sync_batch_normalization_of_one_process() -> None:
    class Alone:
        size = 1

        def all_reduce(self, data: object, **options: object) -> None:
            raise AssertionError("there is nobody else")

    with nn.context_scope(nn.Context(["cpu:double"])):
        x, running, gy = [leaf(4, 2, 3), leaf(*S, seed=1), leaf(*S, seed=2)], statistics(*S), leaf(4, 2, 3, seed=3)
        expected = by_backward([F.batch_normalization(*x, *statistics(*S))], [gy], x)
        before = [v.d.copy() for v in running]
        made = called("sync_batch_normalization_backward", [gy], [*x, *running], [gy], comm=Alone(), axes=(1,))
        hold(made, [0, 1, 2], expected)
        assert all((v.d == b).all() for v, b in zip(running, before, strict=True))


def test_where_they_are() -> None:
    modules = {"affine": "affine_data_grad affine_filter_grad", "embed": "embed_filter_grad", "einsum": "einsum"}
    modules["batch_normalization"] = "batch_normalization batch_normalization_backward"
    modules["fused_batch_normalization"] = "fused_batch_normalization fused_batch_normalization_backward"
    for module, names in modules.items():
        for name in names.split():
            rule = getattr(importlib.import_module(f"nnrs.backward_function.{module}"), f"{name}_backward")
            assert rule is getattr(backward_functions, f"{name}_backward") and rule.__name__ == f"{name}_backward"


def test_wrong_arguments() -> None:
    x = leaf(2, 3)
    with pytest.raises(nn.Error, match="transpose_data_grad_backward: .*at most 1"):
        backward_functions.transpose_data_grad_backward([x], [x], [], [], [], (1, 0), 3)
    with pytest.raises(nn.Error, match="keyword argument 'axis'"):
        called("transpose_data_grad_backward", [x], [leaf(3, 2)], [x], axis=(1, 0))


def test_the_gradient_of_the_gradient_of_max_pooling() -> None:
    """As NNabla's."""
    from nnrs.backward_function.max_pooling_backward import MaxPoolingBackwardDataGrad

    function = MaxPoolingBackwardDataGrad(nn.Context(["cpu:float"]), (2, 2), (2, 2), True, (0, 0))
    function.yshape = (1, 1, 2, 2)
    x = Variable.from_numpy_array(np.arange(16.0).reshape(1, 1, 4, 4))
    hold([function(x * 10, x)], [0], [np.array([[[[50, 70], [130, 150]]]])])


def test_helpers() -> None:
    """NNabla's results."""
    from nnrs.backward_function import utils

    x = Variable.from_numpy_array(np.arange(6.0).reshape(2, 3), need_grad=True)
    assert utils.no_grad(x) is x and not x.need_grad
    assert (utils.force_list(3), utils.force_list((1, 2)), utils.force_tuple([1, 2])) == ([3], [1, 2], (1, 2))
    assert (utils.positive_axis(-1, 4), utils.positive_axis(2, 4)) == (3, 2)
    assert utils.create_slice((2, 5), 1) == ([0, 0], [2, 2], [1, 1])
    assert utils.create_slice((2, 5), -1, front=False) == ([0, 2], [2, 5], [1, 1])
    for shape, axis in (((1, 3), 0), ((2, 1), 1)):
        hold([utils.sum_for_arithmetics(x, Variable(shape))], [0], [x.d.sum(axis, keepdims=True)])
    hold([utils.sum_for_arithmetics_with_shape(x, (2, 3))], [0], [x.d])
