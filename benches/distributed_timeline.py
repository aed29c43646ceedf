"""When functions of a backward run are computed and when their gradients travel: recorded on each rank, and drawn."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

Event = tuple[str, float, float]  # what, from when, until when
PACK = 1 << 20  # numbers of a pack: small enough that there are several
STEPS = 4  # the last one is drawn


def watched(transport: Any, events: list[Event]) -> Any:
    """A transport that notes when its moves begin and end, as far as it is asked."""
    from nnrs.communicators import Transport

    class Watched(Transport):
        name, rank, size, local_rank = transport.name, transport.rank, transport.size, transport.local_rank

        def _noted(self, what: str, poll: Any) -> Any:
            start = time.perf_counter()
            over = False

            def asked() -> bool:
                nonlocal over
                if not over and poll():
                    over = True
                    events.append((what, start, time.perf_counter()))
                return over

            return asked

        def all_to_all(self, send: np.ndarray, cuts: Any, received: np.ndarray) -> Any:
            return self._noted("all_to_all", transport.all_to_all(send, cuts, received))

        def all_gather(self, buffer: np.ndarray, cuts: Any) -> Any:
            small = buffer.nbytes < 1024  # the word on what comes
            return self._noted("word" if small else "all_gather", transport.all_gather(buffer, cuts))

        def gather(self, buffer: np.ndarray, cuts: Any, dst: int) -> Any:
            return transport.gather(buffer, cuts, dst)

        def bcast(self, buffer: np.ndarray, src: int) -> Any:
            return transport.bcast(buffer, src)

        def subset(self, ranks: Any, name: str) -> Any:
            return transport.subset(ranks, name)

        def waiting(self, call: Any, seconds: float) -> None:
            transport.waiting(call, seconds)

        def finished(self, call: Any) -> None:
            transport.finished(call)

        def abort(self) -> None:
            transport.abort()

    return Watched()


def watched_callback(inner: Any, events: list[Event]) -> Any:
    """A callback of backward that notes what lies between two calls, and what the calls themselves take."""
    from nnrs.communicators import CommunicatorBackwardCallback

    class WatchedCallback(CommunicatorBackwardCallback):
        last = 0.0

        def on_finish_function_backward(self, function: Any) -> None:
            now = time.perf_counter()
            events.append((function.name, self.last or now, now))
            inner.on_finish_function_backward(function)
            self.last = time.perf_counter()

        def on_finish_backward(self) -> None:
            now = time.perf_counter()
            inner.on_finish_backward()
            events.append(("wait", now, time.perf_counter()))

    return WatchedCallback()


def record(case: str, quick: bool, folder: Path) -> None:
    """Train some steps on this rank, and write the events of the last backward run to a file."""
    from distributed_worker import nnrs_network, pin

    import nnrs as nn
    import nnrs.communicators as C
    from nnrs._communication import launch

    functions: list[Event] = []
    moves: list[Event] = []
    transport = launch.world(60.0)
    comm = C.Communicator(watched(transport, moves))
    pin(transport.rank)
    nn.set_num_threads(1)
    loss, solver = nnrs_network(case, quick)
    gradients = [p.grad for p in solver.get_parameters().values()]
    callback = watched_callback(comm.all_reduce_callback(gradients, PACK, division=True), functions)
    for _ in range(STEPS):
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        comm.barrier()
        functions.clear(), moves.clear()
        callback.last = time.perf_counter()
        loss.backward(clear_buffer=True, communicator_callbacks=callback)
        solver.update()
    found = {"rank": transport.rank, "functions": functions, "moves": moves}
    (folder / f"rank-{transport.rank}.json").write_text(json.dumps(found))


def overlap(rank: dict[str, Any]) -> tuple[float, float]:
    """Seconds of moves in all, and how many of them lie behind the end of backward."""
    end = max(until for name, _, until in rank["functions"] if name != "wait")
    moves = [(a, b) for name, a, b in rank["moves"] if name != "word"]
    return sum(b - a for a, b in moves), sum(b - max(a, end) for a, b in moves if b > end)


def draw(folder: Path, target: Path, title: str) -> None:
    """The picture of all ranks."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranks = [json.loads(path.read_text()) for path in sorted(folder.glob("rank-*.json"))]
    zero = min(start for rank in ranks for _, start, _ in rank["functions"])
    figure, axes = plt.subplots(figsize=(12, 1 + 1.5 * len(ranks)))
    labels = []
    for i, rank in enumerate(ranks):
        _row(axes, 2 * i, [e for e in rank["functions"] if e[0] != "wait"], zero, ["#4878a8", "#9ab8d4"])
        _row(axes, 2 * i, [e for e in rank["functions"] if e[0] == "wait"], zero, ["#d8d8d8"])
        _row(axes, 2 * i + 1, [e for e in rank["moves"] if e[0] == "all_to_all"], zero, ["#d07038"])
        _row(axes, 2 * i + 1, [e for e in rank["moves"] if e[0] == "all_gather"], zero, ["#509058"])
        labels += [f"rank {rank['rank']}: backward", "gradients"]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds; blue: functions, grey: waiting, orange: parts to their rank, green: sums to all")
    axes.set_title(title, loc="left")
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def _row(axes: Any, place: int, events: list[Any], zero: float, colors: list[str]) -> None:
    for i, (_, start, until) in enumerate(events):
        span = [((start - zero) * 1e3, (until - start) * 1e3)]
        axes.broken_barh(span, (place - 0.4, 0.8), facecolors=colors[i % len(colors)])
