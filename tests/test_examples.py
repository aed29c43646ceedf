"""The examples run as a user runs them, in a process of their own; each fails if its own results are wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize("name, shown", [
    ("memory_budget", r"at least \d+ bytes(.|\n)*equal to the last bit"),
    ("forget", r"with F.forget .*: \d\d%\n.*equal to the last bit"),
    ("char_lstm --steps 12 --text LICENSE", r"step   11: \d\.\d\d bits(.|\n)*It writes: 'The .{80}"),
    ("transformer --steps 12", r"step   11: loss \d\.\d+\n(.|\n)*\d{8} backwards is \d{8}\n\d+\.\d% of the digits"),
    ("quantized_lenet --steps 12", r"step   11: loss \d\.\d+\nheld-out accuracy: .*\nconv1/.*W_q: 144 weights of \d+"),
    ("quantized_lenet --steps 12 --weights binary", r"conv1/bwn_conv/Wb: 144 weights of 2 values from -1 to 1"),
    ("custom_function", r"static +(\S+ x - \S+)\ndynamic +\1\n"),
])  # fmt: skip
def test_an_example_runs(name: str, shown: str) -> None:
    name, *arguments = name.split()
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(shown, done.stdout), done.stdout


def test_they_say_what_is_wrong() -> None:
    """Two steps are not enough to find the line: the example fails and says so."""
    command = [sys.executable, str(EXAMPLES / "custom_function.py"), "--steps", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "the line was not found" in done.stderr
