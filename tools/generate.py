"""Writes what follows from the registry: the Python wrappers, pages of docs/, the list of builders for a Rust test.

python tools/generate.py          writes the files
python tools/generate.py --check  fails if they are stale
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from pathlib import Path

import examples
from generate_parametric import parametric_functions_py
from generate_solvers import solvers_py

from nnrs import _composites, _core

ROOT = Path(__file__).parent.parent
EXAMPLES = examples.read()
RAISES = examples.raises()
HEAD = '''"""The function library. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501, F405
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

from . import _composites, _core
from ._calls import checked as _checked
from ._composites import *  # noqa: F403
from ._core import NdArray, Variable

_call = _core.call
_index = _core.function_index

# All inputs of a call are Variables, or all are NdArrays; so are its outputs.
A = TypeVar("A", Variable, NdArray)
'''
TAIL = """

for _name in _composites.__all__:
    globals()[_name] = _checked(globals()[_name], is_whole=True)


def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)
"""


def signature(f: dict) -> str:
    parts = []
    for name, kind, _ in f["inputs"]:
        star = "*" if kind == "variadic" else ""
        default = " | None = None" if kind == "optional" else ""
        parts.append(f"{star}{name}: A{default}")
    args = [(name, hint + (" | None" if optional else ""), default) for name, hint, optional, default, _ in f["args"]]
    after_default = any(kind == "optional" for _, kind, _ in f["inputs"])
    for name, hint, default in args:
        if default is None and after_default:
            raise SystemExit(f"{f['name']}: required argument {name} after an optional one")
        parts.append(f"{name}: {hint}" + ("" if default is None else f" = {default}"))
    parts.append("n_outputs: int = -1")
    parts.append("outputs: list[NdArray] | None = None")
    return ", ".join(parts)


def shown_signature(f: dict) -> str:
    """The signature that users see: that of a function in Python where one stands before the registered one."""
    if f["name"] not in _composites.__all__:
        return signature(f)
    parts = inspect.signature(getattr(_composites, f["name"])).parameters.values()
    bare = [str(p.replace(annotation=p.empty, default=p.empty)) for p in parts]
    defaults = ["" if p.default is p.empty else f" = {p.default!r}" for p in parts]
    return ", ".join(f"{b}: {p.annotation}{d}" for b, p, d in zip(bare, parts, defaults, strict=True))


def returns(f: dict) -> str:
    """The type of what a function gives."""
    if any(variadic for _, variadic, _ in f["outputs"]):
        return "Any"
    return "A" if f["inputs"] else "Variable"


def overloads(f: dict, name: str) -> str:
    """The types of a function that gives one output unless `with_index` is set."""
    flag = "with_index: bool = False"
    if flag not in signature(f):
        return ""
    one = signature(f).replace(flag, "with_index: Literal[False] = False")
    types = ((one, "A"), (signature(f), "Any"))
    return "".join(f"@overload\ndef {name}({given}) -> {result}: ...\n\n\n" for given, result in types)


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
    if text := RAISES.get(f["name"]):
        lines += ["", "    Raises:", entry("error", f"ValueError: {text}")]
    if example := EXAMPLES.get(f["name"]):
        lines += ["", *("    " + line for line in example)]
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
    check = "" if name.startswith("_") else "@_checked\n"  # what stands before it in _composites is checked instead
    return (
        f"\n\n{constant} = _index({f['name']!r})\n\n\n{overloads(f, name)}"
        f"{check}def {name}({signature(f)}) -> {returns(f)}:\n"
        f"{docstring(f)}\n    return _call({constant}, {given}, {taken}, n_outputs, outputs)\n"
    )


def functions_py() -> str:
    return HEAD + "".join(function(f) for f in _core.registry()).replace("\n\n\n_", "\n\n\n_") + TAIL


GRADIENTS = """\
*Gradient* says to which inputs `backward` and `nn.grad` carry a gradient (with all arguments at their defaults), of any
order: a gradient is a graph of these functions again. `-`: there is no input. *Element-wise* functions are fused with
their neighbours. *CPU* and *CUDA* say where there are kernels; others run on the CPU in any context. Functions of the
group *Graph* are graphs of others, and do all this as those do."""

# What is made in Python, but is a function by itself: `batch_normalization` of one process, one of its own of several.
SYNCHRONIZED = "| Normalization | to `x`, `beta`, `gamma` | no | yes | yes, if all processes have GPUs |"


def gradient(f: dict) -> str:
    """To which inputs a gradient flows, for the table."""
    names = [name for name, _, _ in f["inputs"]]
    flows = [name for name, yes in zip(names, f["gradients"], strict=True) if yes]
    if not names:
        return "-"
    if flows == names:
        return "yes"
    return "no" if not flows else "to " + ", ".join(f"`{name}`" for name in flows)


def example_of(name: str) -> list[str]:
    """The example of a function: one of the table, or that in the docstring of a function in Python."""
    if name not in _composites.__all__:
        return EXAMPLES[name]
    text = inspect.getdoc(getattr(_composites, name)) or ""
    shown = next((p for p in text.split("\n\n") if ">>>" in p), "")
    return textwrap.dedent(shown.removeprefix("Example:\n")).splitlines()


def functions_md() -> str:
    lines = ["# Functions", "", "Generated from the registry by `tools/generate.py`.", ""]
    lines += [GRADIENTS, "", "| function | group | gradient | element-wise | CPU | CUDA |", "|---|---|---|---|---|---|"]
    for f in _core.registry():
        kind = "yes" if f["elementwise"] else "no"
        on_gpu = "yes" if f["on_gpu"] else "no"
        lines.append(f"| [`{f['name']}`](#{f['name']}) | {f['group']} | {gradient(f)} | {kind} | yes | {on_gpu} |")
    known = {f["name"] for f in _core.registry()}
    graphs = [name for name in _composites.__all__ if name not in known]
    of_parts = "| Graph | as its parts | as its parts | yes | yes |"
    own = {"sync_batch_normalization": SYNCHRONIZED}
    lines += [f"| [`{n}`](#{n}) {own.get(n, of_parts)}" for n in graphs]
    for f in _core.registry():
        lines += ["", f"## {f['name']}", "", "```python", f"F.{f['name']}({shown_signature(f)})", "```", ""]
        lines += [f["doc"].strip(), ""]
        for (n, k, d), flows in zip(f["inputs"], f["gradients"], strict=True):
            lines.append(f"- `{n}` (input, {k}, {'gradient' if flows else 'no gradient'}): {d}")
        lines += [f"- `{n}` ({h}, default {v if v is not None else 'required'}): {d}" for n, h, _, v, d in f["args"]]
        lines += [f"- `{n}` (output): {d}" for n, _, d in f["outputs"]]
        lines += [f"- ValueError: {RAISES[f['name']]}"] if f["name"] in RAISES else []
        lines += ["", "```pycon", *example_of(f["name"]), "```"]
    for name in graphs:
        lines += graph_md(name)
    return "\n".join(lines) + "\n"


def graph_md(name: str) -> list[str]:
    """The section of a function in Python that is a graph of others: its signature and what its docstring says."""
    shown = shown_signature({"name": name})
    about, _, rest = (inspect.getdoc(getattr(_composites, name)) or "").partition("\nArgs:\n")
    paragraphs = [p for p in about.strip().split("\n\n") if not p.startswith(">>>")]
    lines = ["", f"## {name}", "", "```python", f"F.{name}({shown})", "```", "", "\n\n".join(paragraphs), ""]
    arguments = re.split(r"\n    (?=\S)", "\n" + rest.split("\n\n")[0].rstrip())[1:]
    for argument in arguments:
        given, _, text = argument.partition(": ")
        lines.append(f"- `{given}`: {' '.join(text.split())}")
    return [*lines, "", "```pycon", *example_of(name), "```"]


RUST_KEYWORDS = {"loop", "match", "move", "ref", "type", "use", "where", "yield"}


def builders_rs() -> str:
    """The list by which a test sees that every function has a builder in Rust."""
    names = [f["name"] for f in _core.registry()]
    lines = [f"    {'r#' if name in RUST_KEYWORDS else ''}{name}\n" for name in names]
    return "// Generated from the registry by tools/generate.py: do not edit.\nbuilders! {\n" + "".join(lines) + "}\n"


FILES = {
    "python/nnrs/functions.py": functions_py,
    "python/nnrs/parametric_functions.py": parametric_functions_py,
    "python/nnrs/solvers.py": solvers_py,
    "docs/functions.md": functions_md,
    "tests/rust/builders/list.rs": builders_rs,
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
        print("stale, run make generate:", ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
