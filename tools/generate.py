"""Writes what follows from the registry: python/nnrs/functions.py and docs/functions.md.

python tools/generate.py          writes the files
python tools/generate.py --check  fails if they are stale
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from generate_solvers import solvers_py

from nnrs import _composites, _core

ROOT = Path(__file__).parent.parent
HEAD = '''"""The function library. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501, F405

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _composites, _core
from ._composites import *  # noqa: F403
from ._core import NdArray, Variable

_call = _core.call
_index = _core.function_index

Array = Variable | NdArray
'''
TAIL = """

def __getattr__(name: str) -> Any:
    from ._errors import missing_name

    raise missing_name("nnrs.functions", name, _composites.LATER)
"""


def signature(f: dict) -> str:
    parts = []
    for name, kind, _ in f["inputs"]:
        star = "*" if kind == "variadic" else ""
        default = " | None = None" if kind == "optional" else ""
        parts.append(f"{star}{name}: Array{default}")
    args = [(name, hint + (" | None" if optional else ""), default) for name, hint, optional, default, _ in f["args"]]
    after_default = any(kind == "optional" for _, kind, _ in f["inputs"])
    for name, hint, default in args:
        if default is None and after_default:
            raise SystemExit(f"{f['name']}: required argument {name} after an optional one")
        parts.append(f"{name}: {hint}" + ("" if default is None else f" = {default}"))
    parts.append("n_outputs: int = -1")
    parts.append("outputs: list[NdArray] | None = None")
    return ", ".join(parts)


def entry(kind: str, text: str) -> str:
    return textwrap.fill(text, 112, initial_indent="        ", subsequent_indent="            ")


def docstring(f: dict) -> str:
    lines = ['    """' + f["doc"].strip().replace("\n", "\n    "), ""]
    if f["inputs"] or f["args"]:
        lines.append("    Args:")
        lines += [entry("input", f"{name}: {doc}") for name, _, doc in f["inputs"]]
        lines += [entry("arg", f"{name}: {doc}") for name, _, _, _, doc in f["args"]]
        lines.append("        n_outputs: Not used; NNabla's.")
        lines.append("        outputs: Arrays for the outputs' data.")
        lines.append("")
    lines.append("    Returns:")
    lines += [entry("output", f"{name}: {doc}") for name, _, doc in f["outputs"]]
    lines.append('    """')
    return "\n".join(line.rstrip() for line in lines)


def function(f: dict) -> str:
    name = ("_" if f["name"] in _composites.__all__ else "") + f["name"]
    constant = "_" + f["name"].upper()
    inputs = f["inputs"]
    if inputs and inputs[-1][1] == "variadic":
        fixed = "".join(n + ", " for n, _, _ in inputs[:-1])
        given = f"({fixed}*{inputs[-1][0]},)" if fixed else inputs[-1][0]
    else:
        given = "(" + "".join(n + ", " for n, _, _ in inputs).rstrip() + ")"
        given = given.rstrip() if len(inputs) == 1 else given.replace(",)", ")")
    args = [a[0] for a in f["args"]]
    taken = "(" + ", ".join(args) + ("," if len(args) == 1 else "") + ")"
    return (
        f"\n\n{constant} = _index({f['name']!r})\n\n\ndef {name}({signature(f)}) -> Any:\n"
        f"{docstring(f)}\n    return _call({constant}, {given}, {taken}, n_outputs, outputs)\n"
    )


def functions_py() -> str:
    return HEAD + "".join(function(f) for f in _core.registry()).replace("\n\n\n_", "\n\n\n_") + TAIL


def functions_md() -> str:
    lines = ["# Functions", "", "Generated from the registry by `tools/generate.py`.", ""]
    lines += ["| function | group | element-wise | CPU | CUDA |", "|---|---|---|---|---|"]
    for f in _core.registry():
        kind = "yes" if f["elementwise"] else "no"
        lines.append(f"| [`{f['name']}`](#{f['name']}) | {f['group']} | {kind} | yes | no |")
    for f in _core.registry():
        lines += ["", f"## {f['name']}", "", "```python", f"F.{f['name']}({signature(f)})", "```", ""]
        lines += [f["doc"].strip(), ""]
        lines += [f"- `{n}` (input, {k}): {d}" for n, k, d in f["inputs"]]
        lines += [f"- `{n}` ({h}, default {v if v is not None else 'required'}): {d}" for n, h, _, v, d in f["args"]]
        lines += [f"- `{n}` (output): {d}" for n, _, d in f["outputs"]]
    return "\n".join(lines) + "\n"


FILES = {
    "python/nnrs/functions.py": functions_py,
    "python/nnrs/solvers.py": solvers_py,
    "docs/functions.md": functions_md,
}


def main() -> int:
    stale = []
    for name, make in FILES.items():
        path, text = ROOT / name, make()
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    if stale and "--check" in sys.argv:
        print("stale, run python tools/generate.py:", ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
