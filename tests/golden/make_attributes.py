"""Writes attributes.json: the public names of each of NNabla's modules, modules and foreign things left out.

python make_attributes.py    # with NNabla 1.39
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
from pathlib import Path
from typing import Any

import nnabla


def is_own(value: Any) -> bool:
    """A class or function of NNabla's, or a value."""
    if isinstance(value, types.ModuleType):
        return False
    where = getattr(value, "__module__", None)
    return not isinstance(where, str) or where.partition(".")[0] == "nnabla"


def names_of(module: str) -> list[str]:
    try:
        found = vars(importlib.import_module(module))
    except ImportError:  # what wants another package
        return []
    return sorted(name for name, value in found.items() if not name.startswith("_") and is_own(value))


def main() -> None:
    modules = [m.name for m in pkgutil.walk_packages(nnabla.__path__, "nnabla.", onerror=lambda name: None)]
    public = [m for m in modules if not any(part.startswith("_") for part in m.split("."))]
    answers = {m.removeprefix("nnabla.").removeprefix("nnabla"): names_of(m) for m in ["nnabla", *public]}
    text = json.dumps({m: " ".join(names) for m, names in sorted(answers.items()) if names}, indent=0)
    (Path(__file__).parent / "attributes.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
