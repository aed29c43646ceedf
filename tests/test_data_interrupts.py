"""Ctrl-C while caches are written: wherever it comes, nothing hangs, and the folder has one whole cache."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from nnrs import config
from nnrs._interrupts import uninterrupted
from nnrs.utils._workers import in_order
from nnrs.utils.data_source import DataSourceWithFileCache
from nnrs.utils.data_source_implements import SimpleDataSource
from nnrs.utils.progress import configure_progress

# Sends SIGINT at a number of the places where CPython looks for signals, one a run.
EVERYWHERE = """
import dis, faulthandler, os, signal, sys, threading
import numpy as np
from nnrs import config
from nnrs.utils.data_source import DataSourceWithFileCache
from nnrs.utils.data_source_implements import CacheDataSource, SimpleDataSource

settings = config.nnabla_config["DATA_ITERATOR"]
settings["data_source_file_cache_size"], settings["data_source_file_cache_num_of_threads"] = "2", "2"
PLACES = ("RESUME", "CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")
seen = 0

def interrupt(at):
    before = {}

    def trace(frame, event, arg):
        global seen
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            last = before.get(frame, "")
            before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if last.startswith(PLACES):
                seen += 1
                if seen == at:
                    sys.settrace(None)
                    signal.raise_signal(signal.SIGINT)
        return trace

    return trace

def write(folder, value, at):
    global seen
    seen = 0
    source = SimpleDataSource(lambda i: (np.float32(i + value),), 6)
    faulthandler.dump_traceback_later(20, exit=True)
    sys.settrace(interrupt(at))
    try:
        DataSourceWithFileCache(source, folder)
        return True
    except (KeyboardInterrupt, RuntimeError):  # threading's own, where it was interrupted
        return False
    finally:
        sys.settrace(None)
        faulthandler.cancel_dump_traceback_later()

folder, start = sys.argv[1], int(sys.argv[2])
write(folder, 0, -1)
places, stopped = seen, 0
for k in range(start, places, 11):
    value = 10 * k
    stopped += not write(folder, value, k)
    source = CacheDataSource(folder)
    first = float(source.next()[0])
    rest = [float(source.next()[0]) for _ in range(5)]
    assert rest == [first + i for i in range(1, 6)], (k, first, rest)
print(places > 300, stopped > 20)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.host
def test_ctrl_c_at_any_place_neither_hangs_nor_mixes_caches(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EVERYWHERE, str(tmp_path), "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr


def test_work_that_is_not_wanted_any_more_ends_after_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after a file of a hundred samples, each of which may take a second."""
    monkeypatch.setitem(config.nnabla_config["DATA_ITERATOR"], "data_source_file_cache_num_of_threads", "2")
    loaded: list[int] = []
    go = threading.Semaphore(101)

    def load(number: int) -> tuple[np.ndarray]:
        go.acquire()
        loaded.append(number)
        return (np.array(number),)

    def stop(state: str | None, part: float) -> None:
        if part > 0:  # the first file is written
            go.release(100)
            raise KeyboardInterrupt

    configure_progress("", stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            DataSourceWithFileCache(SimpleDataSource(load, 1000), str(tmp_path))
    finally:
        configure_progress("", lambda state, part: None)
    assert len(loaded) < 400 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_in_order_and_errors_in_their_places(threads: int) -> None:
    def work(number: int, check: object) -> int:
        if number == 5:
            raise ValueError("five")
        return number

    found = []
    with pytest.raises(ValueError, match="five"), in_order(work, range(9), threads) as results:
        for n in results:
            found.append(n)
    assert found == [0, 1, 2, 3, 4]
    with in_order(work, [], threads) as results:
        assert list(results) == []


def test_a_thread_cannot_be_interrupted() -> None:
    found = []

    def work() -> None:
        with uninterrupted():
            found.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]
