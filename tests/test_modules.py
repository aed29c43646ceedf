"""Which folders of each crate use which: a cycle between two of them is allowed only if it is named here.

A use is a path that begins with `crate::`; what a file has for its tests alone does not count. The compiler sees to it
that the kernels know nothing of nnrs. And a type's name means one thing in both crates.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Folders that use each other. Gradients are graphs.
CYCLES = {"src": [{"function", "graph"}], "kernels/src": []}
# What lib.rs gives a shorter name.
NAMES = {
    "Context": "device",
    "context": "device",
    "NdArray": "array",
    "Variable": "graph",
    "functions": "function",
} | dict.fromkeys(
    (
        "DType",
        "Error",
        "Result",
        "Shape",
        "dtype",
        "error",
        "fork",
        "saved",
        "shape",
        "stack",
        "switch",
        "with_dtype",
        "with_real",
    ),
    "base",
)

# Names that two types share, and why.
SHARED = {
    "F32x8": "one concept in each instruction set",
    "F64x4": "one concept in each instruction set",
}


def paths(text: str) -> set[str]:
    """What follows `crate::` in a file, the items of a list in braces one by one."""
    text = re.sub(r"#\[cfg\((?:test|all\(test.*?)\)\]\s*mod \w+ \{.*", "", text, flags=re.S)
    text = re.sub(r"(?m)^\s*//.*$", "", text)
    found = set(re.findall(r"\bcrate::(\w+)", text))
    for start in re.finditer(r"\bcrate::\{", text):
        depth, item = 1, ""
        for c in text[start.end() :]:
            depth += (c == "{") - (c == "}")
            if depth == 0 or (depth == 1 and c == ","):
                found |= set(re.findall(r"^\s*(\w+)", item))
                item = ""
            else:
                item += c
            if depth == 0:
                break
    return found


def uses(sources: str) -> dict[str, set[str]]:
    """For each folder or file at the top of a crate which others it uses."""
    found: dict[str, set[str]] = {}
    for file in (ROOT / sources).rglob("*.rs"):
        if file.name not in ("lib.rs", "tests.rs"):
            top = file.relative_to(ROOT / sources).parts[0].removesuffix(".rs")
            found.setdefault(top, set()).update(NAMES.get(name, name) for name in paths(file.read_text("utf-8")))
    return {top: names - {top} for top, names in found.items()}


def test_all_uses_are_of_modules():
    nnrs, kernels = map(uses, CYCLES)
    assert set().union(*nnrs.values()) <= set(nnrs) | set(kernels)
    assert set().union(*kernels.values()) <= set(kernels) | {"inventory"}


@pytest.mark.parametrize("sources", list(CYCLES))
def test_cycles_between_folders(sources):
    tops = uses(sources)
    direct = {top: names & set(tops) for top, names in tops.items()}
    reached = {top: set(names) for top, names in direct.items()}
    for middle in direct:
        for names in reached.values():
            if middle in names:
                names |= reached[middle]
    cycles = {frozenset({top} | {name for name in names if top in reached[name]}) for top, names in reached.items()}
    assert sorted(map(sorted, (c for c in cycles if len(c) > 1))) == sorted(map(sorted, CYCLES[sources]))


def test_what_a_file_uses():
    tests = "#[cfg(test)]\nmod t { use crate::x; }"
    text = f"use crate::{{cpu::{{self, pool}}, Error}};\n// crate::no\nfn f() {{ crate::io::g() }}\n{tests}"
    assert paths(text) == {"cpu", "Error", "io"}


def types(text: str) -> list[str]:
    """The types that a file defines, but for associated ones (which are indented) and those that macros write."""
    visible = r"(?:pub(?:\([^)]*\))? )?"
    kinds = rf" *{visible}(?:unsafe )?(?:struct|enum|union|trait)|{visible}type"
    return re.findall(rf"(?m)^(?:{kinds}) ([A-Z]\w*)", text)


def test_a_type_name_means_one_thing():
    """What macros make of NNabla's names is not read: a function's arguments, its kernel and its layer share them."""
    files: dict[str, list[str]] = {}
    for sources in CYCLES:
        for file in sorted((ROOT / sources).rglob("*.rs")):
            for name in types(file.read_text("utf-8")):
                files.setdefault(name, []).append(str(file.relative_to(ROOT)))
    shared = {name: where for name, where in files.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED or len(where) > 2} == {}
    assert set(SHARED) <= set(shared), "no longer shared"


def test_types_of_a_file():
    text = "pub(crate) struct A;\ntype B = u8;\nimpl C for A {\n    type D = B;\n}\nfn f() {\n    enum E {}\n}\n"
    text += "pub unsafe trait F {}"
    assert types(text) == ["A", "B", "E", "F"]
