"""Signatures of the API, settings in the environment, and types as checkers see them."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pydoc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import _environment

HERE = Path(__file__).parent


def var(*shape: int) -> nn.Variable:
    return nn.Variable(shape, need_grad=True)


@pytest.fixture(autouse=True)
def fresh():
    yield
    nn.clear_parameters()
    nn.memory.set_limit(None)


# --- signatures -------------------------------------------------------------------------------------------------------


def test_help_shows_the_signature():
    for function in (F.leaky_relu, nn.grad, nn.parametric_functions.affine):
        text = pydoc.plaintext.document(function, function.__name__)
        assert text.startswith(f"{function.__name__}({next(iter(inspect.signature(function).parameters))}"), text
    shown = " ".join(pydoc.render_doc(F.leaky_relu, renderer=pydoc.plaintext).split()).replace("( ", "(")
    assert ": function in module nnrs.functions leaky_relu(x: Variable | NdArray, alpha: float = 0.1, inplace:" in shown
    assert ") -> Variable | NdArray Leaky rectified linear unit" in shown


def test_a_function_in_a_class_stays_a_function():
    class Net:
        act = F.relu

    assert Net().act is F.relu


def value(node: ast.expr) -> Any:
    """The value of a default: a literal, or one of NumPy's types."""
    return getattr(np, node.attr) if isinstance(node, ast.Attribute) else ast.literal_eval(node)


def arguments(code: str) -> list[tuple[str, Any]]:
    """Names and defaults of the arguments of `name(...)`; what is variadic without its keywords."""
    definition = ast.parse(f"def {code}: pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    defaults = [inspect.Parameter.empty] * (len(given.args) - len(given.defaults))
    values = [*defaults, *map(value, given.defaults)]
    names = [a.arg for a in given.args] + ([given.vararg.arg] if given.vararg else [])
    return list(zip(names, [*values, inspect.Parameter.empty], strict=False))


def test_signatures_are_nnablas():
    """Names, order and defaults; `n_outputs` and `outputs` may follow where NNabla does not have them."""
    known = json.loads((HERE / "golden" / "signatures.json").read_text())
    checked = 0
    for name, code in known.items():
        if not hasattr(F, name):
            continue
        ours = [(p.name, p.default) for p in inspect.signature(getattr(F, name)).parameters.values()]
        theirs = [(n, () if d == [] else d) for n, d in arguments(code)]
        assert [(n, () if d == [] else d) for n, d in ours[: len(theirs)]] == theirs, name
        more = {n for n, _ in ours[len(theirs) :]}
        assert more <= {"n_outputs", "outputs"} or "*" in code, (name, more)
        checked += 1
    assert checked > 100


def test_scatter_nd_by_position():
    data = nn.Variable.from_numpy_array(np.array([5.0, 7.0], "f4"), need_grad=True)
    index = nn.Variable.from_numpy_array(np.array([[0, 3]], np.int32))
    y = F.scatter_nd(data, index, (5,))
    y.forward()
    assert y.d.tolist() == [5, 0, 0, 7, 0]
    onto = nn.Variable.from_numpy_array(np.ones(4, "f4"))
    y = F.scatter_nd(data, index, None, onto, True)
    y.forward()
    assert y.d.tolist() == [6, 1, 1, 8]


# --- environment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [
        ("NNRS_NUM_THREADS", ["abc", "-1", "0"], "2"),
        ("NNRS_SIMD", ["zzz"], "portable"),
        ("NNRS_FUSION", ["zz"], "0"),
        ("NNRS_EXACT_CONVOLUTION", ["zz"], "1"),
        ("NNRS_TUNED", ["zz"], "0"),
        ("NNRS_KEEP_WEIGHTS", ["zz"], "0"),
    ],
)
def test_settings_that_cannot_be_used_are_warned_of(monkeypatch, name, bad, good):
    for text in bad:
        monkeypatch.setenv(name, text)
        with pytest.warns(RuntimeWarning, match=f"{name} is ignored: expected .*, got '{text}'"):
            _environment.check()
    monkeypatch.setenv(name, good)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _environment.check()


def test_importing_warns_of_settings_once():
    code = "import nnrs; import nnrs.functions; nnrs.Variable((2,)).d"
    env = {**os.environ, "NNRS_SIMD": "zzz"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("NNRS_SIMD is ignored") == 1


# --- types ------------------------------------------------------------------------------------------------------------

SCRIPT = """
import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

x = nn.Variable((8, 3))
h = F.relu(F.batch_normalization(PF.affine(x, 5, name="fc"), None, None, None, None))
loss = F.mean(F.sum(h, axis=1) + F.max(h, axis=1) * 2)
pair = F.max(h, axis=1, with_index=True)
norms = F.norm(h, p=2, axis=1), F.prod(h, axis=(0, 1)), F.min(h, axis=-1)
array = F.tanh(nn.NdArray((2,)))
solver = S.Sgd(lr=0.1)
solver.set_parameters(nn.get_parameters())
loss.forward(clear_no_need_grad=True)
solver.update()
reveal_type(loss)
reveal_type(array)
reveal_type(F.rand(shape=(2,)))
reveal_type(F.clip_by_value(x, 0, 1))
"""
WRONG = """
import nnrs as nn
import nnrs.functions as F

F.tanh(nn.Variable((2,))).froward()
F.tanh(nn.Variable((2,)), foo=1)
F.sum(nn.Variable((2,)), axis=1.5)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says of both scripts, nearly all of whose time goes into reading nnrs, and of nnrs."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("types")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "script.py", "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return done.stdout.splitlines()


def test_types_of_an_ordinary_script(said):
    """Strict, nnrs itself included."""
    said = [line for line in said if not line.startswith("wrong.py:") and not line.startswith("Found ")]
    assert not [line for line in said if "error" in line], said
    types = [line.split('"')[1].rsplit(".", 1)[-1] for line in said if "Revealed" in line]
    assert types == ["Variable", "NdArray", "Variable", "Variable"]


def test_types_find_mistakes(said):
    errors = [line for line in said if line.startswith("wrong.py:") and "error:" in line]
    for word in ("froward", "foo", "axis"):
        assert any(word in line for line in errors), (word, errors)
