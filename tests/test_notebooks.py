"""What notebooks show of variables, arrays, functions, parameters and graphs: well-formed, and true."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from xml.etree import ElementTree

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.experimental.viewers import SimpleGraph
from nnrs.utils.profiler import GraphProfiler


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


def text(html):
    """All text of well-formed HTML."""
    return " ".join("".join(ElementTree.fromstring(f"<div>{html}</div>").itertext()).split())


def test_an_array():
    a = nn.NdArray.from_numpy_array(np.float32([[1, 2]]))
    assert text(a._repr_html_()) == "NdArray (1, 2) float32array([[1., 2.]], dtype=float32)"
    assert text(nn.NdArray((50, 50))._repr_html_()) == "NdArray (50, 50) float32"


def test_a_variable():
    v = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    v.name, v.g = "<w>", 3
    said = text(v._repr_html_())
    assert said.startswith("Variable '<w>' (2,) float32, need_grad=Truearray([1., 2.], dtype=float32)gradient")
    assert "array([3., 3.], dtype=float32)" in said


def test_a_variable_of_a_graph():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    h = F.tanh(x)
    y = F.sum(h)
    y.forward()
    said = text(y._repr_html_())
    assert ", from Sum" in said and "graph: 2 functions" in said and "Tanh" in said
    y.backward()
    text(h._repr_html_())
    for _ in range(100):
        y = F.identity(y)
    assert "graph" not in text(y._repr_html_())


@pytest.mark.host
def test_looking_changes_nothing():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    x.grad.zero()
    y = F.sum(F.exp(x) * 2)
    y.forward()
    counts = x.data.modification_count, y.data.modification_count, x.grad.zeroing
    y._repr_html_(), x._repr_html_(), y.parent._repr_html_()
    assert (x.data.modification_count, y.data.modification_count, x.grad.zeroing) == counts
    y.backward()
    np.testing.assert_allclose(x.g, 2 * np.exp([1, 2]), rtol=1e-6)


def test_a_function():
    f = F.sum(nn.Variable((2, 3)), axis=1).parent
    assert text(f._repr_html_()) == "Sum(axes=[1], keep_dims=False)(2, 3) \N{RIGHTWARDS ARROW} (2,)"


def test_parameters():
    PF.affine(nn.Variable((2, 3)), 4, name="a<b")
    PF.batch_normalization(nn.Variable((2, 3)))
    params = nn.get_parameters(grad_only=False)
    said = text(params._repr_html_())
    assert "a<b/affine/W(3, 4)12float32True" in said and "6 parameters, 28 numbers" in said
    assert isinstance(params, OrderedDict) and repr(params) == repr(OrderedDict(params))
    assert type(pickle.loads(pickle.dumps(params))) is OrderedDict
    assert text(nn.Module().get_parameters()._repr_html_()).endswith("0 parameters, 0 numbers")
    assert type(params.copy()) is type(params)


def test_pictures_of_graphs():
    x = nn.Variable((2, 3), need_grad=True)
    y = F.sum(F.tanh(x))
    picture = SimpleGraph().draw(y)
    assert picture._repr_svg_() == picture.svg and "Tanh" in text(picture.svg)
    profiler = GraphProfiler(y, 0, "cpu", n_run=2, time_scale="u")
    profiler.run()
    said = text(SimpleGraph().draw(y, profile=profiler).svg)
    assert said.count("\N{MICRO SIGN}s") == 2
    with pytest.raises(ValueError, match="expected a profiler of this graph"):
        SimpleGraph().draw(F.sum(x), profile=profiler)
    with pytest.raises(RuntimeError, match="there are no results yet"):
        SimpleGraph().draw(y, profile=GraphProfiler(y, 0, "cpu"))
