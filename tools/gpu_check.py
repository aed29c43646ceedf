"""All GPU tests and the GPU bench on the machine it runs on, as one report.

    python tools/gpu_check.py [--quick] [--output FILE]

Runs with the nnrs that this Python imports. Each part has a time limit; the report says what failed, and goes on.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENV = {**os.environ, "NNRS_TEST_BACKEND": "cudnn", "PYTHONUNBUFFERED": "1"}
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "--maxfail=20", "-p", "no:cacheprovider"]
FUNCTIONS = ["tests/test_functions.py", "-k", "forward or first or second or accumulate"]
GRAPHS = ["tests/test_graph.py", "tests/test_recompute.py", "tests/test_solvers.py", "tests/test_hooks.py"]
GPU = ["tests/test_gpu.py", "tests/test_gpu_random.py", "tests/test_gpu_captures.py", "tests/test_gpu_libraries.py"]
DESCRIBE = """
from nnrs.ext import cuda
print(*map(cuda.device_name, cuda.get_devices()), sep="\\n")
print(cuda.libraries(), cuda.why_no_library())
"""


def parts(quick: bool) -> list[tuple[str, list[str], int]]:
    """Title, command, limit in seconds."""
    python = sys.executable
    digits = [python, "examples/digits.py", "--context", "cudnn", "--at-least", "0.98", "--output-dir", "out/gpu"]
    # They are too large for the bundle.
    if missing := [name for name in ("sklearn", "matplotlib", "tqdm", "h5py") if find_spec(name) is None]:
        digits = [python, "-c", f"print('not run: this Python has no', {', '.join(missing)!r})"]
    found = [
        ("devices", [python, "-c", DESCRIBE], 60),
        ("GPU tests", [*PYTEST, *GPU], 120),
        ("functions against NumPy", [*PYTEST, *(FUNCTIONS[:1] + ["-k", "forward"] if quick else FUNCTIONS)], 240),
        ("graphs", [*PYTEST, *GRAPHS], 120),
        ("digits", digits, 120),
        ("bench", [python, "benches/gpu.py", "--rounds", "3" if quick else "7"], 300),
    ]
    if tool := shutil.which("compute-sanitizer"):
        check = [tool, "--error-exitcode", "9", *PYTEST, *GPU]
        found.append(("compute-sanitizer", check, 180))
    return found


def run(command: list[str], limit: int) -> tuple[str, str]:
    """What became of a command, and the end of what it printed."""
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=ROOT, env=ENV, capture_output=True, text=True, timeout=limit, check=False)
        status = "ok" if done.returncode == 0 else f"FAILED ({done.returncode})"
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as e:
        status, output = f"STOPPED after {limit} s", str(e.stdout or "")
    except OSError as e:
        status, output = "not there", str(e)
    lines = output.strip().splitlines()
    return f"{status}, {time.monotonic() - start:.0f} s", "\n".join(lines[-30:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    parser.add_argument("--output", type=Path, help="also write the report there")
    args = parser.parse_args()
    report, failed = [], 0
    for title, command, limit in parts(args.quick):
        status, output = run(command, limit)
        failed += not status.startswith(("ok", "not there"))
        report.append(f"== {title}: {status}\n{output}\n")
        print(report[-1], flush=True)
    if args.output:
        args.output.write_text("\n".join(report))
    return failed


if __name__ == "__main__":
    sys.exit(main())
