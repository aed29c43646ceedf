"""Functions that write what others read: F.assign, running statistics, fills in place; held against NNabla 1.39."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_updates  # noqa: E402

EXPECTED = json.loads((GOLDEN / "updates.json").read_text())


@pytest.mark.parametrize("name", make_updates.CASES)
def test_as_in_nnabla(name, fusion):
    mine, golden = make_updates.CASES[name](nn, F), EXPECTED[name]
    assert len(mine) == len(golden)
    for ours, theirs in zip(mine, golden, strict=True):
        if all(isinstance(v, float) for v in theirs):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
        else:
            assert ours == theirs
