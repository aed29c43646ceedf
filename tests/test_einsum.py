"""`einsum`, `dot` and `@` in a graph whose arrays get other sizes, and in files: nothing keeps the first ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.numpy_compat_functions as NF
from nnrs.utils.load import load
from nnrs.utils.nnp_graph import NnpLoader
from nnrs.utils.save import save

# Sizes of the labels, of which one run after the other has each; capitals stand for the axes of `...`.
SIZES = [
    dict(zip("abcdefXY", sizes, strict=True))
    for sizes in ((2, 3, 4, 5, 6, 2, 3, 2), (4, 2, 1, 3, 2, 5, 2, 4), (1,) * 8)
]
EQUATIONS = [
    "a,b->ab",
    "ab,ac->abc",
    "ab,c->bca",
    "a,abc->abc",
    "abc,b->abc",
    "abc,ab->bca",
    "abc,dbc->ad",
    "abc,bcd->ad",
    "abc,cbd->da",
    "abcd,cbae->ed",
    "abcd,ebd->aec",
    "abc,bdc->bad",
    "ab,ab->",
    "abc,bca->",
    "ab,b->a",
    "ab,cb,dc->ad",
    "ab,cd,ef->fdb",
    "...a,...a->...",
    "...ab,...bc->...ac",
    "...ab,bc->c...a",
    "aab,bc->ac",
]


def shapes_of(equation: str, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    terms = equation.partition("->")[0].replace("...", "XY").split(",")
    return [tuple(sizes[label] for label in term) for term in terms]


def by_numpy(equation: str, arrays: list[np.ndarray]) -> np.ndarray:
    left, _, result = equation.partition("->")
    wide = result if "..." in result or "..." not in left else f"...{result}"  # NumPy sums over no ellipsis
    y = np.asarray(np.einsum(f"{left}->{wide}", *(np.asarray(x, np.float64) for x in arrays)))
    return y if wide == result else y.sum(tuple(range(y.ndim - len(result))))


def holds(equation: str, y: Any, inputs: list[Any], seed: int) -> None:
    """Values, and the gradients: the result is linear in each array, so that with a gradient g of the result and any d
    in place of array i, the sum of d times i's gradient is that of g times the result of d."""
    rng = np.random.RandomState(seed)
    for x in inputs:
        x.d = rng.randn(*x.shape)
        x.need_grad = True
        x.grad.zero()
    y.forward()
    arrays = [np.array(x.d) for x in inputs]
    expected = by_numpy(equation, arrays)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.d, expected, rtol=1e-4, atol=1e-5)
    g = np.asarray(rng.randn(*y.shape), np.float32)
    y.backward(nn.NdArray.from_numpy_array(g))
    for i, x in enumerate(inputs):
        d = rng.randn(*x.shape)
        there = by_numpy(equation, [*arrays[:i], d, *arrays[i + 1 :]])
        np.testing.assert_allclose((d * x.g).sum(), (g * there).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_other_sizes(equation: str) -> None:
    inputs = [nn.Variable(shape) for shape in shapes_of(equation, SIZES[0])]
    y = F.einsum(*inputs, equation=equation)
    for seed, sizes in enumerate([*SIZES, SIZES[0]]):
        for x, shape in zip(inputs, shapes_of(equation, sizes), strict=True):
            x.reset_shape(shape, True)
        holds(equation, y, inputs, seed)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_second_derivatives(equation: str) -> None:
    """The derivative of the gradients' squares along a direction, beside differences."""
    rng, step = np.random.RandomState(5), 1e-4
    with nn.context_scope(nn.Context(["cpu:double"])):
        inputs = [nn.Variable(shape, need_grad=True) for shape in shapes_of(equation, SIZES[0])]
        ys = F.einsum(*inputs, equation=equation)
        squares = [F.sum(gx**2) for gx in nn.grad([F.sum(ys**2)], inputs)]
        z = squares[0] if len(squares) == 1 else F.add_n(*squares)
        arrays = [rng.uniform(0.5, 1.5, x.shape) for x in inputs]
        along = [rng.randn(*x.shape) for x in inputs]

        def at(place: float) -> float:
            for x, array, d in zip(inputs, arrays, along, strict=True):
                x.data.cast(np.float64)[...] = array + place * d
                x.grad.zero()
            z.forward()
            return float(z.d)

        slope = (at(step) - at(-step)) / (2 * step)
        at(0.0)
        z.backward()
        found = sum(float((x.g * d).sum()) for x, d in zip(inputs, along, strict=True))
        np.testing.assert_allclose(found, slope, rtol=1e-5)


def test_dot_of_other_sizes() -> None:
    a, b = nn.Variable((2, 3, 4)), nn.Variable((5, 4, 6))
    y = NF.dot(a, b)
    for n, (left, right) in enumerate([((2, 3, 4), (5, 4, 6)), ((4, 1, 2), (3, 2, 5))]):
        a.reset_shape(left, True)
        b.reset_shape(right, True)
        rng = np.random.RandomState(n)
        a.d, b.d = rng.randn(*left), rng.randn(*right)
        y.forward()
        np.testing.assert_allclose(y.d, np.dot(a.d, b.d), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("left", [(3,), (2, 3), (4, 2, 3)])
@pytest.mark.parametrize("right", [(3,), (3, 5), (4, 3, 5)])
def test_matmul_of_other_sizes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = nn.Variable(left), nn.Variable(right)
    y = a @ b
    for n, sizes in enumerate([{2: 2, 3: 3, 4: 4, 5: 5}, {2: 4, 3: 6, 4: 3, 5: 1}]):
        for x, shape in ((a, left), (b, right)):
            x.reset_shape(tuple(sizes[size] for size in shape), True)
            x.d = np.random.RandomState(n).randn(*x.shape)
        y.forward()
        expected = a.d @ b.d
        assert y.shape == expected.shape
        np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "before", "after"),
    [
        ("...i->...", [(2, 2)], [(2, 2, 2)]),
        ("...b->b...", [(1, 2)], [(2, 2, 2, 4)]),
        ("ab...->...a", [(4, 4)], [(1, 4, 3, 3)]),
        ("...,c->...", [(3,), (1,)], [(), (3,)]),
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)], [(2, 3, 1, 6), (2, 3, 6, 2)]),
        ("...ij,...jk->...ik", [(2, 3), (3, 4)], [(5, 2, 3), (3, 4)]),
        ("...i,...i->...", [(1, 2), (2, 2)], [(2, 2), (2, 2)]),
        ("...i,...i->...", [(2, 2), (2, 2)], [(1, 2), (2, 2)]),
        ("...i,...i->...", [(1, 3), (1, 3)], [(4, 2), (1, 2)]),
        ("...i,...i->i", [(3, 2), (1, 2)], [(1, 2), (3, 2)]),
        ("...,...->...", [(2, 3), (2, 3)], [(2, 1), (4,)]),
    ],
)
def test_other_axes(equation: str, before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> None:
    """What an ellipsis stands for, and which of its axes are stretched, is decided anew."""
    inputs = [nn.Variable(shape) for shape in before]
    y = F.einsum(*inputs, equation=equation)
    for seed, shapes in enumerate((before, after, before)):
        for x, shape in zip(inputs, shapes, strict=True):
            x.reset_shape(shape, True)
        holds(equation, y, inputs, seed)


@pytest.mark.parametrize(
    ("equation", "shapes", "wrong", "said"),
    [
        ("abc,dbc->ad", [(2, 3, 4), (5, 3, 4)], (5, 4, 3), "argument 'x.1.': expected size 3 for label 'b'"),
        ("ab,ac->abc", [(2, 3), (2, 4)], (3, 4), "argument 'x.1.': expected size 2 for label 'a'"),
        ("ab,ab->ab", [(2, 3), (2, 3)], (2, 1), "argument 'x.1.': expected size 3 for label 'b'"),
        ("ab,bc->ac", [(2, 3), (3, 4)], (3, 4, 1), "argument 'x.1.': expected an axis for each label of 'bc'"),
        (
            "...ab,...bc->...ac",
            [(2, 1, 3), (1, 3, 4)],
            (3, 3, 4),
            "argument 'x.1.': expected size 2 for an axis of '...'",
        ),
    ],
)
def test_sizes_that_do_not_fit(equation: str, shapes: list[tuple[int, ...]], wrong: tuple[int, ...], said: str) -> None:
    inputs = [nn.Variable(shape) for shape in shapes]
    y = F.einsum(*inputs, equation=equation)
    inputs[1].reset_shape(wrong, True)
    with pytest.raises(nn.Error, match=f"^einsum: {said}"):
        y.forward()
    inputs[1].reset_shape(shapes[1], True)
    holds(equation, y, inputs, 0)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_files(equation: str, tmp_path: Path) -> None:
    inputs = {f"x{i}": nn.Variable(shape) for i, shape in enumerate(shapes_of(equation, SIZES[0]))}
    y = F.einsum(*inputs.values(), equation=equation)
    contents = {"networks": [{"name": "net", "batch_size": 1, "outputs": {"y": y}, "names": inputs}]}
    save(tmp_path / "net.nnp", contents, variable_batch_size=False)
    net = NnpLoader(tmp_path / "net.nnp").get_network("net")
    holds(equation, net.outputs["y"], [net.inputs[name] for name in inputs], 0)
    assert load(tmp_path / "net.nnp").networks["net"] is not None


@pytest.mark.parametrize("equation", EQUATIONS)
def test_it_is_one_function(equation: str) -> None:
    """As in NNabla, whose name and argument it has."""
    inputs = [nn.Variable(shape) for shape in shapes_of(equation, SIZES[0])]
    f = F.einsum(*inputs, equation=equation).parent
    assert (f.info.type_name, f.arguments, len(f.inputs)) == ("Einsum", {"equation": equation}, len(inputs))


LETTERS = "abcde"


def drawn(rng: np.random.RandomState) -> tuple[str, list[tuple[int, ...]]]:
    """An equation of one to three arrays, with labels that are repeated, shared and summed, and sizes for it."""
    sizes = {label: int(rng.choice([1, 2, 3, 4, 7])) for label in LETTERS}
    terms = ["".join(rng.choice(list(LETTERS), rng.randint(0, 5))) for _ in range(rng.randint(1, 4))]
    known = sorted(set("".join(terms)))
    rng.shuffle(known)
    result = "".join(known[: rng.randint(0, len(known) + 1)])
    return f"{','.join(terms)}->{result}", [tuple(sizes[label] for label in term) for term in terms]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("strided", [False, True])
def test_any_equation(seed: int, strided: bool) -> None:
    """Also of arrays that are views of others: transposed, and repeated."""
    rng = np.random.RandomState(seed)
    equation, shapes = drawn(rng)
    inputs = [nn.Variable(shape) for shape in shapes]
    given: list[Any] = [F.transpose(x, range(x.ndim)[::-1]) if strided and x.ndim > 1 else x for x in inputs]
    if strided:
        terms, _, result = equation.partition("->")
        turned = ",".join(term[::-1] if len(term) > 1 else term for term in terms.split(","))
        holds(equation, F.einsum(*given, equation=f"{turned}->{result}"), inputs, seed)
    else:
        holds(equation, F.einsum(*given, equation=equation), inputs, seed)


@pytest.mark.parametrize("seed", range(60))
def test_any_equation_of_parts(seed: int) -> None:
    """Of arrays that are parts of others, their axes in another order, or backwards."""
    rng = np.random.RandomState(seed)
    equation, shapes = drawn(rng)
    terms, _, result = equation.partition("->")
    inputs = [nn.Variable(tuple(n + 1 for n in shape)) for shape in shapes]
    parts, arrays = [], []
    for i, (x, shape) in enumerate(zip(inputs, shapes, strict=True)):
        x.d = rng.randn(*x.shape)
        part, array = x, np.asarray(x.d)
        if shape:
            part = F.slice(part, (0,) * len(shape), shape)
            array = array[tuple(slice(n) for n in shape)]
            if i % 2:
                part, array = F.flip(part, range(len(shape))), np.flip(array)
            part, array = F.transpose(part, range(len(shape))[::-1]), array.transpose()
        parts.append(part)
        arrays.append(array)
    turned = ",".join(term[::-1] for term in terms.split(","))
    y = F.einsum(*parts, equation=f"{turned}->{result}")
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, by_numpy(f"{turned}->{result}", arrays), rtol=1e-4, atol=1e-5)


def test_orders_of_the_axes_of_a_product() -> None:
    """Every order of the axes of both arrays and of the result, at sizes that take more than one tile."""
    sizes = {"b": 3, "h": 2, "q": 17, "k": 33, "d": 8}
    rng = np.random.RandomState(1)
    for _ in range(40):
        orders = ["".join(rng.permutation(list(term))) for term in ("bhqd", "bhkd", "bhqk")]
        equation = f"{orders[0]},{orders[1]}->{orders[2]}"
        inputs = [nn.Variable(tuple(sizes[label] for label in term)) for term in orders[:2]]
        holds(equation, F.einsum(*inputs, equation=equation), inputs, 0)
