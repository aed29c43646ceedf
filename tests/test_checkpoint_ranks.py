"""Checkpoints of several ranks: one writes, all read, each has its own positions; a failure of one is told to all.

The ranks are threads here, joined by an object with the members of a communicator that checkpoints use.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers as S
from nnrs import _checkpoint_files as files
from nnrs.checkpoint import Checkpoints, StopSignals
from nnrs.utils.data_iterator import data_iterator_simple

WAIT = 20  # seconds until a barrier counts as hung


class World:
    """What ranks share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=WAIT)
        self.told: list[Any] = [None] * size


class Plain:
    """A communicator of one rank, with what it has to have."""

    def __init__(self, world: World, rank: int) -> None:
        self._world, self.rank, self.size = world, rank, world.size

    def barrier(self) -> None:
        self._world.barrier.wait()


class Whole(Plain):
    """One that can tell values, too."""

    def bcast(self, data, src, inplace=False, group="world"):
        (array,) = data
        if self.rank == src:
            self._world.told[0] = array.data.copy()
        self.barrier()
        array.data = self._world.told[0]
        self.barrier()

    def all_reduce(self, data, division=True, inplace=True, group="world"):
        (array,) = data
        self._world.told[self.rank] = array.data.copy()
        self.barrier()
        total = sum(self._world.told)
        self.barrier()
        array.data = total


def on_ranks(size: int, work: Callable[[Any], Any], kind: type[Plain] = Whole) -> list[Any]:
    """What each rank's work returns or raises."""
    world, found = World(size), [None] * size

    def run(rank: int) -> None:
        try:
            found[rank] = work(kind(world, rank))
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
        assert not thread.is_alive()
    return found


class Rank:
    """A rank's part of a training: the same parameter on all, a slice of the data each."""

    def __init__(self, communicator, folder, **options):
        rank = communicator.rank
        self.w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
        self.solver = S.Momentum(0.1)
        self.solver.set_parameters({"w": self.w})
        whole = data_iterator_simple(lambda i: (i,), 24, 2, shuffle=True)
        self.data = whole.slice(None, communicator.size, rank)
        self.own = np.random.default_rng(rank)
        self.points = Checkpoints(
            folder,
            self.solver,
            self.data,
            parameters={"w": self.w},
            generators=self.own,
            communicator=communicator,
            **options,
        )

    def train(self, steps=1):
        found = []
        for _ in range(steps):
            self.w.g = 1.0
            self.solver.update()
            found.append((self.data.next()[0].tolist(), self.own.random(), float(self.w.d[0])))
        return found


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("kind", [Plain, Whole])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_rank_goes_on_where_it_was(size, kind, tmp_path):
    def first(communicator):
        rank = Rank(communicator, tmp_path, keep=1)
        for step in (5, 12):
            rank.train(step)
            path = rank.points.save(step, rank=communicator.rank)
        return path, rank.train(9)

    def second(communicator):
        rank = Rank(communicator, tmp_path)
        step, values = rank.points.resume()
        return step, values, rank.train(9)

    before, after = on_ranks(size, first, kind), on_ranks(size, second, kind)
    assert len(names(tmp_path)) == size, names(tmp_path)
    assert [found[2] for found in after] == [found[1] for found in before]
    assert all(found[:2] == (12, {"rank": 0}) for found in after)


@pytest.mark.parametrize("call", ["resume", "load"])
def test_what_one_rank_cannot_load_changes_no_other(call, tmp_path):
    on_ranks(3, lambda c: Rank(c, tmp_path).points.save(3))

    def work(communicator):
        rank = Rank(communicator, tmp_path)
        rank.train(2)
        if communicator.rank == 1:
            rank.points = Checkpoints(
                tmp_path, rank.solver, rank.data, parameters={"v": rank.w}, communicator=communicator
            )
        before = (rank.w.d.copy(), rank.own.bit_generator.state)
        with pytest.raises(nn.Error) as error:
            getattr(rank.points, call)()
        assert (rank.w.d, rank.own.bit_generator.state) == before
        return str(error.value)

    told = on_ranks(3, work)
    assert "has no parameter 'v'" in told[1]
    assert all("another rank has failed" in told[rank] for rank in (0, 2)), told


@pytest.mark.parametrize("kind", [Plain, Whole])
def test_what_a_rank_has_otherwise_than_the_first_comes_back_there(kind, tmp_path):
    """Running statistics of its own batches, say, and a solver's state of what it alone trains."""
    size = 1000

    def network(communicator, value):
        same, mine = (nn.Variable.from_numpy_array(np.full(n, value, np.float32)) for n in (size, 2))
        alone = nn.Variable.from_numpy_array(np.float32([value]), need_grad=True)
        solver = S.Momentum(0.1)
        solver.set_parameters({"a/alone": alone})
        parameters = {"same": same, "mine": mine, "a/alone": alone}
        return parameters, solver, Checkpoints(tmp_path, solver, parameters=parameters, communicator=communicator)

    def step(parameters, solver, rank):
        parameters["mine"].d = parameters["mine"].d + rank
        parameters["a/alone"].g = rank + 1.0
        solver.update()
        return [v.d.tolist() for v in parameters.values()]

    def first(communicator):
        parameters, solver, points = network(communicator, 3)
        step(parameters, solver, communicator.rank)
        points.save(1)
        return step(parameters, solver, communicator.rank)

    def second(communicator):
        parameters, solver, points = network(communicator, 9)
        points.resume()
        return step(parameters, solver, communicator.rank)

    def other_number(communicator):
        parameters, _, points = network(communicator, 9)
        points.load(positions=False)
        return [v.d.tolist() for v in parameters.values()]

    want = on_ranks(3, first, kind)
    assert want[2][1] == [7.0, 7.0] and want[0][1] == [3.0, 3.0]
    assert on_ranks(3, second, kind) == want
    parts = [(tmp_path / f"checkpoint-000000001.rank-{rank}.safetensors").stat().st_size for rank in (1, 2)]
    assert all((part > 4 * size) == (kind is Plain) for part in parts) or kind is Whole, parts
    (alone,) = on_ranks(1, other_number, kind)
    assert alone[:2] == [[3.0] * size, [3.0, 3.0]]


@pytest.mark.parametrize("kind", [Plain, Whole])
def test_counts_rates_and_flags_of_a_rank_come_back_there(kind, tmp_path):
    """A rank that begins to train a part later, say."""

    def network(communicator):
        w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
        solver = S.Adam(0.1)
        solver.set_parameters({"w": w})
        return w, solver, Checkpoints(tmp_path, solver, parameters={"w": w}, communicator=communicator)

    def step(w, solver):
        w.g = 1.0
        solver.update()

    def first(communicator):
        w, solver, points = network(communicator)
        for _ in range(1 + 3 * communicator.rank):
            step(w, solver)
        solver.set_learning_rate(0.1 * (1 + communicator.rank))
        w.need_grad = communicator.rank == 0
        points.save(1)
        step(w, solver)
        return float(w.d[0]), solver.get_states()["w"].t, solver.learning_rate(), w.need_grad

    def second(communicator):
        w, solver, points = network(communicator)
        points.resume()
        step(w, solver)
        return float(w.d[0]), solver.get_states()["w"].t, solver.learning_rate(), w.need_grad

    want = on_ranks(2, first, kind)
    assert [found[1] for found in want] == [2, 5] and want[1][3] is False
    assert on_ranks(2, second, kind) == want


@pytest.mark.parametrize("kind", [Plain, Whole])
def test_ranks_with_parameters_of_other_names_are_told_so(kind, tmp_path):
    def work(communicator):
        v = nn.Variable.from_numpy_array([1.0])
        points = Checkpoints(tmp_path, parameters={f"v{communicator.rank}": v}, communicator=communicator)
        try:
            points.save(1)
        finally:
            assert points.latest() is None

    first, second = on_ranks(2, work, kind)
    assert "argument 'parameters': expected the same" in str(first), first
    assert ("see rank 0's error" if kind is Plain else "the same on all ranks") in str(second), second


class Telling(Plain):
    """One that can tell values, and add nothing up."""

    bcast = Whole.bcast


@pytest.mark.parametrize("kind", [Plain, Telling])
@pytest.mark.parametrize("bad", [0, 1])
def test_who_fails_before_the_first_barrier_keeps_nobody_waiting(bad, kind, tmp_path):
    def work(communicator):
        rank = Rank(communicator, tmp_path)
        if communicator.rank == bad:
            rank.solver.set_parameters({"other": nn.Variable.from_numpy_array([1.0], need_grad=True)}, reset=False)
        rank.points.save(4)

    found = on_ranks(2, work, kind)
    assert "a solver whose parameters are all" in str(found[bad]), found
    assert isinstance(found[1 - bad], OSError), found
    assert on_ranks(2, lambda c: Rank(c, tmp_path).points.latest(), kind) == [None, None]


def test_ranks_that_mean_other_steps_are_told_so(tmp_path):
    def work(communicator):
        rank = Rank(communicator, tmp_path)
        told = []
        for step in (1, 2):
            rank.train()
            rank.points.save(step)
        w = rank.w.d.copy()
        for call in (rank.points.save, lambda step: rank.points.load(rank.points.path(step))):
            with pytest.raises(nn.Error) as error:
                call(1 + communicator.rank)
            told.append(str(error.value))
        assert rank.w.d == w
        with pytest.raises(nn.Error) as error:
            rank.points.save("3" if communicator.rank else 3)
        return [*told, str(error.value)]

    for rank, (save, load, wrong) in enumerate(on_ranks(2, work)):
        assert save.startswith("save: argument 'step': expected the same on all ranks")
        assert load.startswith("load: argument 'path': expected the same on all ranks")
        assert wrong.startswith("save: argument 'step': expected int" if rank else "save: another rank has failed")
    assert len(names(tmp_path)) == 4


def test_a_folder_of_the_files_name(tmp_path):
    (tmp_path / "checkpoint-000000007.safetensors").mkdir()
    first, second = on_ranks(2, lambda c: Rank(c, tmp_path).points.save(7))
    assert isinstance(first, OSError) and "it is a folder" in str(first), repr(first)
    assert isinstance(second, OSError) and "see rank 0's error" in str(second), repr(second)


def test_another_number_of_ranks(tmp_path):
    on_ranks(2, lambda c: Rank(c, tmp_path).points.save(3, best=1))
    for error in on_ranks(3, lambda c: Rank(c, tmp_path).points.load()):
        assert "expected 2 ranks, got 3" in str(error) and "positions=False" in str(error)
    os.unlink(tmp_path / "checkpoint-000000003.rank-1.safetensors")
    path = tmp_path / "checkpoint-000000003.safetensors"
    found = on_ranks(3, lambda c: Rank(c, tmp_path).points.load(path, positions=False))
    assert found == [(3, {"best": 1})] * 3
    error = on_ranks(2, lambda c: Rank(c, tmp_path).points.load(path))[1]
    assert isinstance(error, FileNotFoundError) and "rank-1" in str(error)


def spoil_size(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def spoil_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("spoil", [os.unlink, spoil_size, spoil_bit])
@pytest.mark.parametrize("kind", [Plain, Whole])
def test_a_checkpoint_without_a_rank_is_left_out(kind, spoil, tmp_path):
    def saves(communicator):
        rank = Rank(communicator, tmp_path)
        for step in (1, 2):
            rank.train()
            rank.points.save(step)

    on_ranks(3, saves)
    spoil(tmp_path / "checkpoint-000000002.rank-2.safetensors")
    assert [found.step for found in on_ranks(3, lambda c: Rank(c, tmp_path).points.resume(), kind)] == [1, 1, 1]


def test_files_of_two_saves_are_not_mixed(tmp_path):
    def save(communicator):
        rank = Rank(communicator, tmp_path)
        rank.points.save(1)

    part = tmp_path / "checkpoint-000000001.rank-1.safetensors"
    on_ranks(2, save)
    old = part.read_bytes()
    on_ranks(2, save)
    part.write_bytes(old)
    for error in on_ranks(2, lambda c: Rank(c, tmp_path).points.load()):
        assert isinstance(error, FileNotFoundError) and "no whole checkpoint" in str(error)
    path = tmp_path / "checkpoint-000000001.safetensors"
    errors = on_ranks(2, lambda c: Rank(c, tmp_path).points.load(path))
    assert "another save" in str(errors[1])
    error = on_ranks(1, lambda c: Rank(c, tmp_path).points.load(part))[0]
    assert "a rank's part" in str(error)


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("has_older", [False, True])
def test_a_rank_that_cannot_write_ends_all(failing, has_older, tmp_path, monkeypatch):
    """None waits for ever, none takes the checkpoint for written."""
    if has_older:
        on_ranks(3, lambda c: Rank(c, tmp_path).points.save(1, a=1))
    write = files.write

    def full(function, path, contents, stamp):
        if stamp.get("rank", 0) == failing:
            raise OSError(28, "No space left on device")
        return write(function, path, contents, stamp)

    monkeypatch.setattr(files, "write", full)
    errors = on_ranks(3, lambda c: Rank(c, tmp_path).points.save(1, a=2))
    assert all(isinstance(error, OSError) for error in errors), errors
    assert "No space left" in str(errors[failing])
    assert failing == 0 or f"rank {failing} wrote no file" in str(errors[0])
    assert any("see rank 0's error" in str(error) for error in errors)
    monkeypatch.undo()
    for found in on_ranks(3, lambda c: Rank(c, tmp_path).points.resume(a=0)):
        assert found == (0, {"a": 0})


def test_a_state_that_cannot_be_told_ends_all(tmp_path):
    def work(communicator):
        rank = Rank(communicator, tmp_path)
        if communicator.rank == 1:
            rank.data.close()
        rank.points.save(1)

    errors = on_ranks(2, work)
    assert "wrote no file" in str(errors[0]) and "a closed one" in str(errors[1])


def test_left_over_files_of_ranks_go(tmp_path):
    (tmp_path / "checkpoint-000000007.rank-5.safetensors").touch()
    on_ranks(2, lambda c: Rank(c, tmp_path).points.save(1))
    assert names(tmp_path) == ["checkpoint-000000001.rank-1.safetensors", "checkpoint-000000001.safetensors"]


def test_large_steps_are_told_to_all(tmp_path):
    on_ranks(2, lambda c: Rank(c, tmp_path).points.save(10**17 + 3))
    assert [found.step for found in on_ranks(2, lambda c: Rank(c, tmp_path).points.resume())] == [10**17 + 3] * 2


def test_a_folder_that_cannot_be_read_is_told_to_all(tmp_path):
    (tmp_path / "file").touch()
    errors = on_ranks(2, lambda c: Checkpoints(tmp_path / "file", communicator=c).resume())
    assert isinstance(errors[0], OSError) and "see its error" in str(errors[1])


def test_a_signal_to_one_rank_stops_all_at_one_step():
    def work(communicator):
        stop = StopSignals(communicator=communicator)
        for step in range(20):
            if communicator.rank == 1 and step == 7:
                stop._note(15, None)  # threads get no signals
            if stop.asked():
                return step, stop.requested

    assert on_ranks(3, work) == [(7, False), (7, True), (7, False)]
