"""Checkpoints of a training: it goes on where it was, bit for bit, in another process.

>>> import tempfile
>>> import numpy as np, nnrs as nn, nnrs.functions as F, nnrs.solvers as S
>>> w = nn.Variable.from_numpy_array(np.float32([3.0]), need_grad=True)
>>> loss, solver = F.sum(w**2), S.Momentum(0.1)
>>> solver.set_parameters({"w": w})
>>> folder = tempfile.TemporaryDirectory()
>>> points = Checkpoints(folder.name, solver, parameters={"w": w}, keep=2)
>>> begin, values = points.resume(best=9.0)  # there is none yet: from the beginning
>>> begin, values
(0, {'best': 9.0})
>>> for step in range(begin, 5):
...     loss.forward()
...     solver.zero_grad()
...     loss.backward()
...     solver.update()
...     _ = points.save(step + 1, best=min(values["best"], float(loss.d)))
>>> after, w.d = w.d.copy(), 0.0  # this could be another process
>>> points.resume()[0], bool(w.d == after)
(5, True)
>>> folder.cleanup()
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from . import _checkpoint_files as files
from . import _checkpoint_state
from ._checkpoint_ranks import Ranks
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    FileError,
    FormatError,
    MissingFileError,
    check_integer,
    check_switch,
    check_type,
    describe,
    failures_as,
    message,
    reason,
)
from ._stop_signals import StopSignals
from .logger import logger

__all__ = ["Checkpoints", "Resumed", "StopSignals"]

_MOST_STEPS = 10**18
_NAME = re.compile(r"checkpoint-(\d{9,18})\.safetensors")
_PART = re.compile(r"checkpoint-(\d{9,18})\.rank-(\d+)\.safetensors")


class Resumed(NamedTuple):
    """Where a training goes on.

    Attributes:
        step: The number that `save` was given; 0 at the beginning.
        values: The user's own values.
    """

    step: int
    values: dict[str, Any]


class _Ready(NamedTuple):
    """A checkpoint that has been read and fits."""

    bring_back: Callable[[], None]
    found: Resumed
    checksum: int


class Checkpoints:
    """The checkpoints of one training, in a folder of their own.

    A checkpoint has the parameters, the solvers' states and learning rates, the positions of the data iterators (in the
    midst of an epoch, too), the random state (of nnrs, of NumPy's and Python's global generators) and values of the
    user's. Graphs are not in it: the script that resumes builds them again, as well as solvers and iterators.

    Args:
        folder: Where the files are; it is made if it is not there.
        solvers: A solver, or several: a list or a dict by names. `set_parameters` comes before `save` and `load`.
        iterators: The same of data iterators (`nnrs.utils.data_iterator`), or of any objects with `get_state()` and
            `set_state(state)`.
        parameters: Dict from names to Variables; by default all of the current scope when it is needed.
        generators: Random generators of the user's: NumPy's or `random.Random`, one, a list or a dict by names.
        graphs: Outputs of graphs whose functions have seeds of their own (`F.dropout(x, seed=3)`): the same forms.
        keep: How many checkpoints stay, the whole ones of the largest steps; None for all.
        communicator: In a run of several processes what joins them: an object with `rank`, `size` and `barrier()`.
            All call `save` and `load` at the same steps and see the same folder. The first writes parameters and
            solvers, which all read; each keeps its own positions and random state, and where its parameters and states
            are others (running statistics of batches of its own, say), those. One that has not both `bcast` and
            `all_reduce` leaves each rank alone with what `load` finds wrong.

    Save between the updates, when no gradients are held that the next one needs. A checkpoint changes nothing in
    the run that makes it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        solvers: Any = (),
        iterators: Any = (),
        *,
        parameters: Mapping[str, Any] | None = None,
        generators: Any = (),
        graphs: Any = (),
        keep: int | None = 3,
        communicator: Any = None,
    ) -> None:
        here = "Checkpoints"
        check_type(here, "folder", folder, (str, os.PathLike), "a path")
        self._folder = os.fspath(folder)
        if "\0" in self._folder:
            raise ArgumentError(message(here, "folder", "a path without zero bytes", repr(self._folder)))
        self._keep = None if keep is None else check_integer(here, "keep", keep, 1)
        self._ranks = Ranks(communicator)
        # When a step's file was looked at, and whether it is whole.
        self._known: dict[int, tuple[tuple[int, int] | None, bool]] = {}
        self._state = _checkpoint_state.TrainingState(
            _named(here, "solvers", solvers),
            _named(here, "iterators", iterators),
            _named(here, "generators", generators),
            _named(here, "graphs", graphs),
            parameters,
        )

    @property
    def folder(self) -> str:
        """Where the files are."""
        return self._folder

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, whole or not, in order."""
        return sorted(int(found[1]) for found in map(_NAME.fullmatch, self._names()) if found)

    def path(self, step: int) -> str:
        """The file of a step's checkpoint, there or not."""
        number = _step("path", step)
        return os.path.join(self._folder, f"checkpoint-{number:09d}.safetensors")

    def _part(self, step: int, rank: int) -> str:
        """The file of what is a rank's own."""
        return f"{self.path(step).removesuffix('.safetensors')}.rank-{rank}.safetensors"

    def _names(self) -> list[str]:
        with self._folder_errors("Checkpoints", "read"), contextlib.suppress(FileNotFoundError):
            return os.listdir(self._folder)
        return []

    def _folder_errors(self, function: str, task: str) -> contextlib.AbstractContextManager[None]:
        text = message(function, "folder", f"cannot {task} {self._folder!r}: ")
        return failures_as(lambda error: FileError(text + reason(error, self._folder)), OSError)

    # --- writing ------------------------------------------------------------------------------------------------------

    def save(self, step: int, /, **values: Any) -> str:
        """Write a checkpoint. An older one of the same step stays until the new one is whole, if there is one process.

        Args:
            step: Number of updates done, which `resume` gives back.
            values: What else to keep: numbers, texts, None, NumPy arrays, NdArrays; lists, tuples and dicts of them.
                Those of the first rank are kept.

        Returns:
            The file's path.

        Raises:
            OSError: If a file cannot be written; by all ranks, if it is one rank's.
            TypeError: If a value is of another kind.
            ValueError: If a solver has a parameter that is not among those kept.
        """
        ranks = self._ranks
        with ranks.before_barriers():
            step = ranks.unless_one_fails(lambda: _step("save", step), int, "save", "step")
            path = self.path(step)
            if ranks.size > 1:
                parts = ranks.unless_one_fails(self._state.parts, files.names_number, "save", "parameters")
                names = files.names_number(parts)
                is_same = ranks.same_as_first(map(files.digest, parts.values()), len(parts))
        if ranks.size == 1:
            self._write_first(step, values, {})
        elif ranks.rank == 0:
            with ranks.both_barriers() as between:
                own = self._state.own()
                between.wait()
                self._write_first(step, values, self._stamps_of_parts(step, names), own)
        else:
            differing = [item for item, same in zip(parts.items(), is_same, strict=True) if not same]
            self._write_part(step, differing, names)
        return path

    def _write_first(
        self, step: int, values: Mapping[str, Any], parts: dict[str, int], own: dict[str, Any] | None = None
    ) -> None:
        """Write the file of the first rank, and remove what is not kept."""
        self._make_folder()
        own = self._state.own() if own is None else own
        contents = {"values": values, "own": own, **self._state.common()}
        files.write("save", self.path(step), contents, {"step": step, "size": self._ranks.size, "parts": parts})
        self._remove_old(step)

    def _make_folder(self) -> None:
        with self._folder_errors("save", "make"):
            os.makedirs(self._folder, exist_ok=True)

    def _write_part(self, step: int, differing: list[tuple[tuple[str, ...], Any]], names: int) -> None:
        """Write what is a rank's own, and what differs from the first one's.

        Whether the first rank has taken note of it is in that one's file afterwards.
        """
        rank, path = self._ranks.rank, self._part(step, self._ranks.rank)
        with self._ranks.both_barriers():
            try:
                self._make_folder()
                contents = {"own": self._state.own(), "differing": differing}
                mark = os.urandom(8).hex()  # no two have one checksum
                stamp = {"step": step, "rank": rank, "mark": mark, "names": names}
                checksum = files.write("save", path, contents, stamp)
            except BaseException:
                _remove(path)  # an older one must not be taken for it
                raise
        noted = files.read_stamp("save", self.path(step))[0]["parts"] if os.path.isfile(self.path(step)) else {}
        if noted.get(str(rank)) != checksum:
            raise FileError(message("save", None, f"the checkpoint of step {step} was not written: see rank 0's error"))

    def _stamps_of_parts(self, step: int, names: int) -> dict[str, int]:
        found, missing, others = {}, [], []
        for rank in range(1, self._ranks.size):
            try:
                stamp, found[str(rank)] = files.read_stamp("save", self._part(step, rank))
                if stamp["names"] != names:
                    others.append(str(rank))
            except (OSError, FormatError):
                missing.append(str(rank))
        if missing:
            text = f"rank {', '.join(missing)} wrote no file into {self._folder!r}"
            raise FileError(message("save", None, text, hint="see its error; all ranks have to see the same folder"))
        if others:
            actual = f"others on rank {', '.join(others)} than on rank 0"
            raise ArgumentError(message("save", "parameters", "the same names on all ranks", actual))
        return found

    def _remove_old(self, written: int) -> None:
        """Remove all but the last checkpoints that are whole, and files of ranks without one."""
        steps, whole = self.steps(), 0
        if steps[-1] > written:
            later = self.path(steps[-1])
            text = "step %d is saved, but %s, of a later one, is what `resume` takes: remove it if it counts no more"
            logger.warning(text, written, later)
        self._known[written] = (self._date(written), True)
        kept = {written}
        for step in reversed(steps):
            if self._keep is None or whole < self._keep:
                kept.add(step)
                whole += self._was_whole(step)
        for step in steps:
            if step not in kept:
                _remove(self.path(step))
        for name in self._names():
            part = _PART.fullmatch(name)
            if part and int(part[1]) not in kept:
                _remove(os.path.join(self._folder, name))

    # --- reading ------------------------------------------------------------------------------------------------------

    def latest(self) -> str | None:
        """The path of the checkpoint of the largest step that is whole; None if there is none."""
        found = self._newest()
        return None if found is None else self.path(found)

    def _newest(self) -> int | None:
        return next(filter(self._is_whole, reversed(self.steps())), None)

    def _is_whole(self, step: int) -> bool:
        """Whether a checkpoint can be read; a warning says why not."""
        try:
            self._read(self.path(step), range(1, sys.maxsize))  # all of them
        except (FormatError, MissingFileError, ArgumentError) as error:  # the last: no plain file
            logger.warning("%s is left out: %s", self.path(step), str(error).splitlines()[0])
            is_whole = False
        else:
            is_whole = True
        self._known[step] = (self._date(step), is_whole)
        return is_whole

    def _was_whole(self, step: int) -> bool:
        """The same, without reading again what has not changed since."""
        date, is_whole = self._known.get(step, (None, False))
        return is_whole if date is not None and date == self._date(step) else self._is_whole(step)

    def _date(self, step: int) -> tuple[int, int] | None:
        """What is another one when the file has been changed; None if there is none."""
        with contextlib.suppress(OSError):
            found = os.stat(self.path(step))
            return found.st_mtime_ns, found.st_size
        return None

    def _read(self, path: str, ranks: Collection[int]) -> tuple[dict[str, Any], dict[str, Any], int]:
        """What a checkpoint holds, with this rank's own part, its stamp and checksum; some ranks' files are read."""
        contents, stamp, checksum = files.read("load", path)
        _check_stamp(path, stamp)
        base = path.removesuffix(".safetensors")
        for rank in filter(ranks.__contains__, range(1, stamp["size"])):
            part, _, found = files.read("load", f"{base}.rank-{rank}.safetensors")
            if found != stamp["parts"][str(rank)]:
                raise FormatError(message("load", "path", f"rank {rank}'s file belongs to another save than {path!r}"))
            if rank == self._ranks.rank:
                contents.update(own=part["own"], differing=part["differing"])
        return contents, stamp, checksum

    def load(self, path: str | os.PathLike[str] | None = None, *, positions: bool = True) -> Resumed:
        """Bring everything back to what it was.

        Args:
            path: File of a checkpoint; by default the whole one of the largest step.
            positions: Whether iterators and random state are brought back, too. Without them a checkpoint fits other
                data and any number of ranks, which all get the first rank's parameters and states.

        Returns:
            The step and the values that `save` was given.

        Raises:
            FileNotFoundError: If there is no checkpoint.
            ValueError: If the file is damaged, or does not fit parameters, solvers or iterators. Then nothing changes,
                on no rank: the others raise an OSError.
        """
        positions = bool(self._ranks.unless_one_fails(lambda: _checked_load(path, positions), int, "load", "positions"))
        if path is not None:
            return self._load(os.fspath(path), positions)
        newest = self._ranks.agreed(self._newest)
        if newest is None:
            text, hint = f"there is no whole checkpoint in {self._folder!r}", "resume() begins anew where there is none"
            raise MissingFileError(message("load", None, text, hint=hint))
        return self._load(self.path(newest), positions)

    def resume(self, **values: Any) -> Resumed:
        """Load the whole checkpoint of the largest step; without one, begin with step 0 and the values given here.

        Who has gone back to an earlier one, and will save from there on, removes the later ones.

        Args:
            values: The first values. Those that the checkpoint does not have are added to it.
        """
        newest = self._ranks.agreed(self._newest)
        if newest is None:
            return Resumed(0, values)
        found = self._load(self.path(newest), True)
        return Resumed(found.step, values | found.values)

    def _load(self, path: str, positions: bool) -> Resumed:
        ready = self._ranks.unless_one_fails(
            lambda: self._checked(path, positions), lambda ready: ready.checksum, "load", "path"
        )
        ready.bring_back()
        return ready.found

    def _checked(self, path: str, positions: bool) -> _Ready:
        contents, stamp, checksum = self._read(path, {self._ranks.rank} if positions else ())
        if positions and stamp["size"] != self._ranks.size:
            hint = "start as many, or load(positions=False) for parameters, solvers and values alone"
            raise ArgumentError(message("load", None, f"{stamp['size']} ranks", self._ranks.size, hint))
        found = Resumed(int(stamp["step"]), contents["values"])
        return _Ready(self._state.checked(contents, positions), found, checksum)

    def stop_on(self, *signals: int) -> StopSignals:
        """A context in which signals are noted, not obeyed, so that a checkpoint can be written first.

        Args:
            signals: By default `SIGTERM`, which schedulers send before they end a job.

        See `StopSignals`.
        """
        return StopSignals(*signals, communicator=self._ranks.communicator)


def _checked_load(path: Any, positions: Any) -> bool:
    """The truth of `positions`, where both arguments of `load` are right."""
    if path is not None:
        check_type("load", "path", path, (str, os.PathLike), "a path")
    return check_switch("load", "positions", positions)


def _step(function: str, step: Any) -> int:
    number = check_integer(function, "step", step, 0)
    if number >= _MOST_STEPS:
        raise ArgumentError(message(function, "step", f"less than {_MOST_STEPS}", number))
    return number


def _named(function: str, argument: str, given: Any) -> dict[str, Any]:
    """One object, several, or several by names, as a dict."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        wrong = [key for key in given if not isinstance(key, str)]
        if wrong:
            raise ArgumentTypeError(message(function, argument, "names as str", describe(wrong[0])))
        return dict(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return {str(i): one for i, one in enumerate(given)}
    return {"0": given}


def _check_stamp(path: str, stamp: dict[str, Any]) -> None:
    if set(stamp) != {"step", "size", "parts"}:
        raise FormatError(message("load", "path", f"{path!r} is a rank's part of a checkpoint, not the whole"))
    step, size, parts = stamp["step"], stamp["size"], stamp["parts"]
    is_right = type(step) is type(size) is int and step >= 0 and isinstance(parts, dict) and len(parts) == size - 1
    if not is_right or set(parts) != {str(rank) for rank in range(1, size)}:
        raise FormatError(message("load", "path", "a checkpoint of this version of nnrs", f"{path!r} of {stamp}"))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        logger.warning("cannot remove %s: %s", path, reason(error, path))
