"""The report of `make gpu-check`: what each part is called, one deadline for all, and one line without a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    import gpu_check

    return gpu_check


def test_without_a_gpu_it_is_one_line(tmp_path: Path) -> None:
    env = {**os.environ, "NNRS_CUDA": "", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(TOOLS / "gpu_check.py"), "--output", str(tmp_path / "report")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1, done
    assert done.stdout.startswith("== devices: FAILED, and nothing else was run: CUDA is not available")
    assert (tmp_path / "report").read_text() == done.stdout


def test_each_part_has_a_status(check, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow part's share of the deadline is two seconds; the others have minutes."""

    def part(title: str, *scripts: str, missing: str = "", share: float = 1000):
        return check.Part(title, [[sys.executable, "-c", s] for s in scripts], share, missing)

    chosen = [
        part("good", "print('one')", "print('two')"),
        part("bad", "import sys; print('half'); sys.exit(3)", "print('other')"),
        part("absent", missing="no tool"),
        part("slow", "import time; time.sleep(600)", share=1),
        part("late", "print('done')"),
    ]
    monkeypatch.setattr(check, "LEAST", 0)
    found = list(check.reports(chosen, 2000))
    monkeypatch.undo()
    assert [well for well, _ in found] == [True, False, False, False, True]
    heads = [text.splitlines()[0].partition(",")[0] for _, text in found]
    assert heads[:3] == ["== good: ok", "== bad: FAILED (3)", "== absent: NOT RUN: no tool"]
    assert heads[3].startswith("== slow: STOPPED after") and heads[4] == "== late: ok"
    assert "one\ntwo" in found[0][1] and "half\nother" in found[1][1]
    assert [text for _, text in check.reports(chosen[:1], 1)] == ["== good: NOT RUN: the time was over\n\n"]
