"""No name of NNabla's is missing; a name that nobody has is an error that tells the nearest ones (`nnrs/_missing.py`).

golden/signatures.json has NNabla's functions, golden/names.json its modules and layers, golden/attributes.json all
public names of its modules, those that they import from each other included.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).parent.parent / "docs"
NAMES = json.loads((GOLDEN / "names.json").read_text())
NAMES["functions"] = list(json.loads((GOLDEN / "signatures.json").read_text()))


@pytest.mark.parametrize("module", ["functions", "parametric_functions", "solvers"])
def test_the_library_is_whole(module: str) -> None:
    """Signatures are held against NNabla's in test_signatures.py."""
    ours = importlib.import_module(f"nnrs.{module}")
    assert [name for name in NAMES[module] if not hasattr(ours, name)] == []


def test_the_page_of_functions_shows_where_each_runs() -> None:
    page = (DOCS / "functions.md").read_text()
    row = r"^\| \[`(\w+)`\]\(#\1\) \|(?: [^|]+ \|){3} (yes|no) \| (yes\b[^|]*|no) \|$"
    rows = {name: (cpu, cuda) for name, cpu, cuda in re.findall(row, page, re.MULTILINE)}
    sections = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert len(NAMES["functions"]) == 228
    assert not [name for name in NAMES["functions"] if name not in rows or name not in sections]
    assert [name for name in NAMES["functions"] if not all(where.startswith("yes") for where in rows[name])] == []


def test_every_module_of_nnabla_is_there() -> None:
    for name in NAMES["modules"]:
        importlib.import_module(f"nnrs.{name}")


# Modules whose parts are cut otherwise, and names that stay out, and why; docs/missing.md says so to users.
APART = r"(backward_function|utils\.cli|utils\.converter|utils\.(audio|image)_utils)\..*"
OUT = {
    r"(function_bases|functions|normalization_functions) FUNCTION_API_(BODY|HEADER)": "templates of generated code",
    r"context (context_level|current_ctx)|core\.graph_def (previous|proto)_graph_builder|grad registry": "state itself",
    r"function Dummy|utils\.callback module.*|utils\.progress .*|utils\.py23_compatible .*": "left over",
    r"utils\.signature_utils \w+|utils\.data_source_loader pydub_available": "of the module's own use",
    r"utils\.(audio|image)_utils (backend_manager|rescale_(pixel_)?intensity)": "set_backend chooses",
    r"models\.imagenet\.\w+ (ImageNetBase|NnpNetworkPass)": "base.ImageNetBase, utils.nnp_graph.NnpNetworkPass",
    r"experimental\.graph_converters\.\w+ (BatchNormBase|ConstantInit\w+|get_parameter\w+)": "of its own use",
}


def test_every_name_of_every_module_is_there() -> None:
    names = json.loads((GOLDEN / "attributes.json").read_text())
    lacking = set()
    for module, held in names.items():
        if not re.fullmatch(APART, module):
            ours = importlib.import_module(f"nnrs.{module}".rstrip("."))
            lacking |= {f"{module} {name}" for name in held.split() if not hasattr(ours, name)}
    assert [name for name in sorted(lacking) if not any(re.fullmatch(out, name) for out in OUT)] == []
    assert [out for out in OUT if not any(re.fullmatch(out, name) for name in lacking)] == []


@pytest.mark.parametrize(
    "module, name, near",
    [
        (F, "Relu", "'relu'"),
        (F, "convoluton", "'convolution'"),
        (PF, "batch_normalisation", "'batch_normalization'"),
        (S, "Adamm", "'Adam'"),
        (nn, "get_parameter", "'get_parameters'"),
        (nn, "parametric_function", "'parametric_functions'"),
        (nn.utils, "data_iteratr", "'data_iterator'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_misspelt_name_tells_the_nearest_ones(module: object, name: str, near: str) -> None:
    start = re.escape(f"module '{module.__name__}' has no attribute '{name}'\n  hint: did you mean ")  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=f"^{start}.*{near}") as e:
        getattr(module, name)
    assert e.value.name == name and str(e.value).endswith("?")
    assert not hasattr(module, name)


@pytest.mark.parametrize("name", ["zork", "nq", "Anyy", "__wrapped__", "_relu"])
def test_a_name_that_is_near_none_has_no_hint(name: str) -> None:
    """What a module has imported is none of its names; names with underscores are not looked for."""
    with pytest.raises(AttributeError) as e:
        getattr(F, name)
    assert str(e.value) == f"module 'nnrs.functions' has no attribute '{name}'"


@pytest.mark.parametrize("package", ["nnrs", "nnabla"])
def test_what_python_prints_has_the_hint_once(package: str) -> None:
    first = "import nnrs.compat; nnrs.compat.install()\n" if package == "nnabla" else ""
    script = f"{first}import {package}.functions as F\nF.softmx\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("id you mean") == 1 and "\n  hint: did you mean 'softmax'" in done.stderr


def test_unknown_modules() -> None:
    for name in ("no_such_module", "utils.no_such_module", "backward_function.nonsense", "no_such.module"):
        with pytest.raises(ModuleNotFoundError, match="No module named"):
            importlib.import_module(f"nnrs.{name}")
