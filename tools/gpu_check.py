"""All GPU tests and the GPU bench on the machine it runs on, as one report, within one deadline.

    python tools/gpu_check.py [--quick] [--part WORD] [--deadline SECONDS] [--output FILE]

Runs with the nnrs that this Python imports. What matters most comes first, and what a part leaves of its share of the
time is there for the later ones. The report is written after each part, and beside it, in a folder, all
that each command printed; without a GPU it ends with the first one. A part that did not run is NOT RUN, which counts as
failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEADLINE = 570
LEAST = 5  # seconds in which a part is worth beginning
LINES = 30
# Plugins that a machine has beside (coverage, parallel runs) are none of ours; a warning of theirs would be an error.
ENV = {**os.environ, "NNRS_TEST_BACKEND": "cudnn", "PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PYTHON = sys.executable
PYTEST = [
    PYTHON,
    "-m",
    "pytest",
    "-q",
    "-rs",
    "--maxfail=100",
    "-p",
    "no:cacheprovider",
    "-o",
    "faulthandler_timeout=60",
]
# A process has most of its time on the host, and all have the same GPU.
WORKERS = min(os.cpu_count() or 1, 12)
SPREAD = ["-p", "xdist", "-n", str(WORKERS), "--dist", "worksteal"] if find_spec("xdist") else []
# Each list in a process of its own: what one has compiled the other must not find.
GPU = [["", "_captures", "_random", "_numbers", "_normalization"], ["_libraries", "_compiled", "_nccl"]]
GPU_TESTS = [[f"tests/test_gpu{name}.py" for name in names] for names in GPU]
FUNCTIONS = "tests/test_functions.py"
DIGITS = ["--context", "cudnn", "--at-least", "0.98", "--output-dir", "out/gpu"]
# Ends with 2 if there is no GPU, and with 3 if something is missing without which the other parts say too little.
DEVICES = """
import sys
from importlib.metadata import PackageNotFoundError, version
from nnrs.ext import cuda
try:
    print(*map(cuda.device_name, cuda.get_devices()), sep="\\n")
except RuntimeError as e:
    print(str(e).splitlines()[0])
    sys.exit(2)
print("Python", sys.version.split()[0], sys.executable)
missing = []
for name in ("numpy", "torch", "torchvision"):
    try:
        print(name, version(name))
    except PackageNotFoundError:
        missing.append(f"{name}: no such package")
for name, file in cuda.libraries().items():
    print(name, file)
missing += [f"{name}: {why}" for name, why in cuda.why_no_library().items() if name != "NCCL"]
print(*(f"MISSING {text}" for text in missing), sep="\\n")
sys.exit(3 if missing else 0)
"""
INCOMPLETE = 3
FIRST = 40  # seconds that the first part has at least


@dataclass
class Part:
    """Commands that run side by side, and their share of the time beside the parts that come later."""

    title: str
    commands: list[list[str]]
    share: float
    missing: str = ""  # why it cannot run


def digits(quick: bool) -> list[str]:
    """The example; by way of stand-ins where its packages, which are too large to carry, are missing."""
    is_there = all(find_spec(name) for name in ("sklearn", "matplotlib", "tqdm", "h5py"))
    script = "examples/digits.py" if is_there else "tools/gpu_digits.py"
    few = ["--epochs", "1", "--at-least", "0.05"] if quick else []
    return [PYTHON, script, *DIGITS, *few]


def tests(quick: bool) -> list[list[str]]:
    """All functions and graphs with the GPU's context (`tests/conftest.py` leaves out what speaks of the CPU)."""
    if quick:
        return [[*PYTEST, FUNCTIONS, "-k", "forward and (tanh or affine)"], [*PYTEST, "tests/test_row_sizes.py"]]
    return [[*PYTEST, *SPREAD, "tests"]]


def parts(quick: bool) -> list[Part]:
    gpu_tests = [["tests/test_gpu_numbers.py", "-k", "dropout"]] if quick else GPU_TESTS
    bench = [PYTHON, "benches/gpu.py", *(["--small", "--rounds", "1", "--case", "mlp"] if quick else ["--rounds", "7"])]
    sanitizer = shutil.which("compute-sanitizer")
    checked = [*PYTEST, "tests/test_gpu.py", "-k", "training_is or stay_apart or two_devices"]
    return [
        Part("devices", [[PYTHON, "-c", DEVICES]], 40),
        Part("GPU tests", [[*PYTEST, *words] for words in gpu_tests], 100),
        Part("functions and graphs", tests(quick), 160),
        Part("bench", [bench], 190),
        Part("digits", [digits(quick)], 50),
        Part(
            "compute-sanitizer",
            # It keeps the frames of Python in which kernels were launched, and with them what their variables hold.
            [["env", "NNRS_TEST_LEAKS=0", sanitizer or "compute-sanitizer", "--error-exitcode", "9", *checked]],
            30,
            "" if sanitizer else "this machine has no compute-sanitizer",
        ),
    ]


@dataclass
class Run:
    """A command that was started."""

    process: subprocess.Popen[bytes]
    output: tempfile._TemporaryFileWrapper

    @staticmethod
    def start(command: list[str]) -> Run:
        file = tempfile.NamedTemporaryFile()
        process = subprocess.Popen(
            command, cwd=ROOT, env=ENV, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
        return Run(process, file)

    def finish(self, seconds: float) -> tuple[int | None, str]:
        """Its exit status, None if it had to be stopped, and what it printed."""
        try:
            status: int | None = self.process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # also what it left behind
        self.process.wait()
        self.output.seek(0)
        return status, self.output.read().decode(errors="replace").strip()


def outcome(statuses: list[int | None], limit: float) -> str:
    failed = [s for s in statuses if s]
    if None in statuses:
        return f"STOPPED after {limit:.0f} s"
    return f"FAILED ({', '.join(map(str, failed))})" if failed else "ok"


def run(part: Part, limit: float, logs: Path | None) -> tuple[str, str, list[int | None]]:
    """What became of a part, the end of what it printed, and the exit statuses. `logs`: where all of it goes."""
    if part.missing:
        return f"NOT RUN: {part.missing}", "", []
    if limit < LEAST:
        return "NOT RUN: the time was over", "", []
    start = time.monotonic()
    runs = [Run.start(command) for command in part.commands]
    ends = [r.finish(start + limit - time.monotonic()) for r in runs]
    statuses = [status for status, _ in ends]
    took = f", {time.monotonic() - start:.0f} s"
    for i, (_, text) in enumerate(ends if logs else []):
        (logs / f"{part.title.replace(' ', '-')}-{i}.txt").write_text(text)
    shown = ["\n".join(text.splitlines()[-LINES:]) for _, text in ends]
    return outcome(statuses, limit) + took, "\n".join(shown), statuses


def reports(chosen: list[Part], deadline: float, logs: Path | None = None) -> Iterator[tuple[bool, str]]:
    """Of each part whether it went well, and its report."""
    end = time.monotonic() + deadline
    for i, part in enumerate(chosen):
        weight = part.share / sum(p.share for p in chosen[i:])
        first = part.title == "devices"
        status, output, statuses = run(part, max((end - time.monotonic()) * weight, FIRST * first), logs)
        if first and statuses not in ([0], [INCOMPLETE]):
            yield False, f"== devices: FAILED, and nothing else was run: {output}"
            return
        yield status.startswith("ok"), f"== {part.title}: {status}\n{output}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cases of each part, to try this script")
    parser.add_argument("--part", help="only the parts with this word in the title, after `devices`")
    parser.add_argument("--deadline", type=float, default=DEADLINE, help="seconds for all of it")
    parser.add_argument("--output", type=Path, help="also write the report there")
    args = parser.parse_args()
    chosen = [p for p in parts(args.quick) if not args.part or p.title == "devices" or args.part in p.title]
    report, failed = "", 0
    logs = args.output and args.output.with_name(f"{args.output.stem}-logs")
    if logs:
        logs.mkdir(parents=True, exist_ok=True)
        ENV["NNRS_TEST_FAILURES"] = str(logs.resolve() / "failures.txt")
    for well, text in reports(chosen, args.deadline, logs):
        failed += not well
        report += text + "\n"
        print(text, flush=True)
        if args.output:
            args.output.write_text(report)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
