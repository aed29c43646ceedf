"""Processes that fail: the others end within a second or two, with an error that says who and in which collective."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from mpi_helpers import command, environment, failing, skip_without_mpi

pytestmark = pytest.mark.host
WAITS = r"all_reduce \(call 2, group 'world'\)"
ENDED = rf"nnrs: rank [02] of 3 is ended by SIGTERM while it waits in {WAITS}"
# Of mpirun as a whole: on a busy machine it takes long to start. How long those who wait do, they say themselves.
LIMIT, TOLD_WITHIN = 120, 10
SILENT = rf"CommunicatorError: rank [02] in {WAITS}: not over after 0.5 s: rank 1 did not come to it and gave no answer"


@pytest.mark.parametrize(("how", "says"), [
    ("kill", [r"rank 1 with PID \d+ on node \S+ exited on\s+signal 9", ENDED]),
    ("exit", [rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended without coming to it"]),
    ("older", [rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended without coming to it"]),
    ("raise", [r"IndexError: list index", r"nnrs: rank 1 of 3 ends all processes: IndexError; its last .* all_reduce"]),
    ("backward", [r"ValueError: a bad sample", "nnrs: rank 1 of 3 ends all processes: ValueError"]),
    ("abort", [r"MPI_ABORT was invoked on rank 1"]),
    ("hang", [SILENT, r"nnrs: rank [02] of 3 ends all processes: CommunicatorError; its last collective"]),
    ("stop", [SILENT]),
    ("group", [r"not over after 0.5 s: (rank [02] |.*; rank [02] )waits in all_reduce \(call 3, group 'world'\)"]),
    ("caught", [r"goes on: this communicator has ended: rank [02]", r"ends all processes: its communicator has fai"]),
])  # fmt: skip
def test_one_that_fails_ends_all(how, says):
    done = failing(3, "faults", how, timeout=LIMIT, NNRS_COMMUNICATOR_TIMEOUT="0.5")
    text = done.stdout + done.stderr
    assert done.returncode != 0 and "is well" not in text, text
    for pattern in says:
        assert re.search(pattern, text), text
    check_waits(done)


def check_waits(done: subprocess.CompletedProcess[str]) -> None:
    """Those who wait are told in time: 0.5 s of patience and 1 s for answers, and what a busy machine takes."""
    waits = [float(seconds) for seconds in re.findall(r"told after (\S+) s", done.stdout)]
    assert all(seconds < TOLD_WITHIN for seconds in waits), waits


@contextmanager
def begun(*arguments: str, options: Sequence[str] = (), **more: str) -> Iterator[subprocess.Popen[str]]:
    """The launcher of three processes that have begun; a test that fails does not wait for it."""
    skip_without_mpi()
    call, pipe = command(3, "faults", *arguments, options=options), subprocess.PIPE
    with subprocess.Popen(call, env=environment(**more), stdout=pipe, stderr=pipe, text=True) as run:
        try:
            assert [run.stdout.readline() for _ in range(3)] == ["started\n"] * 3
            yield run
        finally:
            run.kill()


def test_a_launcher_that_does_not_end_the_others():
    """As srun without --kill-on-bad-exit: those who wait find out by themselves."""
    mark = f"by-{os.getpid()}"
    ranks = ["pgrep", "-f", f"^{re.escape(sys.executable)} .*faults.py kill {mark}"]
    with begun("kill", mark, options=["--enable-recovery"], NNRS_COMMUNICATOR_TIMEOUT="0.5") as run:
        end = time.monotonic() + LIMIT
        while subprocess.run(ranks, stdout=subprocess.DEVNULL, check=False).returncode == 0:
            assert time.monotonic() < end
            time.sleep(0.1)
        try:
            texts = run.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # Open MPI 5 may stay behind when its processes are gone
            run.kill()
            texts = run.communicate()
    done = subprocess.CompletedProcess(run.args, None, *texts)
    assert re.search(SILENT, done.stderr), done.stderr  # Open MPI 4 says 0 with this option, whatever happened
    assert "told after" in done.stdout
    check_waits(done)


def test_one_that_does_not_come_to_init_is_named():
    done = failing(3, "init_hang", timeout=LIMIT)
    assert done.returncode != 0
    assert "Communicator.init: rank 1 did not come to it within 0.5 s" in done.stderr, done.stderr


def test_who_catches_that_one_does_not_come_to_init_ends_all():
    done = failing(3, "init_hang", "again", timeout=LIMIT)
    assert done.returncode != 0
    assert "ends all processes: its communicator has failed" in done.stderr, done.stderr


def test_one_that_never_comes_to_mpi_is_not_waited_for():
    """The wait is within MPI_Init, where no code of Python's runs."""
    done = failing(2, "absent", timeout=LIMIT)
    assert done.returncode != 0
    assert "Communicator.init: rank 0 has waited 10 s for MPI to begin" in done.stderr, done.stderr


def test_one_that_comes_late_is_waited_for():
    done = failing(3, "faults", "late", timeout=LIMIT, NNRS_COMMUNICATOR_TIMEOUT="20")
    assert done.returncode == 0 and done.stdout.count("is well") == 3, done.stderr


@pytest.mark.parametrize(("how", "number"), [("all", signal.SIGTERM), ("wait", signal.SIGINT)])
def test_a_signal_to_the_launcher_ends_all(how, number):
    with begun(how) as run:
        time.sleep(0.2)  # so that those who wait do; it holds at any time
        run.send_signal(number)
        run.communicate(timeout=LIMIT)
    assert run.returncode != 0
