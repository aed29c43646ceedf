"""Processes that fail, over TCP sockets: the others end in time with an error that says who and in which collective."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import zlib

import pytest

from socket_helpers import Ended, environment, failing, free_port, run, start
from test_mpi_hostile import GOES_ON

pytestmark = pytest.mark.host
WAITS = r"all_reduce \(call 2, group 'world'\)"
GONE = rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended without a word \(killed, or cut off\)"
SILENT = rf"CommunicatorError: rank [02] in {WAITS}: not over after 0.5 s: rank 1 did not come to it and gave no answer"
TOLD_WITHIN = 10  # half a second of patience and one for answers, and what a busy machine takes


def raised(error: str) -> list[str]:
    return [
        rf"nnrs: rank 1 of 3 ends all processes: {error}; its last .* all_reduce",
        rf"CommunicatorError: rank [02] in {WAITS}: rank [012] ended all processes: {error}: ",
    ]


@pytest.mark.parametrize(("how", "says"), [
    ("kill", [GONE]),
    ("exit", [rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended without coming to it"]),
    ("older", [rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended without coming to it"]),
    ("raise", raised("IndexError")),
    # The others hear the run's word, or, where they still wait, of the end.
    ("backward", [r"ValueError: a bad sample", r"(rank \d ended all processes: \w+|backward run up): .*a bad sample"]),
    ("abort", [rf"CommunicatorError: rank [02] in {WAITS}: rank 1 ended all processes: it called abort"]),
    ("hang", [SILENT, r"nnrs: rank 1 of 3 is ended: rank [02] ended all processes: CommunicatorError: rank"]),
    ("group", [r"not over after 0.5 s: (rank [02] |.*; rank [02] )waits in all_reduce \(call 3, group 'world'\)"]),
])  # fmt: skip
def test_one_that_fails_ends_all(how, says):
    done = failing(3, "faults", how, NNRS_COMMUNICATOR_TIMEOUT="0.5")
    assert all(done.statuses[r] for r in ((0, 2) if how in ("exit", "older") else range(3))), done
    assert "is well" not in done.text, done
    for pattern in says:
        assert re.search(pattern, done.text), (pattern, done)
    check_waits(done)


def check_waits(done: Ended) -> None:
    waits = [float(seconds) for seconds in re.findall(r"told after (\S+) s", done.text)]
    assert all(seconds < TOLD_WITHIN for seconds in waits), waits


def test_one_that_is_stopped():
    """It does not hear of the end."""
    done = failing(3, "faults", "stop", stays=[1], NNRS_COMMUNICATOR_TIMEOUT="0.5")
    assert done.statuses == [1, -signal.SIGKILL, 1] and re.search(SILENT, done.text), done
    check_waits(done)


def test_who_catches_the_error_ends_all_at_its_end():
    """The one that hangs hears of it then."""
    done = failing(3, "faults", "caught", NNRS_COMMUNICATOR_TIMEOUT="0.5")
    assert done.statuses == [1, -signal.SIGTERM, 1], done
    assert "goes on: this communicator has ended: rank" in done.text
    assert "ends all processes: its communicator has failed" in done.text


def test_one_that_comes_late_is_waited_for():
    assert run(3, "faults", "late", NNRS_COMMUNICATOR_TIMEOUT="20").count("is well") == 3


def test_a_signal_while_it_waits():
    started = start(3, "faults", "wait")
    try:
        assert [p.stdout.readline() for p in started] == ["started\n"] * 3
        time.sleep(0.5)
        started[0].send_signal(signal.SIGTERM)
        texts = [p.communicate(timeout=60)[1] for p in started]
    finally:
        for p in started:
            p.kill()
    assert all(p.returncode for p in started), texts
    assert re.search(rf"nnrs: rank 0 of 3 is ended by SIGTERM while it waits in {WAITS}", texts[0]), texts
    assert "rank 0 ended without a word" in texts[2], texts


# --- wrong use --------------------------------------------------------------------------------------------------------


def hostile(wrong: str) -> Ended:
    seed = zlib.crc32(wrong.encode()) % 1000
    return failing(3, "hostile", seed, wrong, NNRS_COMMUNICATOR_TIMEOUT="5")


# What is compared is the same as by MPI: two of them, and all with the long tests.
@pytest.mark.parametrize(
    "wrong", [w if w in ("run", "fork") else pytest.param(w, marks=pytest.mark.long) for w in GOES_ON]
)
def test_all_are_told_and_go_on(wrong):
    done = hostile(wrong)
    assert done.statuses == [0] * 3 and done.text.count("is well") == 3, done
    assert done.text.count("refused:") == GOES_ON[wrong], done
    if wrong == "fork":
        assert "fork: all_reduce (group 'world'): a fork of the process that made it cannot take part" in done.text
        assert done.text.count("fork, too:") == 2


NAMED = r"CommunicatorError: rank \d in \w+ \(call \d+, group '\w+'\): rank \d "


@pytest.mark.parametrize(("wrong", "says"), [
    pytest.param("exit", "ended without coming to it", marks=pytest.mark.long),
    ("status", "ended without coming to it"),
    ("vanish", "ended without a word"),
    pytest.param("raise", "ended all processes: IndexError", marks=pytest.mark.long),
    pytest.param("kill", "ended without a word", marks=pytest.mark.long),
])  # fmt: skip
def test_the_end_of_one_is_that_of_all(wrong, says):
    done = hostile(wrong)
    assert "is well" not in done.text and re.search(NAMED + says, done.text), done
    assert sum(status != 0 for status in done.statuses) >= 2, done


def test_the_end_of_all_others_is_that_of_one_that_hangs():
    done = hostile("term")
    assert done.statuses == [-signal.SIGTERM] * 3, done
    assert re.search(r"nnrs: rank \d of 3 is ended by SIGTERM while it waits in \w+ \(call", done.text), done
    assert re.search(r"nnrs: rank \d of 3 is ended: ranks? [\d, ]+ ended without a word", done.text), done


def test_several_threads_of_one_process():
    done = hostile("threads")
    assert done.statuses == [0] * 3 or "CommunicatorError" in done.text or "DisagreementError" in done.text, done


# --- the beginning ----------------------------------------------------------------------------------------------------

INIT = """
import nnrs as nn, nnrs.communicators as C, nnrs._communication.rendezvous as rendezvous
rendezvous.START = 0
C.Comm(nn.get_current_context(), timeout=1).init()
"""


def init(rank: int, size: int, port: int, code: str = INIT, **more: str) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", code]
    return subprocess.Popen(call, env=environment(rank, size, port, **more), stderr=subprocess.PIPE, text=True)


def test_one_that_does_not_come_to_init_is_named():
    """By all: rank 0 tells those that have come, however long they would wait themselves."""
    port = free_port()
    with init(0, 3, port, INIT.replace("=1", "=2")) as first, init(2, 3, port, INIT.replace("=1", "=60")) as last:
        for each in (first, last):
            assert "CommunicatorError: Communicator.init: rank 1 did not come to it within 2 s" in each.communicate()[1]


def test_without_rank_0_it_is_named():
    with init(1, 2, free_port()) as only:
        said = only.communicate(timeout=60)[1]
    assert re.search("rank 0 did not come to it within 1 s: nothing listens at MASTER_ADDR:MASTER_PORT, 127.0", said)


def test_strangers_keep_nobody_waiting():
    port = free_port()
    with init(0, 2, port, INIT.replace("=1", "=30")) as first:
        strangers = []
        while len(strangers) < 3:
            try:
                strangers.append(socket.create_connection(("127.0.0.1", port)))
            except OSError:
                time.sleep(0.02)
        strangers[0].sendall(b"GET / HTTP/1.1\r\nHost: rank-0\r\n\r\n")
        strangers[1].close()
        with init(1, 2, port, INIT.replace("=1", "=30")) as second:
            assert second.communicate(timeout=60)[1] == "" == first.communicate(timeout=60)[1]
    for s in strangers:
        s.close()


def test_one_rank_twice_and_another_size_are_refused():
    port = free_port()
    with init(0, 3, port, INIT.replace("=1", "=5")) as first, init(1, 3, port, INIT.replace("=1", "=30")) as one:
        time.sleep(1)
        for rank, size in ((1, 3), (1, 2)):
            with init(rank, size, port) as other:
                said = other.communicate(timeout=60)[1]
            assert re.search(r"'RANK': expected rank 0 waits for ranks \[(1, )?2\] of 3|within 1 s", said), said
        assert "rank 2 did not come to it within 5 s" in first.communicate(timeout=60)[1]
        assert "rank 2 did not come to it within 5 s" in one.communicate(timeout=60)[1]


def test_a_port_that_is_taken():
    with socket.create_server(("", 0)) as server, init(0, 2, server.getsockname()[1]) as first:
        said = first.communicate(timeout=60)[1]
    assert "'MASTER_PORT': expected a port that is free on rank 0's machine" in said and "another MASTER_PORT" in said


@pytest.mark.parametrize("address", ["localhost", "::1"])
def test_names_and_ipv6(address):
    if address == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    assert run(2, "faults", "late", MASTER_ADDR=address, NNRS_COMMUNICATOR_TIMEOUT="inf").count("is well") == 2


def test_a_machine_that_is_not_there():
    with init(1, 2, 29500, MASTER_ADDR="no.such.machine.invalid") as only:
        said = only.communicate(timeout=60)[1]
    assert "'MASTER_ADDR': expected the address of rank 0's machine, got 'no.such.machine.invalid': " in said


@pytest.mark.parametrize(("end", "says"), [
    ("time.sleep(100)", "rank 1 did not come to it within 1 s"),
    ("os._exit(0)", r"rank 1 ended without a word \(killed, or cut off\)"),
    ("[][1]", "rank 1 ended all processes: IndexError: list index out of range"),
])  # fmt: skip
def test_one_that_does_not_come_to_a_second_init(end, says):
    port, second = free_port(), "C.Comm(nn.get_current_context(), timeout=1).init()"
    with init(0, 2, port, INIT + second) as here, init(1, 2, port, f"{INIT}import os, time; {end}"):
        said = here.communicate(timeout=60)[1]
    assert re.search(f"CommunicatorError: Communicator.init: {says}", said), said
