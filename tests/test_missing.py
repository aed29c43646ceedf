"""The list of NNabla's missing names (`nnrs/_missing.py`): with what nnrs has it is all of NNabla.

golden/signatures.json has NNabla's functions, golden/names.json other names of its modules.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from nnrs import _missing

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).parent.parent / "docs"
NAMES = json.loads((GOLDEN / "names.json").read_text())
NAMES["functions"] = list(json.loads((GOLDEN / "signatures.json").read_text()))
NOT_YET = "is not in this version of nnrs yet; NNabla 1.39 has it"


def has(module: str, name: str) -> bool:
    """Whether nnrs has the name; the error of a missing one says that NNabla has it."""
    try:
        getattr(importlib.import_module(f"nnrs.{module}".rstrip(".")), name)
    except AttributeError as error:
        assert NOT_YET in str(error), (module, name)
        return False
    return True


@pytest.mark.parametrize("module", ["functions", "parametric_functions", "solvers"])
def test_the_library_is_whole(module: str) -> None:
    """Signatures are held against NNabla's in test_signatures.py."""
    assert [name for name in NAMES[module] if not has(module, name)] == []


def test_the_page_of_functions_shows_where_each_runs() -> None:
    page = (DOCS / "functions.md").read_text()
    row = r"^\| \[`(\w+)`\]\(#\1\) \|(?: [^|]+ \|){3} (yes|no) \| (yes\b[^|]*|no) \|$"
    rows = {name: (cpu, cuda) for name, cpu, cuda in re.findall(row, page, re.MULTILINE)}
    sections = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert len(NAMES["functions"]) == 228
    assert not [name for name in NAMES["functions"] if name not in rows or name not in sections]
    assert [name for name in NAMES["functions"] if not all(where.startswith("yes") for where in rows[name])] == []


@pytest.mark.parametrize("module", [*_missing.NAMES, "ext.cudnn", "utils"])
def test_no_name_of_the_list_is_there(module: str) -> None:
    assert not [name for name in _missing.missing(module) if has(module, name)]


def test_every_module_of_nnabla_is_there_or_in_the_list() -> None:
    missing = set()
    for name in NAMES["modules"]:
        try:
            importlib.import_module(f"nnrs.{name}")
        except ModuleNotFoundError as error:
            assert NOT_YET in str(error), name
            missing.add(name)
    assert missing == _missing.MODULES
