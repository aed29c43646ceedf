"""The word with which each collective begins: processes that ask for different things, or for different shapes, get an
error that says so, and no hang; and how one that has given a backward run up tells the others."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._errors import ArgumentError, CommunicatorError, message
from .reductions import Steps
from .transport import Poll, Transport, block_cuts

MOST_TEXT = 1 << 16
MOST_WHY = 300
"""How many letters of an error the other processes are told."""
_NOTICE = "nothing more of "


class DisagreementError(ArgumentError):
    """Calls that differ between processes: all of them get it, and may go on."""


class Notice(NamedTuple):
    """What a process says, in the place of a collective, that has given a backward run up."""

    rank: int
    path: list[list[Any]]
    """Which run: the numbers of those around it, and its own (`RunNumber`)."""
    groups: list[str]
    """Those that the process is in, called as in `RunNumber`."""
    why: str

    def error(self, name: str, group: str) -> DisagreementError:
        """What a collective of the group ends with that it meets."""
        what = f"rank {self.rank} of group {group!r} has given its backward run up: {self.why}"
        hint = "gradients of this run are missing: leave the step out on all processes"
        return DisagreementError(message(f"Communicator.{name}", None, what, hint=hint))

    def unclear(self, name: str, group: str) -> CommunicatorError:
        """The end, where it cannot be said whether a collective that meets it belongs to that run."""
        what = (
            f"rank {self.rank} of group {group!r} has given a backward run up ({self.why}). It has no callbacks' group "
            "in common with this process, and made another number of runs: "
            "whether this collective is of it is unknown"
        )
        hint = "give both a callback of one group, which may have no gradients: comm.all_reduce_callback([], 1)"
        return CommunicatorError(message(f"Communicator.{name}", None, what, hint=hint))

    def begun(self) -> dict[str, int]:
        """Of each group of the communicator with callbacks in the outermost run: how many such ones it has begun."""
        return {name[1:]: number for name, number in self.path[0][-1].items() if name.startswith(":")}


def notice_text(path: Sequence[Any], groups: Sequence[str], why: str) -> str:
    """What `agree` says of a run that has been given up here."""
    return _NOTICE + json.dumps({"path": path, "groups": groups, "why": why[:MOST_WHY]})


def _notice(rank: int, text: str) -> Notice | None:
    _, _, told = text.partition(" of ")
    if not told.startswith(_NOTICE):
        return None
    found = json.loads(told[len(_NOTICE) :])
    return Notice(rank, **found)


def agree(
    t: Transport,
    name: str,
    said: str,
    counts: Mapping[str, int],
    hear: Callable[[Sequence[Notice], Sequence[Mapping[str, int]]], DisagreementError | None],
    again: Callable[[], None],
) -> Steps:
    """Goes on when all processes have come to this collective; an error where they do not all say the same of it.

    What another process says of a run that it has given up takes the place of one of its collectives, which any of the
    others may meet. `hear` notes it, and gives the error for a collective that belongs to that run; one that does not
    is said once more (after a call of `again`). Where there is no such notice, `hear` notes how many runs each process
    had begun when it asked: `counts`.
    """
    if t.size == 1:
        return
    while True:
        found = yield from _exchange(t, f"{name} of {said}", counts)
        if found is None:
            return
        texts, counted = found
        notices = [n for i, text in enumerate(texts) if i != t.rank and (n := _notice(i, text)) is not None]
        error = hear(notices, [] if notices else counted)
        if said.startswith(_NOTICE):
            return
        if not notices:
            raise _disagreement(t, name, texts)
        if error is not None:
            raise error
        again()


def _exchange(
    t: Transport, text: str, own: Mapping[str, int]
) -> Generator[Poll, None, tuple[list[str], list[dict[str, int]]] | None]:
    """What all say, and how many runs they have begun, where that is not the same."""
    said = text.encode()
    digests = np.zeros(t.size, np.uint64)
    digests[t.rank] = zlib.crc32(said) << 32 | zlib.crc32(said[::-1])
    yield t.all_gather(digests, block_cuts(1, t.size))
    if (digests == digests[0]).all():
        return None
    both = f"{json.dumps(own)}\n".encode() + said[:MOST_TEXT]
    lengths = np.zeros(t.size, np.int64)
    lengths[t.rank] = len(both)
    yield t.all_gather(lengths, block_cuts(1, t.size))
    texts = np.zeros((t.size, int(lengths.max())), np.uint8)
    texts[t.rank, : lengths[t.rank]] = np.frombuffer(both, np.uint8)
    yield t.all_gather(texts.reshape(-1), block_cuts(texts.shape[1], t.size))
    rows = [bytes(row).rstrip(b"\0").decode(errors="replace").partition("\n") for row in texts]
    return [text for _, _, text in rows], [json.loads(counts) for counts, _, _ in rows]


def _disagreement(t: Transport, name: str, texts: Sequence[str]) -> DisagreementError:
    other = next((i for i, text in enumerate(texts) if text != texts[t.rank]), t.rank)
    own, theirs = _around_the_difference(texts[t.rank], texts[other])
    hint = (
        "each process of a group calls the same collectives in the same order, with arrays of the same shapes and types"
    )
    expected = f"the same call on all processes; rank {t.rank} of the group has {own}"
    return DisagreementError(message(f"Communicator.{name}", None, expected, f"on rank {other} {theirs}", hint))


def _around_the_difference(*texts: str, before: int = 60, length: int = 240) -> list[str]:
    """Long texts cut to what is around their first difference."""
    same = next(
        (i for i, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), min(map(len, texts))
    )
    start = max(same - before, 0) if max(map(len, texts)) > length else 0
    cut = [text[start : start + length] for text in texts]
    return [
        ("..." if start else "") + c + ("..." if start + length < len(text) else "")
        for c, text in zip(cut, texts, strict=True)
    ]
