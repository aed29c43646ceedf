"""Functions that write what others read: F.assign, running statistics, fills in place; held against NNabla 1.39."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_updates  # noqa: E402

EXPECTED = json.loads((GOLDEN / "updates.json").read_text())


@pytest.mark.parametrize("name", make_updates.CASES)
def test_as_in_nnabla(name, fusion):
    mine, golden = make_updates.CASES[name](nn, F), EXPECTED[name]
    assert len(mine) == len(golden)
    for ours, theirs in zip(mine, golden, strict=True):
        if all(isinstance(v, float) for v in theirs):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
        else:
            assert ours == theirs


def put(row, place, out, **args):
    """A row put at a place of `out`."""
    array = lambda v: nn.Variable.from_numpy_array(np.array(v, "f"))  # noqa: E731
    return F.scatter_nd(array(row), array(place), out=out, **args)


def test_results_keep_their_values_when_the_array_is_written_again(fusion):
    out = nn.Variable.from_numpy_array(np.zeros(3, "f"))
    y = put([1], [[0]], out)
    z = put([2], [[1]], out)
    w = F.sin(y) + F.sin(z)
    for _ in range(2):
        w.forward()
    np.testing.assert_array_equal(y.d, [1, 2, 0])
    np.testing.assert_array_equal(out.d, [1, 2, 0])
    w.forward(clear_buffer=True)
    np.testing.assert_array_equal(w.parent.inputs[1].parent.inputs[0].d, [1, 2, 0])


def test_what_a_function_has_made_is_not_written(fusion):
    x = nn.Variable.from_numpy_array(np.float32([0.5, 1.0]), need_grad=True)
    h = F.exp(x)
    y = put([7], [[0]], h)
    assert [y.parent.inplace_data(i) for i in range(3)] == [0, 0, 0]
    x.g = 0
    (y * h).forward()
    np.testing.assert_allclose(h.d, np.exp(x.d), rtol=1e-6)
    s = F.sum(y * h)
    s.forward()
    s.backward()
    e = np.exp(np.float32([0.5, 1.0]))
    np.testing.assert_allclose(x.g, [7 * e[0], 2 * e[1] ** 2], rtol=1e-5)


@pytest.mark.parametrize("wrong", [[[3]], [[-4]]])
def test_a_wrong_place_leaves_the_array_as_it_was(wrong):
    out = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    y = put([9], wrong, out)
    if nn.get_current_context().backend[0].startswith("cpu"):
        with pytest.raises(ValueError, match="indices"):
            y.forward()
    np.testing.assert_array_equal(out.d, [1, 2, 3])


def test_rows_of_the_array_itself_are_added_to_it():
    out = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    places = nn.Variable.from_numpy_array(np.array([[2, 0, 1]]))
    y = F.scatter_nd(out, places, out=out, add=True)
    y.forward()
    np.testing.assert_array_equal(out.d, [3, 5, 4])
    np.testing.assert_array_equal(y.d, [3, 5, 4])


def test_a_view_of_the_array_sees_what_is_written():
    out = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    view = out.d
    y = put([9], [[1]], out)
    for _ in range(2):
        y.forward()
    np.testing.assert_array_equal(out.d, [1, 9, 3])
    if nn.get_current_context().backend[0].startswith("cpu"):
        np.testing.assert_array_equal(view, [1, 9, 3])


READERS = {
    "a product": lambda v: v * 2,
    "a copy": lambda v: F.sin(v.get_unlinked_variable(need_grad=True)),
    "a matrix product": lambda v: F.affine(F.reshape(v, (1, 3)), nn.Variable.from_numpy_array(np.eye(3, dtype="f"))),
}


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_another_function_that_reads_the_array_is_an_error(name, auto):
    v = nn.Variable.from_numpy_array(np.float32([0.5, 1, 1.5]), need_grad=True)
    if auto and name == "a copy":
        pytest.skip("a copy's readers are not known")
    with (
        nn.auto_forward(auto),
        pytest.raises(RuntimeError, match="it writes into 'out', which .* reads too[\\s\\S]*F.identity"),
    ):
        b = READERS[name](v)
        (F.sum(b) + F.sum(put([9], [[0]], v))).forward()
    np.testing.assert_array_equal(v.d, [0.5, 1, 1.5])


def test_assigning_to_what_was_read_names_itself():
    with nn.auto_forward():
        v = nn.Variable.from_numpy_array([[0.0, 1.0]], need_grad=True)
        y = F.sum(v * v)
        with pytest.raises(RuntimeError, match=r"__setitem__: argument 'x'.*\n.*x\.d\[key\] = value"):
            v[0, 1] = 9
        v.d[0, 1] = 9
    assert v.d.tolist() == [[0, 9]] and y.d == 1
