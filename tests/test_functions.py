"""Walks over every function that has a case file (tests/function/) and checks what can be checked of any function."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import function_harness as h
from backend import BACKEND
from each_case import each_case
from function_harness import F, Target, nn, scope


def walk(wanted: Any = lambda case: True, attribute: str = "CASES") -> Any:
    """Makes a test of one case a walk over all cases that are wanted."""
    return each_case(h.targets(attribute, wanted))


def close(target: Target, got: list[np.ndarray], expected: list[np.ndarray], key: str) -> None:
    """All outputs near the reference."""
    assert len(got) == len(expected), f"{len(got)} outputs, expected {len(expected)}"
    for k, (y, r) in enumerate(zip(got, expected, strict=True)):
        distance = h.error(y, r)
        assert distance <= h.tolerance(target.case, key), f"output {k}: {distance:.2e} off; got\n{y}\nexpected\n{r}"


def same(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """All outputs equal to the last bit."""
    assert len(got) == len(expected)
    for y, r in zip(got, expected, strict=True):
        np.testing.assert_array_equal(y, r)


def test_exists() -> None:
    missing = [name for name in h.modules() if not callable(getattr(F, name, None))]
    assert not missing, "they have tests/function/<name>.py, and F.<name> is not there"


@pytest.mark.skipif(h.ORACLE, reason="NNabla has no registry to ask")
def test_every_function_has_a_case_file() -> None:
    registry = {entry["name"] for entry in nn._core.registry()}
    assert not registry - set(h.modules()), "functions without tests/function/<name>.py"


@walk()
def test_forward(target: Target) -> None:
    for type_config in h.TYPES:
        if type_config in target.case.types:
            with h.told(type_config):
                runs_forward(target, type_config)


def runs_forward(target: Target, type_config: str) -> None:
    """The reference's values, and untouched inputs."""
    inputs = target.inputs(type_config)
    with scope(type_config):
        values = [h.variable(x) for x in inputs]
        got = h.forward(target, values)
    if target.case.check is not None:
        target.case.check(got, inputs)
    else:
        expected = [h.rounded(y, type_config) for y in target.reference(inputs)]
        close(target, got, expected, type_config)
    if not target.case.mutates:
        same([v.d for v in values if v is not None], [x for x in inputs if x is not None])


@pytest.mark.skipif(h.ORACLE, reason="NNabla makes no functions of lists of inputs")
@walk()
def test_made_again_by_what_it_says_of_itself(target: Target) -> None:
    """`f.info` has what NNabla's maker of that type takes, and the function that this makes gives as many outputs."""
    with scope("float"):
        f = target.call([h.variable(x) for x in target.inputs("float")])[0].parent
        make = getattr(nn.function, f.info.type_name)
        assert list(f.info.args) == list(inspect.signature(make).parameters)[1:]
        made = make(nn.get_current_context(), **f.info.args)(*f.inputs, n_outputs=len(f.outputs))
    made = list(made) if isinstance(made, (tuple, list)) else [made]
    assert [y.shape for y in made] == [y.shape for y in f.outputs]
    assert str(made[0].parent.info.args) == str(f.info.args)  # a NaN is no other one


def wants_grad(case: Any) -> bool:
    """Cases with something to differentiate."""
    return case.differentiable


def prepared(target: Target) -> tuple[h.Arrays, list[bool], list[int]]:
    """Inputs in the type of derivatives, which of them want one, and their places."""
    inputs = target.inputs(h.GRAD_TYPE)
    wants = target.case.wants_grad(inputs)
    places = [k for k, want in enumerate(wants) if want]
    if not places:
        pytest.skip("no input has a gradient")
    return inputs, wants, places


@walk(wants_grad)
def test_first_derivative(target: Target) -> None:
    inputs, wants, places = prepared(target)
    with scope(h.GRAD_TYPE):
        leaves = h.variables(inputs, wants)
        for v, want in zip(leaves, wants, strict=True):
            if v is not None and not want:
                v.g = 7
        outputs = target.call(leaves)
        nn.forward_all(outputs)
        chosen = h.differentiated(target, outputs)
        ws = h.weights([y.shape for y in chosen], seed=1)
        h.backward(chosen, ws)
        grads = [np.array(leaves[p].g) for p in places]
        for v, want in zip(leaves, wants, strict=True):
            assert v is None or want or (v.g == 7).all(), "an input without need_grad got a gradient"
    wide = [h.widened(x) for x in inputs]
    distance = h.first_differences(target, wide, places, ws, grads)
    assert distance <= h.tolerance(target.case, "grad"), f"{distance:.2e} off the finite differences"


@walk(wants_grad)
def test_gradients_accumulate(target: Target) -> None:
    inputs, wants, places = prepared(target)
    with scope(h.GRAD_TYPE):
        leaves = h.variables(inputs, wants)
        chosen = h.differentiated(target, target.call(leaves))
        nn.forward_all(chosen)
        ws = h.weights([y.shape for y in chosen], seed=1)
        h.backward(chosen, ws)
        first = [np.array(leaves[p].g, np.float64) for p in places]
        for p in places:
            leaves[p].g = 3
        h.backward(chosen, ws)
        before = 0 if target.case.sets else 3
        for p, grad in zip(places, first, strict=True):
            assert h.error(leaves[p].g, grad + before) <= h.TOLERANCE[h.GRAD_TYPE] * 10


@walk(wants_grad)
def test_need_grad_of_one_input_only(target: Target) -> None:
    inputs, wants, places = prepared(target)
    if len(places) < 2:
        pytest.skip("one input has a gradient")
    ws: list[np.ndarray] = []
    with scope(h.GRAD_TYPE):
        whole = gradients(target, inputs, wants, ws)
        for p in places:
            alone = gradients(target, inputs, [k == p for k in range(len(inputs))], ws)
            for q in places:
                expected = whole[q] if q == p else np.full_like(whole[q], 7)
                assert h.error(alone[q], expected) <= h.TOLERANCE[h.GRAD_TYPE] * 10


def gradients(target: Target, inputs: h.Arrays, wants: list[bool], ws: list[np.ndarray]) -> dict[int, np.ndarray]:
    """backward() with some inputs only; the gradients of the others start at 7."""
    leaves = h.variables(inputs, wants)
    for v, want in zip(leaves, wants, strict=True):
        if v is not None and not want:
            v.g = 7
    chosen = h.differentiated(target, target.call(leaves))
    nn.forward_all(chosen)
    ws = ws or h.weights([y.shape for y in chosen], seed=1)
    h.backward(chosen, ws)
    return {k: np.array(v.g) for k, v in enumerate(leaves) if v is not None}


def twice(case: Any) -> bool:
    """Cases with a second derivative (where nn.grad works at all)."""
    return case.differentiable and case.second and (case.oracle_grad or not h.ORACLE)


@walk(twice)
def test_grad_equals_backward(target: Target) -> None:
    inputs, wants, places = prepared(target)
    with scope(h.GRAD_TYPE):
        leaves = h.variables(inputs, wants)
        chosen = h.differentiated(target, target.call(leaves))
        nn.forward_all(chosen)
        ws = h.weights([y.shape for y in chosen], seed=1)
        h.backward(chosen, ws)
        gxs = nn.grad(chosen, [leaves[p] for p in places], grad_outputs=[h.variable(w) for w in ws])
        for p, gx in zip(places, h.run(gxs), strict=True):
            assert h.error(gx, leaves[p].g) <= h.TOLERANCE[h.GRAD_TYPE] * 10


@walk(twice)
def test_second_derivative(target: Target) -> None:
    inputs, wants, places = prepared(target)
    with scope(h.GRAD_TYPE):
        leaves = h.variables(inputs, wants)
        chosen = h.differentiated(target, target.call(leaves))
        ws = h.weights([y.shape for y in chosen], seed=1)
        us = h.weights([inputs[p].shape for p in places], seed=2)
        gys = h.variables([h.rounded(w, h.GRAD_TYPE) for w in ws], [True] * len(ws))
        gxs = nn.grad(chosen, [leaves[p] for p in places], grad_outputs=gys)
        # A neutral function on top: gx may be gy itself, which has no backward of its own.
        tops = [F.mul_scalar(gx, 1.0) for gx in gxs]
        nn.forward_all(tops)
        for top, u in zip(tops, us, strict=True):
            top.backward(u)
        seconds = [np.array(leaves[p].g) for p in places]
        mixed = [np.array(gy.g) for gy in gys]
    wide = [h.widened(x) for x in inputs]
    along_input, along_weight = h.second_differences(target, wide, places, ws, us)
    allowed = h.tolerance(target.case, "second")
    distance = h.difference(wide, places, seconds, along_input)
    assert distance <= allowed, f"{distance:.2e} off the finite differences of the first derivative"
    distance = h.difference(ws, range(len(ws)), mixed, along_weight)
    assert distance <= allowed, f"the gradient to the output's gradient is {distance:.2e} off"


def deterministic(case: Any) -> bool:
    """Cases that give the same numbers at every call."""
    return case.check is None and not case.mutates


@walk(lambda case: case.elementwise)
def test_unusual_shapes(target: Target) -> None:
    for shape in ((), (2, 0, 3)):
        with h.told(f"shape {shape}"):
            takes_shape(target, shape)


def takes_shape(target: Target, shape: tuple[int, ...]) -> None:
    """The reference's values, and gradients of the inputs' shape."""
    inputs = target.inputs("float")
    wants = target.case.wants_grad(inputs) if target.case.differentiable else [False] * len(inputs)
    if shape == ():
        inputs = [None if x is None else x.reshape(-1)[0].reshape(()) for x in inputs]
    else:
        inputs = [None if x is None else np.zeros(shape, x.dtype) for x in inputs]
    with scope("float"):
        leaves = h.variables(inputs, wants)
        outputs = target.call(leaves)
        close(target, h.run(outputs), target.reference(inputs), "float")
        if any(wants):
            chosen = h.differentiated(target, outputs)
            h.backward(chosen, [np.ones(y.shape, np.float32) for y in chosen])
            assert all(v.g.shape == shape for v, want in zip(leaves, wants, strict=True) if want)


@walk(deterministic)
def test_strided_inputs(target: Target) -> None:
    inputs = target.inputs("float")
    views = [None if x is None else h.strided(x) for x in inputs]
    with scope("float"):
        expected = h.forward(target, [h.variable(x) for x in inputs])
        same(h.forward(target, [h.variable(x) for x in views]), expected)
        assigned = [None if x is None else nn.Variable(x.shape) for x in views]
        for v, x in zip(assigned, views, strict=True):
            if v is not None:
                v.d = x
        same(h.forward(target, assigned), expected)


@walk(lambda case: case.elementwise and deterministic(case))
def test_integer_inputs(target: Target) -> None:
    for dtype in (np.int32, np.int64, np.uint8, np.bool_):
        with h.told(dtype.__name__):
            takes_integers(target, dtype)


def takes_integers(target: Target, dtype: Any) -> None:
    """The same as of the numbers in float."""
    numbers = [
        None if x is None else np.rint(np.nan_to_num(2 * x, posinf=9, neginf=-9).clip(-9, 9))
        for x in target.inputs("float")
    ]
    if dtype is np.uint8:
        numbers = [None if x is None else np.abs(x) for x in numbers]
    integers = [None if x is None else x.astype(dtype) for x in numbers]
    with scope("float"):
        got = h.forward(target, [h.variable(x) for x in integers])
        floats = [None if x is None else x.astype(np.float32) for x in integers]
        same(got, h.forward(target, [h.variable(x) for x in floats]))


@walk(lambda case: deterministic(case) and (case.reshaped is not None or case.elementwise))
def test_graph_is_used_again_with_another_shape(target: Target) -> None:
    changed = target.case.make_reshaped(target.name)
    if changed is None or not changed:
        pytest.skip("inputs of several shapes")
    with scope("float"):
        leaves = [h.variable(x) for x in target.inputs("float")]
        outputs = target.call(leaves)
        nn.forward_all(outputs)
        changed = [None if x is None else h.rounded(x, "float") for x in changed]
        for v, x in zip(leaves, changed, strict=True):
            if v is not None:
                v.reset_shape(x.shape, True)
                v.d = x
        close(target, h.run(outputs), target.reference(changed), "float")


@walk(deterministic)
def test_auto_forward_equals_static(target: Target) -> None:
    inputs = target.inputs("float")
    with scope("float"):
        expected = h.forward(target, [h.variable(x) for x in inputs])
        with nn.auto_forward():
            same([y.d for y in target.call([h.variable(x) for x in inputs])], expected)


@walk(lambda case: deterministic(case) and case.call is None)
def test_outputs_go_to_arrays_that_are_given(target: Target) -> None:
    inputs = target.inputs("float")
    if not inputs or not h.takes(target.function, "outputs"):
        pytest.skip("no NdArray goes in, or no outputs= argument")
    with scope("float"):
        expected = h.forward(target, [h.variable(x) for x in inputs])
        arrays = [None if x is None else nn.NdArray.from_numpy_array(x) for x in inputs]
        given = [nn.NdArray(y.shape) for y in expected]
        same([y.data for y in target.call(arrays)], expected)
        target.call(arrays, outputs=given)
        same([y.data for y in given], expected)


@pytest.mark.skipif(h.ORACLE, reason="NNabla fuses nothing")
def test_fusion_off_gives_the_same_bits(tmp_path: Path) -> None:
    file = tmp_path / "unfused.npz"
    environment = {**os.environ, "NNRS_FUSION": "0"}
    subprocess.run([sys.executable, h.__file__, str(file)], check=True, env=environment, timeout=300)
    with np.load(file) as loaded:
        expected = dict(loaded)
    got = h.digest()
    assert got and sorted(expected) == sorted(got)
    wrong = [key for key in got if not np.array_equal(got[key], expected[key], equal_nan=True)]
    assert not wrong


@walk(attribute="ERRORS")
def test_error(target: Target) -> None:
    error = target.case
    if error.host and BACKEND != "cpu":
        pytest.skip("a GPU does not look at the numbers")
    kind, text = failure(target)
    assert h.ORACLE or (issubclass(kind, error.kind) and re.search(error.match, text)), f"{kind.__name__}: {text}"
    assert h.ORACLE or text.startswith(f"{target.name}: ")


def failure(target: Target) -> tuple[type[Exception], str]:
    """The kind and the text of the error: what it holds would have to be collected, which takes ten times as long."""
    try:
        with scope("float"):
            h.forward(target, [h.variable(x) for x in target.inputs("float")])
    except Exception as e:
        return type(e), str(e)
    raise AssertionError("no error")


def first_cases() -> list[Target]:
    """One case a function."""
    found = {t.name: t for t in reversed(h.targets(wanted=lambda case: case.call is None))}
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("target", first_cases(), ids=lambda t: t.name)
def test_wrong_arguments(target: Target) -> None:
    inputs = target.inputs("float")
    bad_kinds = (TypeError, ValueError) + ((AssertionError, RuntimeError, AttributeError) if h.ORACLE else ())
    with scope("float"):
        values = [h.variable(x) for x in inputs]
        attempts = {"an unknown keyword": lambda: target.call(values, no_such_keyword=1)}
        if inputs:
            attempts["no input"] = lambda: target.function(**target.case.args)
            for wrong in ("a string", {}, object()):
                attempts[f"{wrong!r} for an input"] = lambda wrong=wrong: target.call([wrong, *values[1:]])
        for name, given in target.case.args.items():
            # Anything with a truth is a bool.
            wrong = np.zeros(2) if isinstance(given, bool) else object()
            attempts[f"{wrong!r} as {name}"] = lambda name=name, wrong=wrong: target.function(
                *values, **{**target.case.args, name: wrong}
            )
        for what, attempt in attempts.items():
            try:
                attempt()
            except bad_kinds:
                continue
            # NNabla's add_n takes any keyword.
            assert h.ORACLE, f"{what} is taken"
