"""Writes python/nnrs/parametric_functions.py from the registry of parametric functions."""

from __future__ import annotations

import itertools
import re
import textwrap

from nnrs import _core

HEAD = '''"""Functions with parameters of their own: layers that make, name and find their weights in the current scope.

Generated from the registry by tools/generate.py: do not edit.
"""

# ruff: noqa: E501
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._core import NdArray, Variable
from ._parametric_api import Apply, Initializer, Input, Level, ParamInit, Rng, parametric_function_api
{written}
__all__ = [
{names}]

_call = _core.parametric
_index = _core.parametric_index


def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)
'''
# Functions that are not in the registry, by the modules that they are written in.
WRITTEN = {
    "_parametric_composites": ["sync_batch_normalization"],
    "_parametric_decompositions": ["cpd3_convolution", "svd_affine", "svd_convolution"],
    "_parametric_recurrent": ["LSTMCell"],
}
OWN_NONE = ("Initializer", "ParamInit", "Apply", "Rng")  # types that None belongs to


def _import(module: str, names: list[str]) -> str:
    line = f"from .{module} import {', '.join(names)}\n"
    return line if len(line) <= 120 else f"from .{module} import (\n" + "".join(f"    {n},\n" for n in names) + ")\n"


def _entry(name: str, text: str) -> str:
    return textwrap.fill(f"{name}: {text}", 112, initial_indent="        ", subsequent_indent="            ")


def _parameter(name: str, hint: str, optional: bool, default: str | None) -> str:
    none = " | None" if optional and hint not in OWN_NONE else ""
    return f"{name}: {hint}{none}" + ("" if default is None else f" = {default}")


def _tuple(names: list[str]) -> str:
    return "(" + ", ".join(names) + ("," if len(names) == 1 else "") + ")"


def _docstring(f: dict) -> str:
    doc = re.sub(r"```.*?```\n?", "", f["doc"], flags=re.S)  # which is Rust
    doc = "\n".join(line.strip() for line in doc.strip().splitlines())
    lines = [doc, "", "Args:"]
    lines += [_entry(name, text)[4:] for name, text in f["inputs"]]
    lines += [_entry(name, text)[4:] for name, _, _, _, text in f["args"]]
    lines += ["", "Returns:", "    " + f["returns"], "", "Raises:"]
    lines.append("    ValueError: If arguments do not fit, or a parameter of another shape is there already.")
    lines += [
        "",
        ">>> from nnrs.parameter import clear_parameters",
        *f["example"].splitlines(),
        ">>> clear_parameters()",
    ]
    return textwrap.indent('"""' + "\n".join(lines) + '\n"""', "    ")


def _function(f: dict) -> str:
    name, constant = f["name"], "_" + f["name"].upper()
    inputs = [name for name, _ in f["inputs"]]
    args = [f"{name}: Input" for name in inputs] + [_parameter(*arg[:4]) for arg in f["args"]]
    given, taken = _tuple(inputs), _tuple([arg[0] for arg in f["args"]])
    rows = "".join(f"        ({p[0]!r}, {p[1]!r}, {p[2]!r}, {p[3]}),\n" for p in f["parameters"])
    return (
        f"\n\n{constant} = _index({name!r})\n\n\n"
        f"@parametric_function_api(\n    {f['scope']!r},\n    [\n{rows}    ],\n)\n"
        f"def {name}({', '.join(args)}) -> {'Any' if f['several'] else 'Variable'}:\n"
        f"{_docstring(f)}\n    return _call({constant}, {given}, {taken})\n"
    )


def parametric_functions_py() -> str:
    functions = _core.parametric_registry()
    names = sorted([*(f["name"] for f in functions), *itertools.chain(*WRITTEN.values()), "parametric_function_api"])
    listed = "".join(f'    "{name}",\n' for name in names)
    taken = "".join(_import(module, names) for module, names in WRITTEN.items())
    return HEAD.replace("{names}", listed).replace("{written}", taken) + "".join(map(_function, functions))
