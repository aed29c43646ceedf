"""A training that resumes is the one that was not stopped, bit for bit; a file is whole or told, and taken whole.

checkpoint_training.py is that training; iterators have a file of their own (test_checkpoint_iterators.py).
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs import _core
from nnrs.checkpoint import Checkpoints, StopSignals

SCRIPT = Path(__file__).parent / "checkpoint_training.py"


def train(folder: Path, steps: int, *saves: int) -> list[str]:
    command = [sys.executable, str(SCRIPT), str(folder), str(steps), *map(str, saves)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_training_goes_on_bit_for_bit_in_another_process(tmp_path):
    whole = train(tmp_path / "whole", 30)
    parts = train(tmp_path / "parts", 13, 13) + train(tmp_path / "parts", 22, 22) + train(tmp_path / "parts", 30)
    assert len(whole) == 30 and parts == whole


# --- parts of it ------------------------------------------------------------------------------------------------------


class Net:
    """Two parameters with a solver each."""

    def __init__(self, kind=S.Adam):
        self.w = nn.Variable.from_numpy_array(np.float32([3, 1]), need_grad=True)
        self.b = nn.Variable.from_numpy_array(np.float32([1, 1]), need_grad=True)
        self.parameters = {"w": self.w, "b": self.b}
        self.loss = F.sum(self.w**2) + F.sum(self.b**2)
        self.solvers = {"w": kind(0.1), "b": S.Momentum(0.1)}
        for name, solver in self.solvers.items():
            solver.set_parameters({name: self.parameters[name]})

    def train(self, steps=1):
        for _ in range(steps):
            self.loss.forward()
            for solver in self.solvers.values():
                solver.zero_grad()
            self.loss.backward()
            for solver in self.solvers.values():
                solver.update()
        return self

    def points(self, folder, **options):
        return Checkpoints(folder, self.solvers, parameters=self.parameters, **options)

    def all(self):
        states = [s.get_states() for s in self.solvers.values()]
        arrays = [{n: (t.t, {k: v.d.tolist() for k, v in t.pstate.items()}) for n, t in s.items()} for s in states]
        rates = [s.learning_rate() for s in self.solvers.values()]
        return [v.d.tolist() for v in self.parameters.values()], arrays, rates


CLASSES = [c for c in map(S.__dict__.get, S.__all__) if isinstance(c, type) and issubclass(c, S.Solver)]
SOLVERS = [c for c in CLASSES if c is not S.Solver]


@pytest.mark.parametrize("kind", SOLVERS, ids=lambda kind: kind.__name__)
def test_states_of_all_solvers(kind, tmp_path):
    first = Net(kind).train(3)
    first.solvers["w"].set_learning_rate(0.07)
    first.points(tmp_path).save(3)
    second = Net(kind)
    second.points(tmp_path).load()
    assert second.all() == first.all()
    assert second.train(3).all() == first.train(3).all()


def test_types_and_need_grad_of_parameters(tmp_path):
    nn.clear_parameters()
    try:
        for name, value in {"f": [1.5], "i": np.int32([7]), "h": np.float16([0.1]), "d": np.float64([1e-300])}.items():
            nn.parameter.set_parameter(f"s/{name}", nn.Variable.from_numpy_array(value, need_grad=name == "f"))
        bfloat = nn.Variable((2,), need_grad=True)
        bfloat.d = [1.5, -3]
        bfloat.data.cast("bfloat16")
        nn.parameter.set_parameter("bf", bfloat)
        Checkpoints(tmp_path).save(1)
        kept = {k: (v.data.dtype, v.d.tolist(), v.need_grad) for k, v in nn.get_parameters(grad_only=False).items()}
        bfloat.d, bfloat.need_grad = 0, False
        del nn.parameter.current_scope["s"]  # made again
        Checkpoints(tmp_path).load()
        found = nn.get_parameters(grad_only=False)
        assert {k: (v.data.dtype, v.d.tolist(), v.need_grad) for k, v in found.items()} == kept
        assert kept["bf"][0] == "bfloat16" and found["bf"].d.tolist() == bfloat.d.tolist()
    finally:
        nn.clear_parameters()


def test_values_of_the_user(tmp_path):
    given: dict[str, Any] = {
        "best": float("inf"),
        "nan": float("nan"),
        "third": 1 / 3,
        "big": 2**200,
        "text": 'ü "\ud800',
        "none": None,
        "flag": True,
        "list": [1, (2.0, "x"), {"a/b": 1, "@": "dict", "a": {"b": 2}}],
        "array": np.arange(6, dtype=">i4").reshape(2, 3),
        "complex": np.array([1 + 2j]),
        "texts": np.array(["ab", "c"]),
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.float64(0.1),
        "nd": nn.NdArray.from_numpy_array(np.float16([1, 2])),
    }
    points = Checkpoints(tmp_path)
    points.save(5, **given)
    step, found = points.load()
    nan, nd = found.pop("nan"), found.pop("nd")
    assert step == 5 and list(found) == [k for k in given if k not in ("nan", "nd")] and np.isnan(nan)
    assert nd.dtype == np.float16 and nd.data.tolist() == [1, 2]
    for key, value in found.items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(value, given[key]) and value.shape == given[key].shape and value.flags.writeable
            assert value.dtype == given[key].dtype.newbyteorder("=")
        else:
            assert value == given[key] and type(value) is type(given[key])


@pytest.mark.parametrize("value", [object(), {1: 2}, [{2}], np.array([object()]), nn.Variable((1,)), b"x"])
def test_values_that_a_file_cannot_have(value, tmp_path):
    with pytest.raises(TypeError, match="values/wrong"):
        Checkpoints(tmp_path).save(1, wrong=value)
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="60 deep"):
        Checkpoints(tmp_path).save(1, wrong=deep)
    assert os.listdir(tmp_path) == []


def draws(own):
    y = F.dropout(nn.Variable.from_numpy_array(np.ones(20, np.float32)), 0.5)
    y.forward()
    numbers = [nn.random.prng.rand(), np.random.rand(), random.random(), random.gauss(0, 1), np.random.randn()]
    return numbers + [g.random() for g in own] + y.d.tolist()


def test_random_state(tmp_path):
    mersenne = np.random.Generator(np.random.MT19937())
    own = [np.random.default_rng(1), np.random.RandomState(2), random.Random(3), mersenne]
    nn.random.set_parameter_seed(77)
    points = Checkpoints(tmp_path, generators=own)
    for _ in range(3):
        draws(own)
    prng = nn.random.prng
    points.save(1)
    expected = draws(own)
    nn.seed(5)
    draws(own)
    now = nn.random.prng
    points.load()
    assert draws(own) == expected and nn.random.pseed == 77
    assert nn.random.prng is now is not prng  # the objects stay: sources hold them
    nn.seed(313)


def test_saving_draws_no_number(tmp_path):
    nn.seed(3)
    expected = draws([])
    nn.seed(3)
    Checkpoints(tmp_path).save(1)
    assert draws([])[5:] == expected[5:]


def test_generators_of_another_kind(tmp_path):
    Checkpoints(tmp_path, generators=np.random.RandomState(1)).save(1)
    with pytest.raises(ValueError, match="Generator of PCG64"):
        Checkpoints(tmp_path, generators=np.random.default_rng(1)).load()
    with pytest.raises(ValueError, match="generators"):
        Checkpoints(tmp_path, generators=[np.random.RandomState(1), np.random.RandomState(1)]).load()
    with pytest.raises(TypeError, match="a random generator"):
        Checkpoints(tmp_path, generators=3)


# --- files ------------------------------------------------------------------------------------------------------------


def test_the_last_ones_are_kept(tmp_path):
    points = Net().points(tmp_path, keep=2)
    assert points.latest() is None and points.steps() == [] and points.resume(a=1) == (0, {"a": 1})
    (tmp_path / "notes.txt").write_text("mine")
    for step in (1, 2, 3, 10**9):
        assert points.save(step, a=step) == points.path(step) == points.latest()
    assert points.steps() == [3, 10**9] and points.resume(a=0, b=2) == (10**9, {"a": 10**9, "b": 2})
    assert points.save(1) == points.path(1) and points.steps() == [1, 3, 10**9]  # what was just written stays
    assert points.load(points.path(3)).values == {"a": 3}
    assert sorted(os.listdir(tmp_path))[-1] == "notes.txt" and len(os.listdir(tmp_path)) == 4


def test_who_saves_behind_a_later_one_is_told(tmp_path, caplog):
    points = Net().points(tmp_path, keep=2)
    with caplog.at_level("WARNING", "nnrs"):
        for step in (10, 20, 30):
            points.save(step)
        assert not caplog.records
        points.load(points.path(20))
        points.save(25)
    (record,) = caplog.records
    expected = f"step 25 is saved, but {points.path(30)}, of a later one, is what `resume` takes"
    assert record.getMessage().startswith(expected)


def test_damaged_ones_do_not_count_among_those_that_are_kept(tmp_path):
    points = Net().points(tmp_path, keep=3)
    for step in (97, 98, 99):
        points.save(step)
    for step in (98, 99):
        os.truncate(points.path(step), 10)
    os.mkdir(points.path(100))
    for again in (points, Net().points(tmp_path, keep=3)):  # the second has to look
        for step in range(1, 6):
            again.save(step)
        assert again.steps() == [4, 5, 97, 98, 99, 100]
        assert again.latest() == again.path(97) and again.resume().step == 97
    points.save(101)
    assert points.steps() == [5, 97, 98, 99, 100, 101]
    points.save(102)
    assert points.steps() == [97, 98, 99, 100, 101, 102]
    points.save(103)
    assert points.steps() == [100, 101, 102, 103]  # a folder is not removed


def test_the_newest_whole_one_is_found(tmp_path):
    net = Net()
    points = net.points(tmp_path, keep=None)
    for step in range(1, 5):
        points.save(step)
        net.train()
    Path(points.path(4)).write_bytes(Path(points.path(4)).read_bytes()[:-1])
    Path(points.path(3)).write_bytes(b"")
    os.rename(points.path(1), points.path(5))
    shutil.copy(points.path(2), points.path(1))
    nn.NdArray((2,))
    _core.write_parameters(points.path(6), ["w"], [net.w])
    assert points.latest() == points.path(5) and points.resume().step == 1
    os.unlink(points.path(5))
    assert points.latest() == points.path(2)
    for step in (1, 2):
        os.unlink(points.path(step))
    assert points.latest() is None and points.resume() == (0, {})
    with pytest.raises(FileNotFoundError, match="no whole checkpoint"):
        points.load()


def test_every_byte_counts(tmp_path):
    net = Net().train()
    points = net.points(tmp_path)
    path = Path(points.save(1, best=1.0, text="abc"))
    whole, before = path.read_bytes(), net.all()
    rng = np.random.RandomState(0)
    places = [*range(0, 60), *rng.randint(0, len(whole), 150), *range(len(whole) - 20, len(whole))]
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randint(8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"load an older one|cut short"):
            points.load(path)
        path.write_bytes(whole[:place])
        with pytest.raises(ValueError):
            points.load(path)
    assert net.all() == before
    path.write_bytes(whole)
    assert points.load(path).values == {"best": 1.0, "text": "abc"}


def other_shape(net):
    net.parameters["w"] = nn.Variable((3,))


def more_parameters(net):
    net.parameters["c"] = nn.Variable((3,))


def fewer_parameters(net):
    del net.parameters["b"]


def another_solver(net):
    net.solvers["b"] = S.Sgd(0.1)
    net.solvers["b"].set_parameters({"b": net.b})


def more_solvers(net):
    net.solvers["c"] = S.Sgd(0.1)


def other_parameters(net):
    net.solvers["w"].set_parameters(net.parameters)


@pytest.mark.parametrize(
    "change, text",
    [
        (other_shape, r"parameter 'w' of shape \(3,\), got \(2,\)"),
        (more_parameters, "no parameter 'c'"),
        (fewer_parameters, "no parameter 'b' here"),
        (another_solver, "as its kind Sgd, got Momentum"),
        (more_solvers, "solvers"),
        (other_parameters, "the state of 'b'"),
    ],
)
def test_what_does_not_fit_changes_nothing(change, text, tmp_path):
    Net().train().points(tmp_path).save(1)
    net = Net().train(2)
    change(net)
    before = net.all()
    with pytest.raises(ValueError, match=f"{text}[^$]*the same network"):
        net.points(tmp_path).load()
    assert net.all() == before


@pytest.mark.parametrize("scope", [None, "other"])
def test_a_solver_of_parameters_that_are_not_kept(scope, tmp_path):
    """Its states alone would come back: a module's parameters are in no scope, and `load` may stand in another."""
    nn.clear_parameters()

    class Module(nn.Module):
        def call(self, x):
            return PF.affine(x, 2)

    module = Module()
    net = module if scope is None else lambda x: PF.affine(x, 2)
    net(nn.Variable((1, 3)))
    parameters = module.get_parameters() if scope is None else nn.get_parameters()
    solver = S.Adam()
    solver.set_parameters(parameters)
    Checkpoints(tmp_path, solver, parameters=parameters).save(1)
    before = {name: v.d.copy() for name, v in parameters.items()}
    with nn.parameter_scope(scope) if scope else contextlib.nullcontext():
        points = Checkpoints(tmp_path, solver)
        for call, path in ((lambda: points.save(2), "affine/W"), (points.resume, "affine/W")):
            with pytest.raises(ValueError, match=f"solvers.*the current scope, got one with '{path}'\n  hint"):
                call()
        assert not nn.get_parameters(grad_only=False)
    assert points.steps() == [1] and all((v.d == before[name]).all() for name, v in parameters.items())
    nn.clear_parameters()


def test_iterators_stay_where_parameters_do_not_fit(tmp_path, monkeypatch):
    from nnrs.utils.data_iterator import data_iterator_simple

    net = Net()
    with data_iterator_simple(lambda i: (i,), 10, 2) as batches:
        points = net.points(tmp_path, iterators=batches)
        points.save(1)
        batches.next()
        monkeypatch.setattr(_core, "set_parameters", None)
        monkeypatch.setattr(type(net.solvers["w"]), "set_states", None)
        before = nn.random.prng.get_state()[1].tolist()
        with pytest.raises(TypeError):
            points.load()
        assert batches.next()[0].tolist() == [2, 3] and nn.random.prng.get_state()[1].tolist() == before


def test_a_failure_leaves_the_older_file(tmp_path, monkeypatch):
    points = Net().points(tmp_path)
    whole = Path(points.save(1, a=1)).read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_core, "save_safetensors", full)
    with pytest.raises(OSError, match="No space left"):
        points.save(1, a=2)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [whole]


def test_wrong_arguments(tmp_path):
    for wrong in ({"folder": 3}, {"solvers": 3}, {"solvers": {1: S.Sgd()}}, {"parameters": [1]}, {"communicator": 3}):
        with pytest.raises(TypeError, match=next(iter(wrong))):
            Checkpoints(**{"folder": tmp_path, **wrong})
    with pytest.raises(ValueError, match="keep"):
        Checkpoints(tmp_path, keep=0)
    with pytest.raises(ValueError, match="step"):
        Checkpoints(tmp_path).save(-1)
    with pytest.raises(ValueError, match="step"):
        Checkpoints(tmp_path).save(10**18)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="folder"):
        Checkpoints(tmp_path / "file").save(1)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.safetensors"):
        Checkpoints(tmp_path).load(tmp_path / "nowhere.safetensors")


def seeded():
    x = nn.Variable.from_numpy_array(np.ones((4, 5), np.float32))
    return F.dropout(x, 0.5, seed=3) + F.rand(shape=(4, 5), seed=4)


def runs(y, count):
    found = []
    for _ in range(count):
        y.forward()
        found.append(y.d.tolist())
    return found


def test_functions_with_a_seed_of_their_own(tmp_path):
    first, second = seeded(), seeded()
    runs(first, 3)
    Checkpoints(tmp_path, graphs=first).save(1)
    expected = runs(first, 4)
    runs(second, 1)
    Checkpoints(tmp_path, graphs=second).load()
    assert runs(second, 4) == expected
    with pytest.raises(ValueError, match="functions with a seed"):
        Checkpoints(tmp_path, graphs=F.dropout(first, 0.5, seed=3)).load()
    with pytest.raises(TypeError, match="graphs"):
        Checkpoints(tmp_path, graphs=3)
    Checkpoints(tmp_path, graphs=seeded()).save(2)  # one that has not run yet
    Checkpoints(tmp_path, graphs=second).load()
    assert runs(second, 2) == runs(seeded(), 2)


# --- signals ----------------------------------------------------------------------------------------------------------


def test_a_signal_is_noted_and_the_former_handler_comes_back():
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with StopSignals() as outer:
            with Checkpoints(".").stop_on(signal.SIGUSR1, signal.SIGTERM) as stop:
                assert not stop.asked() and not stop.requested
                os.kill(os.getpid(), signal.SIGUSR1)
                assert stop.asked() and stop.requested and not outer.requested
            os.kill(os.getpid(), signal.SIGTERM)
            assert outer.asked() and seen == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert seen == [signal.SIGTERM] and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_signals_that_cannot_be_noted():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="signals"), StopSignals(signal.SIGTERM, signal.SIGKILL):
        pass
    assert signal.getsignal(signal.SIGTERM) is before
    found: list[Exception] = []

    def enter():
        try:
            StopSignals().__enter__()
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert "main thread" in str(found[0])


def test_a_scheduler_stops_a_training(tmp_path):
    """SIGTERM at an unknown step: the training saves and stops, and goes on where it was."""
    code = f"""
import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})
from test_checkpoint import Net
net = Net()
points = net.points({str(tmp_path)!r}, keep=1)
begin, _ = points.resume()
with points.stop_on() as stop:
    for step in range(begin, 10**9):
        net.train()
        if step == begin + 3:
            print("ready", flush=True)
        if stop.asked() or step == int(sys.argv[1]):
            points.save(step + 1)
            print(step + 1, net.all(), flush=True)
            break
"""
    run = [sys.executable, "-c", code]
    with subprocess.Popen([*run, "-1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        step, _, state = process.communicate(timeout=60)[0].partition(" ")
    assert process.returncode == 0
    last = int(step) + 5
    again = subprocess.run([*run, str(last - 1)], capture_output=True, text=True, check=True, timeout=60).stdout
    assert again.splitlines()[-1] == f"{last} {Net().train(last).all()}" and state
