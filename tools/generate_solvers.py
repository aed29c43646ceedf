"""Writes python/nnrs/solvers.py from the registry of solvers; tools/generate.py calls it."""

from __future__ import annotations

import textwrap

import examples

from nnrs import _core

EXAMPLES = examples.read()
HEAD = '''"""The solvers. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501

from __future__ import annotations

from typing import Any

from ._calls import checked_new
from .solver import Solver, SolverState
'''
TAIL = """

def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)
"""


def _arguments(s: dict) -> str:
    return "\n".join(
        textwrap.fill(f"{name}: {doc}", 112, initial_indent="        ", subsequent_indent="            ")
        for name, _, _, doc in s["args"]
    )


def _example(s: dict) -> str:
    return "\n".join(f"    {line}" for line in EXAMPLES[s["name"]])


def _class(s: dict) -> str:
    signature = ", ".join(f"{name}: {hint} = {default}" for name, hint, default, _ in s["args"])
    head = f"    @checked_new\n    def __new__(cls, {signature}) -> {s['name']}:"
    if len(head.splitlines()[-1]) > 120:
        head = f"    @checked_new\n    def __new__(\n        cls, {signature}\n    ) -> {s['name']}:"
    given = ", ".join(name for name, *_ in s["args"]) + ("," if len(s["args"]) == 1 else "")
    first, *rest = s["doc"].strip().splitlines()
    doc = "\n".join([first.strip(), *("    " + line.strip() for line in rest)])
    return f'''

class {s["name"]}(Solver):
    """{doc}

    Args:
{_arguments(s)}

{_example(s)}
    """

{head}
        return super().__new__(cls, "{s["name"]}", ({given}))
'''


def solvers_py() -> str:
    """The text of python/nnrs/solvers.py."""
    solvers = _core.solver_registry()
    names = sorted(["Solver", "SolverState", *(s["name"] for s in solvers)], key=str.lower)
    listed = "\n__all__ = [\n" + "".join(f'    "{n}",\n' for n in sorted(names)) + "]\n"
    return HEAD + listed + "".join(_class(s) for s in solvers) + TAIL
