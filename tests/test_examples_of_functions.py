"""Each function, layer and solver has an example in its docstring, and it prints what it says."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs import _composites, _core

FUNCTIONS = sorted({f["name"] for f in _core.registry()} | set(_composites.__all__))
LAYERS = [name for name in PF.__all__ if name not in ("parametric_function_api", "LSTMCell")]
SOLVERS = [s["name"] for s in _core.solver_registry()]


def prints_what_it_says(documented: Callable[..., Any], known: dict[str, Any] | None = None) -> None:
    text = inspect.getdoc(documented) or ""
    assert text.count(">>>") > 1, "an example"
    nn.clear_parameters()
    nn.seed(313)
    test = doctest.DocTestParser().get_doctest(text, dict(known or {}), documented.__name__, None, None)
    failed = doctest.DocTestRunner().run(test).failed
    nn.clear_parameters()
    assert not failed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    prints_what_it_says(getattr(F, name))


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    prints_what_it_says(getattr(PF, name), vars(PF))


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name: str) -> None:
    prints_what_it_says(getattr(S, name))


def test_as_many_as_nnabla_has() -> None:
    assert len(FUNCTIONS) >= 228
    assert len(LAYERS) >= 42
    assert len(SOLVERS) == 18
