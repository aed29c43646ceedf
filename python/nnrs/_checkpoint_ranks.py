"""What checkpoints ask of a communicator: who this process is, that all are at one point, and one answer for all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from ._core import NdArray
from ._errors import ArgumentError, ArgumentTypeError, FileError, describe, message
from .communicators import DataParallelCommunicator

T = TypeVar("T")

_DIGIT = 1 << 20  # float32 holds such numbers exactly


class _Between:
    """Waits at the first of two barriers, once."""

    def __init__(self, barrier: Callable[[], Any]) -> None:
        self._barrier = barrier
        self._is_behind = False

    def wait(self) -> None:
        if not self._is_behind:
            self._is_behind = True
            self._barrier()


class Ranks:
    """A communicator, or none: then this process is alone.

    Args:
        communicator: An object with `rank`, `size` and `barrier()`, or None.
    """

    def __init__(self, communicator: Any) -> None:
        if communicator is not None:
            for name in ("rank", "size", "barrier"):
                if not hasattr(communicator, name):
                    expected = "a communicator with rank, size and barrier()"
                    raise ArgumentTypeError(message("Checkpoints", "communicator", expected, describe(communicator)))
        is_one_process = isinstance(communicator, DataParallelCommunicator)  # whose size is how many contexts it has
        self.communicator: Any = None if is_one_process else communicator

    @property
    def rank(self) -> int:
        """The number of this process."""
        return 0 if self.communicator is None else int(self.communicator.rank)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return 1 if self.communicator is None else int(self.communicator.size)

    @contextlib.contextmanager
    def both_barriers(self) -> Iterator[_Between]:
        """A block that all ranks leave behind two barriers, also the one that fails: the others shall not hang.

        The first barrier is where the block calls `wait`, or its end.
        """
        between = _Between(self.communicator.barrier)
        try:
            yield between
        finally:
            between.wait()
            self.communicator.barrier()

    def unless_one_fails(self, work: Callable[[], T], number: Callable[[T], int], function: str, argument: str) -> T:
        """What `work` returns, if it fails on no rank and all have one number; else an error on each.

        Of a communicator without `all_reduce` and `bcast` each rank sees its own alone.
        """
        error: Exception | None = None
        try:
            found = work()
        except Exception as failed:
            error = failed
        if self.size > 1 and self.tells:
            told = NdArray((self.size, 4))
            told.zero()
            told.data[self.rank] = [-1.0] * 4 if error is not None else _out(number(found))
            self.communicator.all_reduce([told], division=False)
            if error is None and told.data.min() < 0:
                raise FileError(message(function, None, "another rank has failed: see its error"))
            if error is None and (told.data != told.data[0]).any():
                different = "others on some ranks than on rank 0"
                raise ArgumentError(message(function, argument, "the same on all ranks", different))
        if error is not None:
            raise error
        return found

    @property
    def tells(self) -> bool:
        """Whether ranks can tell each other more than that they have come."""
        return hasattr(self.communicator, "bcast") and hasattr(self.communicator, "all_reduce")

    @contextlib.contextmanager
    def before_barriers(self) -> Iterator[None]:
        """What comes before `both_barriers`: where it fails on this rank alone, the others must not wait in them."""
        try:
            yield
        except BaseException:
            if self.size > 1 and not self.tells:
                with self.both_barriers():
                    pass
            raise

    def same_as_first(self, digests: Iterable[Sequence[float]], count: int) -> list[bool]:
        """Which of so many digests, of three numbers each, are the first rank's; none where nobody can tell."""
        if not self.tells:
            return [False] * count
        mine = np.array(list(digests)).reshape(count, 3)
        told = NdArray.from_numpy_array(mine)
        self.communicator.bcast([told], 0)
        return [bool(same) for same in (told.data == mine).all(axis=1)]

    def agreed(self, find: Callable[[], int | None]) -> int | None:
        """The first rank's answer, where the communicator can tell it; else each rank's own."""
        if self.size == 1 or not self.tells:
            return find()
        told = NdArray.from_numpy_array([0.0, 0.0, 0.0, 0.0])
        error: BaseException | None = None
        if self.rank == 0:
            try:
                told.data = _out(find())
            except Exception as failed:
                told.data, error = [-1.0, 0.0, 0.0, 0.0], failed
        self.communicator.bcast([told], 0)
        if error is not None:
            raise error
        return _in([int(digit) for digit in told.data])


def _out(answer: int | None) -> list[float]:
    """1 and the digits of a number; 0 for none; -1 says that the first rank has failed."""
    if answer is None:
        return [0.0] * 4
    return [1.0, *(float(answer // _DIGIT**i % _DIGIT) for i in range(3))]


def _in(digits: list[int]) -> int | None:
    if digits[0] < 0:
        raise FileError(message("load", None, "rank 0 could not look for checkpoints: see its error"))
    return sum(digit * _DIGIT**i for i, digit in enumerate(digits[1:])) if digits[0] else None
