"""Starts programs of tests/mpi on several local processes with the variables that torchrun sets, and without torch."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mpi_helpers import PROGRAMS


class Ended(NamedTuple):
    """How the processes ended."""

    statuses: list[int]
    stdout: str
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout + self.stderr


def free_port() -> int:
    """None of those that the system gives to connections, which others might get before it is used."""
    while True:
        port = random.SystemRandom().randrange(10_240, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def environment(rank: int, size: int, port: int, **more: str) -> dict[str, str]:
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "NNRS_NUM_THREADS": "1", "PYTHONPATH": path, **{k: str(v) for k, v in own.items()}, **more}


def start(size: int, program: str | Path, *arguments: object, **more: str) -> list[subprocess.Popen[str]]:
    path = program if isinstance(program, Path) else PROGRAMS / f"{program}.py"
    command, port = [sys.executable, str(path), *map(str, arguments)], free_port()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return [subprocess.Popen(command, env=environment(r, size, port, **more), **pipes) for r in range(size)]


def failing(
    size: int, program: str | Path, *arguments: object, timeout: float = 120, stays: Sequence[int] = (), **more: str
) -> Ended:
    """How processes end; ranks that `stays` names do not end by themselves, and are killed when the others have."""
    started, deadline = start(size, program, *arguments, **more), time.monotonic() + timeout
    try:
        texts = {}
        for r in sorted(range(size), key=lambda r: r in stays):
            if r in stays:
                assert started[r].poll() is None, "it has ended"
                started[r].kill()
            texts[r] = started[r].communicate(timeout=max(deadline - time.monotonic(), 1))
        out, err = ("".join(texts[r][i] for r in range(size)) for i in range(2))
        return Ended([p.returncode for p in started], out, err)
    finally:
        for p in started:
            p.kill()


def run(size: int, program: str | Path, *arguments: object, timeout: float = 120, **more: str) -> str:
    """What all processes printed; an error if one of them fails."""
    done = failing(size, program, *arguments, timeout=timeout, **more)
    assert done.statuses == [0] * size, done
    return done.stdout
