"""Reads tools/raises.txt, when a function is an error, and tools/examples/*.txt, the examples that docstrings end with.

An entry is the name in a line of its own, then lines of a doctest; an empty line ends it. What each needs, imports and
short names for making arrays, is put before it here. `tests/test_examples_of_functions.py` runs them all.
"""

from __future__ import annotations

from pathlib import Path

RAISES = Path(__file__).parent / "raises.txt"
FOLDER = Path(__file__).parent / "examples"
# What an example may use, and the line that it needs then.
NEEDS = {
    "np.": "import numpy as np",
    "S.": "import nnrs as nn, nnrs.functions as F, nnrs.solvers as S",
    "F.": "import nnrs as nn, nnrs.functions as F",
    "A(": "A = nn.NdArray.from_numpy_array",
    "V(": "V = nn.Variable.from_numpy_array",
}


def _uses(example: str, word: str) -> bool:
    return any(before + word in example for before in " (*-[")


def _whole(example: str) -> list[str]:
    needed = [line for word, line in NEEDS.items() if _uses(example, word)]
    if NEEDS["S."] in needed:
        needed.remove(NEEDS["F."])
    return [*(f">>> {line}" for line in needed), *example.splitlines()]


def read() -> dict[str, list[str]]:
    """The lines of each example by name."""
    found = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for entry in path.read_text(encoding="utf-8").strip().split("\n\n"):
            name, example = entry.split("\n", 1)
            found[name] = _whole(example)
    return found


def raises() -> dict[str, str]:
    """When a function raises ValueError, by its name."""
    lines = RAISES.read_text(encoding="utf-8").splitlines()
    return {name: text for name, _, text in (line.partition(": ") for line in lines)}
