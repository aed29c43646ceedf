"""Random programs of collectives with a wrong use in their midst: an error on all concerned, in time, and no hang."""

from __future__ import annotations

import re
import zlib

import pytest

from mpi_helpers import failing

pytestmark = pytest.mark.host
LIMIT = 120  # of mpirun as a whole, which is slow to start where others compute

# What goes on, with as many refusals as are told; what the same calls in another order are, nobody can foresee.
AMIDST = {
    "shape": 3,
    "dtype": 3,
    "root": 3,
    "order": 6,
    "group": 3,
    "parameters": 3,
    "gradients": 3,
    "run": 3,
    "gone": 0,
    "overflow": 0,
}
AT_THE_END = {"last": 6, "dropped": 0, "fork": 0}  # of the program, or of one that has done nothing else
GOES_ON = {**AMIDST, **AT_THE_END}
ENDS = {
    "exit": r"CommunicatorError: rank \d in \w+ \(call \d+, group '\w+'\): rank \d ended without coming to it",
    "status": r"CommunicatorError: rank \d in \w+ \(call \d+, group '\w+'\): rank \d ended without coming to it",
    "init": r"CommunicatorError: Communicator.init: rank \d ended without coming to it",
    "other": r"not over after 5 s: .*rank \d waits in all_reduce \(call",
    "vanish": r"nnrs: rank \d of 3 is ended by SIGTERM while it waits in \w+ \(call|did not come to it",
    "raise": r"nnrs: rank \d of 3 ends all processes: IndexError; its last collective was \w+ \(call",
    "kill": r"nnrs: rank \d of 3 is ended by SIGTERM while it waits in \w+ \(call",
    "rows": r"has given a backward run up \(.*ValueError: a bad sample\).*whether this collective is of it is unknown",
    "term": r"nnrs: rank \d of 3 is ended by SIGTERM while it waits in \w+ \(call",
}


def run(*wrong: str) -> tuple[int, str]:
    seed = zlib.crc32(wrong[0].encode()) % 1000
    done = failing(3, "hostile", seed, *wrong, timeout=LIMIT, NNRS_COMMUNICATOR_TIMEOUT="5")
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", [*AT_THE_END, *(pytest.param(w, marks=pytest.mark.long) for w in AMIDST)])
def test_all_are_told_and_go_on(wrong):
    status, text = run(wrong)
    assert status == 0 and text.count("is well") == 3 and text.count("refused:") == GOES_ON[wrong], text
    if wrong == "fork":
        assert "fork: all_reduce (group 'world'): a fork of the process that made it cannot take part" in text
        assert text.count("fork, too:") == 2


def test_all_are_told_of_one_wrong_use_after_the_other_and_go_on():
    status, text = run(*AMIDST)
    assert status == 0 and text.count("is well") == 3, text
    assert {wrong: text.count(f"{wrong} refused:") for wrong in AMIDST} == AMIDST, text


def test_a_signals_handler_that_raises_in_a_wait():
    """It was a CommunicatorError, and the end."""
    status, text = run("alarm")
    assert status == 0 and text.count("is well") == 3, text
    assert text.count("alarm\n") == 2 and text.count("refused:") == 2 and text.count("backward run up: Alarm") == 2, (
        text
    )


# Those that tests/test_mpi_faults.py has too are in the long test.
@pytest.mark.parametrize(
    "wrong", [pytest.param(w, marks=pytest.mark.long) if w in ("exit", "raise", "kill") else w for w in ENDS]
)
def test_the_end_of_one_is_that_of_all(wrong):
    status, text = run(wrong)
    assert status != 0 and "is well" not in text, text
    assert re.search(ENDS[wrong], text), text


def test_several_threads_of_one_process():
    """Their collectives come in any order, and the processes differ: all are told, or it happens to fit."""
    status, text = run("threads")
    assert status == 0 or "CommunicatorError" in text or "DisagreementError" in text, text
