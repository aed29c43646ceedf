"""`nnrs train` in several processes: as one process with the batches of all; the first one writes and tells."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
import socket_helpers
from mpi_helpers import failing, mpirun
from nnrs.utils.cli.cli import main
from nnrs.utils.save import save

pytestmark = pytest.mark.host
SAMPLES, BATCH, EPOCHS = 24, 6, 3  # of the whole


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a csv data set, and the same in the order in which two processes read it together."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.RandomState(0)
    rows = [[*np.round(rng.randn(3), 3), i % 2] for i in range(SAMPLES)]
    halves = np.arange(SAMPLES).reshape(2, -1, BATCH // 2)
    mixed = halves.transpose(1, 0, 2).ravel()
    for name, order in (("parts.csv", range(SAMPLES)), ("whole.csv", mixed)):
        with open(name, "w", newline="") as f:
            csv.writer(f).writerows([["x__0", "x__1", "x__2", "y"], *(rows[i] for i in order)])
    nn.clear_parameters()
    context = nn.get_current_context()
    yield tmp_path
    nn.clear_parameters()
    nn.set_default_context(context)


def network(name: str, ranks: int, cache_dir: str = "", **options: object) -> None:
    """Write what is trained, for so many processes: steps are counted over all of them, a batch is that of each."""
    nn.clear_parameters()
    nn.seed(1)
    batch, cache_dir = BATCH // ranks, cache_dir and cache_dir + str(ranks)
    x, t = nn.Variable((batch, 3)), nn.Variable((batch, 1))
    y = PF.affine(F.tanh(PF.affine(x, 5, name="a")), 1, name="b")
    loss = F.mean(F.sigmoid_cross_entropy(y, t))
    solver = S.Momentum(0.3)
    solver.set_parameters(nn.get_parameters())
    uri = "whole.csv" if ranks == 1 else "parts.csv"
    data = {"uri": uri, "cache_dir": cache_dir, "variables": ["x", "y"], "batch_size": batch, "shuffle": False}
    task = {"network": "net", "dataset": "data", "data_variables": {"x": "x", "t": "y"}}
    updates = {
        "solver": solver,
        "update_interval": 1,
        "weight_decay": 0,
        "lr_decay": 0.5,
        "lr_decay_interval": 4 * ranks,
    }
    contents = {
        "global_config": {"default_context": nn.get_current_context()},
        "training_config": {"max_epoch": EPOCHS, "iter_per_epoch": SAMPLES // batch, "save_best": True},
        "networks": [{"name": "net", "batch_size": batch, "outputs": {"loss": loss}, "names": {"x": x, "t": t}}],
        "datasets": [{"name": "data", "no_image_normalization": False, **data}],
        "optimizers": [{"name": "optimizer", **task, **updates, **options}],
        "monitors": [{"name": "valid_error", **task}],
    }
    save(name, contents)
    nn.save_parameters("begin.h5")


def trained(folder: str) -> dict[str, np.ndarray]:
    with nn.parameter_scope("", {}):
        nn.load_parameters(f"{folder}/results_current_{EPOCHS}.nnp")
        return {name: p.d.copy() for name, p in nn.get_parameters().items()}


def assert_same_training(one: str, other: str) -> None:
    a, b = trained(one), trained(other)
    assert list(a) == list(b) and len(a) == 4
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-5, atol=1e-6)
    reports = [re.findall(r": (\d\S+)", Path(folder, "monitoring_report.yml").read_text()) for folder in (one, other)]
    assert len(reports[0]) == 2 * EPOCHS
    np.testing.assert_allclose(*(np.float64(r) for r in reports), rtol=1e-5)


def train_both(start: Callable[..., str] = mpirun, **options: object) -> str:
    network("one.nntxt", 1, **options)
    assert main(["train", "-c", "one.nntxt", "-p", "begin.h5", "-o", "one"]) == 0
    network("two.nntxt", 2, **options)
    return start(2, "command_line", "train", "-c", "two.nntxt", "-p", "begin.h5", "-o", "two")


@pytest.mark.parametrize("start", [mpirun, socket_helpers.run])
def test_two_processes_train_as_one_with_the_batches_of_both(here: Path, start: Callable[..., str]) -> None:
    out = train_both(start)
    assert_same_training("one", "two")
    assert sorted(os.listdir("two")) == sorted(os.listdir("one")) == [
        "monitoring_report.yml", "progress.txt", "results.nnp", f"results_current_{EPOCHS}.nnp"
    ]  # fmt: skip
    assert out == ""


def test_gradients_of_several_steps() -> None:
    train_both(update_interval=2)
    assert_same_training("one", "two")


def test_the_first_writes_caches_and_a_training_is_resumed() -> None:
    train_both(cache_dir="cache")
    assert Path("cache2/cache_index.csv").exists()
    assert_same_training("one", "two")
    whole = trained("two")
    os.rename(f"two/results_current_{EPOCHS}.nnp", "two/results_current_2.nnp")  # and its epochs once more
    mpirun(2, "command_line", "-m", "train", "-r", "-c", "two.nntxt", "-o", "two")
    again = trained("two")
    assert any((again[name] != whole[name]).any() for name in whole)


def test_an_error_of_one_ends_both() -> None:
    network("two.nntxt", 2)
    Path("parts.csv").write_text("x__0,x__1,x__2,y\n" + "1,2,3,0\n" * 12 + "1,2,no,0\n" * 12)
    done = failing(2, "command_line", "train", "-c", "two.nntxt", "-o", "two", timeout=30)
    assert done.returncode == 1 and re.search(r"nnrs train \(rank \d\): .*parts.csv.*no", done.stderr), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not [name for name in os.listdir("two") if name.endswith(".nnp")]


def test_other_commands_do_not_share_their_work() -> None:
    done = failing(2, "command_line", "-m", "version", timeout=30)
    assert done.returncode == 1 and "expected one process, got 2" in done.stderr
