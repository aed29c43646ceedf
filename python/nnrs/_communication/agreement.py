"""The word with which each collective begins: processes that ask for different things, or for different shapes, get an
error that says so, and no hang; and how one that has given a backward run up tells the others."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._errors import ArgumentError, message
from .reductions import Steps, until
from .transport import Transport, block_cuts

MOST_TEXT = 1 << 16
MOST_WHY = 300
"""How many letters of an error the other processes are told."""
_NOTICE = "nothing more of "


class DisagreementError(ArgumentError):
    """Calls that differ between processes: all of them get it, and may go on."""


class Notice(NamedTuple):
    """What a process says, in the place of a collective, that has given a backward run up."""

    rank: int
    runs: dict[str, int]
    """The run's number in each group that has callbacks in it."""
    why: str

    def error(self, name: str, group: str) -> DisagreementError:
        """What a collective of the group ends with that it meets."""
        what = f"rank {self.rank} of group {group!r} has given its backward run up: {self.why}"
        hint = "gradients of this run are missing: leave the step out on all processes"
        return DisagreementError(message(f"Communicator.{name}", None, what, hint=hint))


def notice_text(runs: Mapping[str, int], why: str) -> str:
    """What `agree` says of a run that has been given up here."""
    return _NOTICE + json.dumps({"runs": dict(runs), "why": why[:MOST_WHY]})


def _notice(rank: int, text: str) -> Notice | None:
    _, _, told = text.partition(" of ")
    if not told.startswith(_NOTICE):
        return None
    found = json.loads(told[len(_NOTICE) :])
    return Notice(rank, found["runs"], found["why"])


def agree(
    t: Transport,
    name: str,
    said: str,
    hear: Callable[[str, Sequence[Notice]], DisagreementError | None],
    again: Callable[[], None],
) -> Steps:
    """Goes on when all processes have come to this collective; an error where they do not all say the same of it.

    What another process says of a run that it has given up takes the place of one of its collectives, which any of the
    others may meet. `hear` notes it, and gives the error for a collective that belongs to that run; one that does not
    is said once more (after a call of `again`).
    """
    if t.size == 1:
        return
    while True:
        texts = yield from _exchange(t, f"{name} of {said}")
        if texts is None:
            return
        notices = [n for i, text in enumerate(texts) if i != t.rank and (n := _notice(i, text)) is not None]
        error = hear(name, notices)
        if said.startswith(_NOTICE):
            return
        if not notices:
            raise _disagreement(t, name, texts)
        if error is not None:
            raise error
        again()


def _exchange(t: Transport, text: str) -> Generator[None, None, list[str] | None]:
    """What all say, where that is not the same."""
    own = text.encode()
    digests = np.zeros(t.size, np.uint64)
    digests[t.rank] = zlib.crc32(own) << 32 | zlib.crc32(own[::-1])
    yield from until(t.all_gather(digests, block_cuts(1, t.size)))
    if (digests == digests[0]).all():
        return None
    lengths = np.zeros(t.size, np.int64)
    lengths[t.rank] = min(len(own), MOST_TEXT)
    yield from until(t.all_gather(lengths, block_cuts(1, t.size)))
    texts = np.zeros((t.size, int(lengths.max())), np.uint8)
    texts[t.rank, : lengths[t.rank]] = np.frombuffer(own[:MOST_TEXT], np.uint8)
    yield from until(t.all_gather(texts.reshape(-1), block_cuts(texts.shape[1], t.size)))
    return [bytes(row).rstrip(b"\0").decode(errors="replace") for row in texts]


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
