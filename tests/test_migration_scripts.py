"""Scripts written for NNabla run on nnrs, unchanged, and their monitors write what they wrote there.

`golden/migration_series.json` has NNabla's series, made by `benches/migration.py --golden`. All scripts run in one
process, one after the other, as a user's notebook would.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.compat
from nnrs.utils import image_utils

# Not imported here, which takes seconds: all processes that share the tests read this file.
for package, reason in {
    "sklearn": "the digits that scripts learn are scikit-learn's",
    "h5py": "the scripts save .h5 files",
    "PIL": "the scripts save pictures",
}.items():
    if find_spec(package) is None:
        pytest.skip(reason, allow_module_level=True)

ROOT = Path(__file__).parent.parent
GOLDEN = json.loads((Path(__file__).parent / "golden" / "migration_series.json").read_text())


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a new process would have: no parameters, initial values from the first number on, the default context."""
    nn.clear_parameters()
    monkeypatch.setattr(nn.random, "prng", np.random.RandomState(313))
    before = nn.get_current_context()
    level = nn.logger.level
    nn.logger.setLevel(logging.WARNING)
    nnrs.compat.install()
    yield
    nnrs.compat.uninstall()
    nn.logger.setLevel(level)
    nn.set_default_context(before)
    nn.set_auto_forward(False)
    image_utils.set_backend(None)
    nn.clear_parameters()


def test_all_scripts_are_compared() -> None:
    assert set(GOLDEN) == {path.stem for path in (ROOT / "examples" / "migration").glob("*.py")}


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_script_gives_the_series_of_nnabla(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = GOLDEN[name]
    script = ROOT / "examples" / "migration" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(script), "-o", str(tmp_path), "-i", str(golden["steps"])])
    runpy.run_path(str(script), run_name="__main__")
    files = {f.name.removesuffix(".series.txt"): np.loadtxt(f, ndmin=2) for f in tmp_path.rglob("*.series.txt")}
    assert files.keys() == golden["series"].keys()
    for key, values in golden["series"].items():
        theirs = np.array(values)
        assert (files[key][:, 0] == theirs[:, 0]).all(), key
        scale = np.abs(theirs[:, 1]).max() or 1.0
        np.testing.assert_allclose(files[key][:, 1], theirs[:, 1], rtol=0, atol=golden["bound"] * scale, err_msg=key)
