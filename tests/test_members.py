"""Members of Variable, NdArray, Function, Context and their like answer as NNabla's do, and take the same for true.

The answers are in golden/members.json, which golden/make_members.py asks NNabla 1.39 for.
"""

from __future__ import annotations

import json
import math
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import member_probes
import nnrs as nn
import truth_probes

pytestmark = pytest.mark.host
GOLDEN = json.loads((Path(__file__).parent / "golden" / "members.json").read_text(encoding="utf-8"))

# What differs, and why; docs/migration.md says so to users.
DIFFERENT = {
    # NNabla reads foreign memory, ends the process, or is wrong.
    r".*x\[(-20:3|-20:-15|3:-20:-1|20::-1|20:0:-3)\].*": "slices are clipped, as in NumPy",
    r".*(size_from_axis\(5\)|x\.view\(\((3,|-1, 1)\)\)|x\.grad = None).*": "an error, not the end",
    r".*communicator_callbacks=\[?Callback\(\).*": "a base that can be used",
    r"x = a\(.*x\[v\(\[1, 2\], False\)\].*": "a Variable is its values",
    r"y = v\(\[\.1, \.2\]\); g = nn\.grad\(\[y\], \[y\]\)|.*nn\.grad\(\[(h, )?y\], \[y\].*": "seeds are gradients",
    # More is taken.
    r".*x\[(np\.int64\(3\)|a\(\[1, 2\]\)|\[0, 1\],1|:,\[0, 1\]|1:,None,::-1|None,0)\].*": "indices as in NumPy",
    r"y = v\(\[1, 2\]\) .* a\(\[\[1\], \[2\]\]\).*": "shapes broadcast as in NumPy",
    r"(float|int|len)\(.*|import (copy|pickle);.*|np\.asarray\(.*": "Python's and NumPy's own protocols",
    r"[va]\(\[1\]\) (==|!=|<|>=) (1|v\(\[2\]\))": "comparisons",
    r".*from_numpy_array\((a\(\[1, 2\]\)|\[1, 2\]|3\.0)\).*": "whatever NumPy makes an array of",
    r".*\.parent = None; .*": "cuts the history",
    r"nn\.NdArray\(None\)\.shape|nn\.NdArray\(\(2,\)\)\.dtype": "None is no shape given; an array always has a type",
    r".*narrow\((0, -1, 1|1, 1, 2)\).*|.*y = x\.narrow.*(y\.data = np|y\.cast|y\.clear).*": "parts of arrays",
    r"y = (PF\.embed|F\.batch_normalization)\(a\(.*": "NdArrays throughout",
    r".*(hash\(y\.parent\)|inplace_data_with\(0\)).*": "answers where NNabla has none",
    r"nn\.Context\(.*\) == nn\.Context\(.*\)": "contexts are equal by what they say",
    r".*get_parameter_or_create\(\"a\"\)\.shape": "a parameter that is there has a shape",
    r".*callbacks=\(Callback\(\),\).*": "a tuple does as well as a list",
    # Less is taken.
    r".*\.tags = (3|None|\{\"a\": 3\}).*": "tags are text",
    r"c = nn\.Context\(\"cpu:float\"\); .*": "one text is no list of backends",
    r".*masked_fill_\(v\(\[1, 0, 1\]\), 5\)": "shapes that do not fit are found at once",
    r".*x\[1\.0:2\].*": "indices are whole numbers",
    # Other answers.
    r".*need_grad = False; y\.need_grad = None; y\.need_grad": "None asks the inputs again",
    r".*modification_count.*": "it counts; NNabla's is 1 from the first change on",
    r".*y \*\*= 2; x\.data": "in place, always",
    r".*auto_grad_depends_.*": "what the rule reads",
    r".*F\.identity\(.*inplace_data\(i\).*": "it is its input's memory",
    r".*nn\.grad\(\[y\], \[v\(\[1, 2\]\)\]\)": "None where nothing depends on the variable",
}


def same(mine: Any, theirs: Any) -> bool:
    """Equal; NNabla's arguments are numbers of float."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=1e-6) or math.isnan(mine) and math.isnan(theirs)
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return list(mine) == list(theirs) and all(same(mine[key], theirs[key]) for key in mine)
    return type(mine) is type(theirs) and mine == theirs


@pytest.mark.parametrize("group", member_probes.GROUPS)
def test_members_answer_as_in_nnabla(group):
    assert list(GOLDEN[group]) == list(dict.fromkeys(member_probes.GROUPS[group])), "run golden/make_members.py"
    wrong = {}
    for script, theirs in GOLDEN[group].items():
        mine = member_probes.answer(script)
        if not same(mine, theirs) and not any(re.fullmatch(known, script) for known in DIFFERENT):
            wrong[script] = (mine, theirs)
    assert not wrong


def test_every_known_difference_is_one():
    scripts = {script: theirs for group in member_probes.GROUPS for script, theirs in GOLDEN[group].items()}
    for known, reason in DIFFERENT.items():
        about = [script for script in scripts if re.fullmatch(known, script)]
        assert any(not same(member_probes.answer(script), scripts[script]) for script in about), (known, reason)


@pytest.mark.parametrize("owner", [nn.Variable, nn.NdArray, nn.Context], ids=lambda owner: owner.__name__)
def test_every_member_is_asked_for(owner):
    asked = "\n".join(script for scripts in member_probes.GROUPS.values() for script in scripts)
    asked += "\n".join(truth_probes.MEMBERS)
    for name in (n for n in dir(owner) if not n.startswith("_")):
        assert re.search(rf"\b{name}\b", asked), name


@pytest.mark.parametrize("member", truth_probes.MEMBERS)
def test_truth_is_taken_as_in_nnabla(member):
    """Of anything that Python can ask for it; an array of several elements has none, nor has what refuses."""
    golden = GOLDEN[f"truth of {member}"]
    mine = {value: truth_probes.taken_for(member, value) for value in truth_probes.VALUES}
    assert mine == {value: None if theirs == "crash" else theirs for value, theirs in golden.items()}


@pytest.mark.parametrize(
    "member", [m for m in truth_probes.MEMBERS if not m.startswith(("F.", "PF.", "get_parameters"))]
)
def test_what_has_no_truth_is_an_error_of_nnrs(member):
    if member.startswith(("PythonFunction", "Variable.visit", "seed")):
        pytest.skip("asked by Python itself")
    with pytest.raises(TypeError, match="bool") as e:
        truth_probes.MEMBERS[member](truth_probes.VALUES["np.array([1, 0])"]())
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("keep", [lambda v: v, lambda v: [v]], ids=["itself", "list"])
def test_a_long_chain_of_notes_is_dropped(keep):
    v = nn.Variable(())
    for _ in range(100_000):
        w = nn.Variable(())
        w.info = keep(v)
        v = w
    dropped = weakref.ref(v)
    del v, w
    assert dropped() is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RecursionError, MemoryError])
@pytest.mark.parametrize("step", ["asarray", "broadcast_to"])
def test_what_ends_an_assignment_is_not_called_a_wrong_value(monkeypatch, kind, step):
    def end(*_):
        raise kind

    v = nn.Variable((2,))
    monkeypatch.setattr(np, step, end)
    with pytest.raises(kind) as e:
        v.d = [1]
    assert not isinstance(e.value, nn.Error)
    with pytest.raises(KeyboardInterrupt):
        v.forward(clear_buffer=Interrupted())


class Interrupted:
    def __bool__(self):
        raise KeyboardInterrupt


class Broken:
    """An argument whose own methods raise what `kind` says."""

    def __init__(self, kind):
        self.kind = kind

    def fail(self, *_):
        raise self.kind

    __float__ = __index__ = __iter__ = __bool__ = fail


# Each takes such an argument.
TAKERS = {
    "a rate": lambda v: nn.solvers.Sgd(v),
    "a number": lambda v: nn.functions.add_scalar(nn.Variable((2,)), v),
    "axes": lambda v: nn.functions.sum(nn.Variable((2,)), axis=v),
    "a shape": lambda v: nn.Variable(v),
    "a flag": lambda v: nn.functions.sum(nn.Variable((2,)), keepdims=v),
    "a decay": lambda v: nn.solvers.Sgd().weight_decay(v),
}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("name", TAKERS)
def test_what_an_argument_raises_is_the_error(name, kind):
    with pytest.raises(kind) as e:
        TAKERS[name](Broken(kind))
    assert not isinstance(e.value, nn.Error)
