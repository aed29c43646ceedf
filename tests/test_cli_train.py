"""`nnrs train`, `forward`, `infer`, `profile` and `compare_with_cpu` on a small network, against NNabla's results.

golden/cli has the network, its data and what NNabla's commands made of them (golden/make_cli.py).
"""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nnrs as nn
from nnrs._messages import message_class
from nnrs.utils import callback
from nnrs.utils.cli import _training, cli, forward, profile

GOLDEN = Path(__file__).parent / "golden" / "cli"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the network and its data, the current one."""
    for file in GOLDEN.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    context = nn.get_current_context()
    nn.clear_parameters()
    yield tmp_path
    nn.clear_parameters()
    nn.set_default_context(context)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*args: object) -> tuple[int, str, str]:
        nn.clear_parameters()
        capsys.readouterr()
        status = cli.main([str(a) for a in args])
        return (status, *capsys.readouterr())

    return call


def report(path: str | Path) -> dict[int, dict[str, float]]:
    """A monitoring_report.yml."""
    found: dict[int, dict[str, float]] = {}
    for line in Path(path).read_text().splitlines():
        if not line.startswith(" "):
            epoch = found.setdefault(int(line.rstrip(":")), {})
        else:
            name, _, value = line.strip().partition(": ")
            epoch[name] = float(value)
    return found


def parameters(path: str) -> dict[str, np.ndarray]:
    with nn.parameter_scope("", {}):
        nn.load_parameters(path)
        return {name: v.d.copy() for name, v in nn.get_parameters(grad_only=False).items()}


def assert_close(a: str, b: str, tolerance: float = 2e-6) -> None:
    one, two = parameters(a), parameters(b)
    assert list(one) == list(two)
    for name in one:
        np.testing.assert_allclose(one[name], two[name], atol=tolerance, rtol=1e-5, err_msg=name)


def change(edit: Callable[[object], object], name: str = "changed.nntxt") -> str:
    """The network as text, edited."""
    proto = nn.load_parameters("network.nnp")
    nn.clear_parameters()
    edit(proto)
    Path(name).write_text(str(proto))
    return name


# --- train ------------------------------------------------------------------------------------------------------------


def test_train_is_nnablas(run, here: Path) -> None:
    assert run("train", "-c", "network.nnp", "-p", "network.nnp", "-o", "out")[0] == 0
    ours, theirs = report("out/monitoring_report.yml"), report("monitoring_report.yml")
    assert list(ours) == list(theirs) == list(range(6))
    for epoch, values in theirs.items():
        assert list(ours[epoch]) == list(values)
        np.testing.assert_allclose(list(ours[epoch].values()), list(values.values()), rtol=2e-6)
    assert_close("out/results_current_6.nnp", "trained.nnp")
    names = ["monitoring_report.yml", "network.nntxt", "progress.txt", "results.nnp", "results_current_6.nnp"]
    assert sorted(os.listdir("out")) == names and Path("out/progress.txt").read_text() == ""


def test_what_a_result_has(run) -> None:
    path = change(lambda p: p.training_config.__setattr__("max_epoch", 5))
    assert run("train", "-c", path, "-p", "network.nnp", "-o", "out")[0] == 0
    with zipfile.ZipFile("out/results_current_5.nnp") as archive:
        states = "opt_Adam_optimizer.h5.optimizer"
        assert archive.namelist() == ["nnp_version.txt", "changed.nntxt", "parameter.h5", states]
        assert archive.read("changed.nntxt") == Path(path).read_bytes()
    loaded = nn.utils.load.load("out/results_current_5.nnp")
    assert {s.t for s in loaded.optimizers["opt"].solver.get_states().values()} == {25}


def test_training_begins_anew_without_param(run) -> None:
    """The file's own parameters are left out, as NNabla does: from zeros nothing is learned but biases."""
    assert run("train", "-c", "network.nnp", "-o", "out")[0] == 0
    assert report("out/monitoring_report.yml")[0]["cost"] == pytest.approx(np.log(3), abs=0.05)


def test_resume(run) -> None:
    five = change(lambda p: p.training_config.__setattr__("max_epoch", 5), "five.nntxt")
    ten = change(lambda p: p.training_config.__setattr__("max_epoch", 7), "ten.nntxt")
    assert run("train", "-c", five, "-p", "network.nnp", "-o", "out")[0] == 0
    assert run("train", "-r", "-c", ten, "-o", "out")[0] == 0
    found = report("out/monitoring_report.yml")
    assert list(found) == list(range(7)) and found[6]["cost"] < found[4]["cost"] < found[0]["cost"]
    assert os.path.exists("out/results_current_7.nnp") and not os.path.exists("out/results_current_5.nnp")
    assert run("train", "-r", "-c", ten, "-o", "out")[0] == 0  # nothing is left to do
    assert list(report("out/monitoring_report.yml")) == list(range(7))
    assert run("train", "-r", "-c", five, "-p", "network.nnp", "-o", "new")[0] == 0  # nothing to resume
    assert list(report("new/monitoring_report.yml")) == list(range(5))


def test_resume_from_states_of_the_other_kind(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """NNabla may write the states of all solvers as one message, too."""
    five = change(lambda p: p.training_config.__setattr__("max_epoch", 5), "five.nntxt")
    seven = change(lambda p: p.training_config.__setattr__("max_epoch", 7), "seven.nntxt")
    found = []
    for out in ("a", "b"):
        assert run("train", "-c", five, "-p", "network.nnp", "-o", out)[0] == 0
        if out == "b":
            path = "b/results_current_5.nnp"
            loaded = nn.utils.load.load(path)
            states = message_class("NNablaProtoBuf")()
            loaded.optimizers["opt"].solver.set_states_to_protobuf(states.optimizer.add(name="opt"))
            with zipfile.ZipFile(path) as old:
                files = {name: old.read(name) for name in old.namelist() if not name.endswith(".optimizer")}
            files["optimizer.protobuf.optimizer"] = states.SerializeToString()
            with zipfile.ZipFile(path, "w") as new:
                for name, data in files.items():
                    new.writestr(name, data)
        assert run("train", "-r", "-c", seven, "-o", out)[0] == 0
        found.append(parameters(f"{out}/results_current_7.nnp"))
    for name, values in found[0].items():
        np.testing.assert_array_equal(found[1][name], values)


def test_a_new_training_begins_a_new_report(run) -> None:
    path = change(lambda p: p.training_config.__setattr__("max_epoch", 1))
    for _ in range(2):
        assert run("train", "-c", path, "-o", "out")[0] == 0
    assert list(report("out/monitoring_report.yml")) == [0]


def test_no_epochs_write_the_parameters(run) -> None:
    path = change(lambda p: p.training_config.__setattr__("max_epoch", 0))
    assert run("train", "-c", path, "-p", "network.nnp", "-o", "out")[0] == 0
    assert os.listdir("out") == ["results.nnp"]
    assert_close("out/results.nnp", "network.nnp", 0)


def test_the_best_stays(run) -> None:
    """Only an epoch with an error that is no larger than the least one so far is written as results.nnp."""
    assert run("train", "-c", "network.nnp", "-p", "network.nnp", "-o", "out")[0] == 0
    errors = [v["valid_error"] for v in report("out/monitoring_report.yml").values() if "valid_error" in v]
    best = max(i for i, e in enumerate(errors) if e == min(errors)) + 1
    short = change(lambda p: p.training_config.__setattr__("max_epoch", best))
    assert run("train", "-c", short, "-p", "network.nnp", "-o", "short")[0] == 0
    assert_close("out/results.nnp", "short/results.nnp", 0)


def test_two_losses_intervals_and_schedules(run) -> None:
    """Accumulated over two steps, gradients of the same loss given twice: once more, with half of the steps."""

    def edit(p):
        o = p.optimizer[0]
        o.update_interval = 2
        o.loss_variable.add(variable_name="loss")
        o.solver.lr_scheduler_type = "Cosine"
        o.solver.cosine_scheduler_param.max_iter = 30
        o.solver.lr_warmup_scheduler_type = "Linear"
        o.solver.linear_warmup_scheduler_param.warmup_iter = 3

    assert run("train", "-c", change(edit), "-p", "network.nnp", "-o", "out")[0] == 0
    costs = [v["cost"] for v in report("out/monitoring_report.yml").values()]
    assert costs[-1] < costs[0] and costs[0] > report("monitoring_report.yml")[0]["cost"] * 1.9
    loaded = nn.load_parameters("out/results.nnp")
    assert loaded.optimizer[0].update_interval == 2


def test_losses_count_by_their_means(run) -> None:
    """A loss for each sample beside their mean is the same loss once more: as twice the learning rate."""

    def edit(losses, rate):
        def change_it(p):
            o = p.optimizer[0]
            o.solver.ClearField("adam_param")
            o.solver.type, o.solver.sgd_param.lr, o.solver.weight_decay = "Sgd", rate, 0.0
            o.ClearField("loss_variable")
            for name in losses:
                o.loss_variable.add(variable_name=name)

        return change_it

    both = change(edit(["loss", "@Main/SoftmaxCrossEntropy_out"], 0.05), "both.nntxt")
    one = change(edit(["loss"], 0.1), "one.nntxt")
    for path in (both, one):
        assert run("train", "-c", path, "-p", "network.nnp", "-o", path[:-6])[0] == 0
    assert_close("both/results_current_6.nnp", "one/results_current_6.nnp", 1e-5)
    costs = [[v["cost"] for v in report(f"{name}/monitoring_report.yml").values()] for name in ("both", "one")]
    np.testing.assert_allclose(costs[0], 2 * np.array(costs[1]), rtol=1e-4)


def test_an_optimizer_that_begins_late_and_a_cache(run) -> None:
    """The cost is the mean over the steps that had one."""

    def edit(p):
        p.optimizer[0].start_iter, p.training_config.max_epoch = 3, 1
        p.dataset[0].cache_dir, p.dataset[0].create_cache_explicitly = "c", True

    path = change(edit)
    assert run("train", "-c", path, "-p", "network.nnp", "-o", "out")[0] == 0
    assert os.path.exists("c/cache_index.csv")
    assert 1 < report("out/monitoring_report.yml")[0]["cost"] < 2.5


def test_reserved_and_generated_data(run) -> None:
    def edit(p):
        o = p.optimizer[0]
        o.data_variable[1].data_name = "%epoch"  # all labels are the epoch's number
        p.training_config.max_epoch = 3
        o.data_variable[:] = o.data_variable[1:]
        g = o.generator_variable.add(variable_name="x", type="Normal", multiplier=0.5)
        assert g.multiplier == 0.5

    assert run("train", "-c", change(edit), "-p", "network.nnp", "-o", "out")[0] == 0
    edited = change(lambda p: p.optimizer[0].data_variable[1].__setattr__("data_name", "%none"))
    status, _, err = run("train", "-c", edited, "-o", "out2")
    assert status == 1 and "'%none'" in err


def test_bad_configs(run) -> None:
    def broken(edit):
        return run("train", "-c", change(edit), "-o", "bad")

    for edit, word in (
        (lambda p: p.ClearField("optimizer"), "optimizer"),
        (lambda p: p.optimizer[0].ClearField("loss_variable"), "loss"),
        (lambda p: p.optimizer[0].__setattr__("network_name", "none"), "'none'"),
        (lambda p: p.optimizer[0].solver.__setattr__("type", "Magic"), "'Magic'"),
        (lambda p: p.dataset[0].__setattr__("uri", " "), "URI"),
        (lambda p: p.dataset[0].__setattr__("uri", "none.csv"), "none.csv"),
        (lambda p: p.training_config.__setattr__("max_epoch", -1), "0 or more"),
    ):
        status, _, err = broken(edit)
        assert status == 1 and word in err and "Traceback" not in err, (word, err)
    for args in (("-C", "tpu"), ("-C", "cudnn:x"), ("-O", "-m", "12x")):
        assert run("train", "-c", "network.nnp", "-o", "bad", *args)[0] == 1
    assert run("train", "-c", "train.csv", "-o", "bad")[0] == run("train", "-c", "x.nnp", "-o", "bad")[0] == 1


def test_a_cost_that_is_no_number_ends_it(run) -> None:
    path = change(lambda p: p.optimizer[0].solver.adam_param.__setattr__("alpha", 1e38))
    status, *_ = run("train", "-c", path, "-p", "network.nnp", "-o", "out")
    assert status == 1 and "results.nnp" not in os.listdir("out")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_whole_files(here: Path, number: signal.Signals) -> None:
    path = change(lambda p: p.training_config.__setattr__("max_epoch", 1_000_000))
    command = [sys.executable, "-m", "nnrs", "train", "-c", path, "-p", "network.nnp", "-o", "out"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "epoch 3 of" in line:
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert "nnrs train: stopped" in rest and "Traceback" not in rest
    found = [name for name in os.listdir("out") if name.endswith(".nnp")]
    assert "results.nnp" in found and all(zipfile.ZipFile(f"out/{name}").testzip() is None for name in found)
    assert not [name for name in os.listdir("out") if name.startswith(".")]


def test_hooks_of_a_program_around(run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    hooks = SimpleNamespace(
        update_status=lambda state, start, start_time: said.append(state),
        check_training_time=lambda args, config, timeinfo, epoch, last_epoch: epoch < 2,
        result_base=lambda base, suffix, outdir: f"{outdir}/mine_{suffix}",
    )
    monkeypatch.setattr(callback, "callback_list", [hooks])
    assert run("train", "-c", "network.nnp", "-p", "network.nnp", "-o", "out")[0] == 1
    assert {"mine_best.nnp", "mine_current.nnp"} <= set(os.listdir("out"))
    assert ("epoch.current", 2) in said and said[-1] == "failed"
    assert ["last", "valid_error"] in [state[0] for state in said if isinstance(state, tuple)]
    monkeypatch.setattr(callback, "callback_list", [SimpleNamespace(get_timelimit=lambda args: 1e-9)])
    assert run("train", "-c", "network.nnp", "-o", "out")[0] == 1


def test_best_error_of_a_report(here: Path) -> None:
    Path("r.yml").write_text("0:\n  cost: 1\n  valid_error: 0.5\n1:\n  valid_error: nan\n2:\n  valid_error: x\n")
    assert _training._best_of("r.yml") == 0.5
    assert _training._best_of("none.yml") is None


# --- forward and infer ------------------------------------------------------------------------------------------------


def rows(path: str) -> list[list[str]]:
    with open(path, newline="") as f:
        return list(csv.reader(f))


def assert_results(path: str) -> None:
    ours, theirs = rows(path), rows("output_result.csv")
    assert ours[0] == theirs[0] == [*(f"rx__{i}" for i in range(6)), "y", "y__0", "y__1", "y__2"]
    assert [row[:7] for row in ours] == [row[:7] for row in theirs]
    np.testing.assert_allclose(
        np.float64([r[7:] for r in ours[1:]]), np.float64([r[7:] for r in theirs[1:]]), rtol=1e-5
    )


@pytest.mark.parametrize("batch_size", [-1, 1, 5])
def test_forward_is_nnablas(run, batch_size: int) -> None:
    assert run("forward", "-c", "network.nnp", "-d", "test.csv", "-o", "out", "-b", batch_size)[0] == 0
    assert_results("out/output_result.csv")


def test_forward_of_a_cache(run) -> None:
    assert run("create_cache", "-S", "test.csv", "test.cache")[0] == 0
    assert run("forward", "-c", "network.nnp", "-d", "test.cache", "-o", "out", "-f", "r.csv")[0] == 0
    ours, theirs = rows("out/r.csv"), rows("output_result.csv")
    np.testing.assert_allclose(np.float64(sorted(ours[1:])), np.float64(sorted(theirs[1:])), rtol=1e-5)
    assert ours[1:] != sorted(ours[1:]) or len(ours) == len(theirs)


def test_forward_with_parameters_of_another_file(run) -> None:
    assert run("forward", "-c", "network.nnp", "-p", "trained.nnp", "-d", "test.csv", "-o", "out")[0] == 0
    assert run("forward", "-c", "trained.nnp", "-d", "test.csv", "-o", "out", "-f", "b.csv")[0] == 0
    assert rows("out/b.csv") == rows("out/output_result.csv") != rows("output_result.csv")


def test_forward_of_what_cannot_be(run) -> None:
    Path("empty.csv").write_text("")
    Path("short.csv").write_text("rx__0,y\n1,2\n")
    for data in ("train.csv", "none.csv", "empty.csv", "short.csv", "none.cache", "x.bin"):
        status, _, err = run("forward", "-c", "network.nnp", "-d", data, "-o", "out")
        assert status == 1 and "Traceback" not in err, data
        assert not os.path.exists("out/output_result.csv")
    assert run("forward", "-c", "network.nnp", "-o", "out")[0] == 1
    path = change(lambda p: p.ClearField("executor"))
    assert run("forward", "-c", path, "-d", "test.csv", "-o", "out")[0] == 1


@pytest.mark.parametrize("kind, count", [("", 1), ("last", 3), ("std", 3)])
def test_repeated_evaluations(run, kind: str, count: int) -> None:
    def edit(p):
        p.executor[0].num_evaluations, p.executor[0].repeat_evaluation_type = count, kind

    path = change(edit)
    assert run("forward", "-c", path, "-p", "network.nnp", "-d", "test.csv", "-o", "out")[0] == 0
    found = rows("out/output_result.csv")
    if kind == "std":
        np.testing.assert_allclose(np.float64([r[7:] for r in found[1:]]), 0, atol=1e-3)
    else:
        assert_results("out/output_result.csv")


def test_results_that_are_images_and_tables(here: Path) -> None:
    """Three axes make a png (or one for each map), two a table; the names say the output's and the sample's number."""
    image = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 2, 2)
    result = forward.ForwardResult()
    result.add("", "a", (3, 2, 2))
    result.add("", "m", (2, 2, 2))
    result.add("", "t", (2, 2))
    assert (result.types, result.dims) == ([".png", ".png", ".csv"], [1, 2, 1])
    assert result.header(False) == ["a", "m__0", "m__1", "t"]
    pytest.importorskip("PIL")
    names = forward._texts(image, result, 0, 1002, str(here), "r")
    assert names == [os.path.join(".", "r", "0_0001", "1002.png")]
    from nnrs.utils.image_utils import imread

    np.testing.assert_array_equal(imread(names[0]), (image.transpose(1, 2, 0) * 255).astype(np.uint8))
    assert len(forward._texts(image[:2], result, 1, 0, str(here), "")) == 2
    table = forward._texts(image[0], result, 2, 0, str(here), "")
    np.testing.assert_allclose(np.float64(rows(table[0])), image[0])


def test_infer_is_nnablas(run) -> None:
    assert run("infer", "-c", "network.nnp", "-b", 2, "-o", "r", "x.bin")[0] == 0
    found = [np.fromfile(f"r_{i}.bin", np.float32) for i in range(2)]
    np.testing.assert_allclose(found, np.loadtxt("infer.txt"), rtol=1e-5)
    status, out, _ = run("infer", "-c", "network.nnp", "-b", 2, "x.bin")
    np.testing.assert_allclose([[float(x) for x in line.split()] for line in out.splitlines()], found, rtol=1e-6)
    np.arange(12, dtype=np.int32).tofile("x_int32.bin")
    assert run("infer", "-c", "network.nnp", "-b", 2, "x_int32.bin")[1] == out


def test_infer_of_what_cannot_be(run) -> None:
    Path("odd.bin").write_bytes(b"abc")
    for args in (("odd.bin",), ("none.bin",), ("x.bin", "x.bin"), ("x.bin",)):
        assert run("infer", "-c", "network.nnp", *args)[0] == 1, args


# --- measuring --------------------------------------------------------------------------------------------------------


def test_profile(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_SECONDS", 0.0)
    monkeypatch.setattr(profile, "_RUNS", 2)
    monkeypatch.setattr(profile.measure, "__defaults__", (0.0, 2))
    assert run("profile", "-c", "network.nnp", "-o", "out")[0] == 0
    found = dict(rows("out/profile.csv"))
    assert found.pop("time in ms") == "optimizer 'opt' with network 'Main'"
    assert {"load_dataset", "let_data (x to x)", "forward_all", "update (Adam)", "forward_function (ReLU)"} <= set(
        found
    )
    assert all(float(time) >= 0 for time in found.values())


def test_compare_with_cpu(run) -> None:
    assert run("compare_with_cpu", "-c", "network.nnp", "-c2", "network.nnp", "-o", "out")[0] == 0
    found = dict(rows("out/compare_with_cpu.csv")[1:])
    assert "update (Adam, a1/affine/W)" in found and set(found.values()) == {"0.000000"}
    path = change(lambda p: p.network[0].function[1].__setattr__("type", "Tanh"))
    assert run("compare_with_cpu", "-c", "network.nnp", "-c2", path, "-o", "out")[0] == 0
    found = dict(rows("out/compare_with_cpu.csv")[1:])
    assert float(found["data (@Main/ReLU_out)"]) > 0.1 and float(found["gradient (a1/affine/W)"]) > 0.1


def test_messages_are_those_of_files() -> None:
    assert message_class("NNablaProtoBuf") is type(nn.load_parameters("network.nnp"))
