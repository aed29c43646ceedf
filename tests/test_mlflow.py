"""`autolog` and `mlflow_save_load_model`: what monitors write is told to MLflow; models go there and come back."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
from nnrs import autolog, parameter
from nnrs import mlflow_save_load_model as models
from nnrs.monitor import Monitor, MonitorImage, MonitorSeries, MonitorTimeElapsed

needs_mlflow = pytest.mark.skipif(
    not (importlib.util.find_spec("mlflow") and importlib.util.find_spec("pandas")), reason="mlflow is not installed"
)


class FakeMlflow(types.ModuleType):
    """Notes what it is told."""

    def __init__(self):
        super().__init__("mlflow")
        self.told = []
        self.run = None

    def log_metric(self, name, value, step):
        self.told.append((name, value, step))

    def log_artifact(self, path, where):
        self.told.append((Path(path).name, where))

    def active_run(self):
        return self.run

    def start_run(self):
        self.run = types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))
        return self.run


@pytest.fixture
def fake(monkeypatch):
    made = FakeMlflow()
    monkeypatch.setitem(sys.modules, "mlflow", made)
    yield made
    autolog.stop_autolog()


def test_autolog(fake, tmp_path, monkeypatch):
    images = types.ModuleType("nnrs.utils.image_utils")
    images.imsave = lambda path, image: None
    monkeypatch.setitem(sys.modules, images.__name__, images)
    folder = Monitor(tmp_path)
    series = MonitorSeries("Training loss", folder, interval=2, verbose=False)
    series.add(1, 5)
    autolog.autolog()
    autolog.autolog()
    for i in range(2, 6):
        series.add(i, i)
    MonitorTimeElapsed("time", interval=1, verbose=False).add(np.int64(3))
    MonitorImage("im", folder, num_images=1, verbose=False).add(0, np.ones((2, 1, 2, 2)))
    assert fake.told[:2] == [("Training loss", 2.5, 3), ("Training loss", 4.5, 5)]
    assert fake.told[2][::2] == ("time", 3) and fake.told[2][1] >= 0
    assert fake.told[3:] == [("000000-000.png", "runs_r1/im")]
    autolog.stop_autolog()
    series.add(7, 1)
    assert len(fake.told) == 4


def test_saved_parameters_are_logged_on_request(fake, tmp_path):
    original = nn.save_parameters
    autolog.autolog(with_save_parameters=True)
    v = {"w": nn.Variable((2,))}
    nn.save_parameters(tmp_path / "a.safetensors", v)
    parameter.save_parameters(str(tmp_path / "b.safetensors"), params=v)
    with pytest.raises(ValueError):
        nn.save_parameters(str(tmp_path / "b.unknown"), v)
    assert fake.told == [("a.safetensors", "runs_r1/parameters"), ("b.safetensors", "runs_r1/parameters")]
    autolog.stop_autolog()
    assert nn.save_parameters is original and parameter.save_parameters is original
    autolog.stop_autolog()


def test_without_mlflow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for f in (
        autolog.autolog,
        models.unique_run_name,
        lambda: models.load_model("x"),
        lambda: models.save_model("x", str(tmp_path / "y")),
    ):
        with pytest.raises(ImportError, match=r"mlflow\n  hint: pip install nnrs\[mlflow\]"):
            f()


@pytest.fixture
def mlflow(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    before = mlflow.get_tracking_uri(), mlflow.start_run
    mlflow.set_tracking_uri(f"file:{tmp_path}/runs")
    yield mlflow
    mlflow.set_tracking_uri(before[0])
    mlflow.start_run = before[1]


@needs_mlflow
@pytest.mark.filterwarnings("ignore")
def test_models_go_to_mlflow_and_come_back(mlflow, tmp_path):
    for name in ("net/p.h5", "a.nnp", "b.nnp", "c.json", "code.py", "solver.h5"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    files = {"nnp": ["b.nnp", "a.nnp"], "checkpoint": ["solver.h5"], "code_paths": ["code.py"], "config_file": "c.json"}
    models.unique_run_name()
    models.unique_run_name()
    ids = []
    for _ in range(3):
        with mlflow.start_run(run_name="try") as run:
            uri = models.log_model("p.h5", "net", **files, metadata={"a": 1}).model_uri
        ids.append((run.info.run_name, run.info.run_id))
    assert [name for name, _ in ids] == ["try", "try-1", "try-2"]
    assert models.get_runid_by_name("try-1") == ids[1][1] == models.get_runid_by_name("try-1", "Default")
    assert models.get_runid_by_name("no") is models.get_runid_by_name("try", "no") is None
    assert Path(models.load_model(uri)).read_text() == "net/p.h5"
    assert [Path(p).name for p in models.load_model(uri, model="nnp")] == ["a.nnp", "b.nnp"]
    assert [Path(p).name for p in models.load_model(uri, model="checkpoint")] == ["solver.h5"]
    folder = Path(models.load_model(uri, model="MLmodel"))
    assert (folder / "c.json").exists() and (folder / "code" / "code.py").exists()
    assert (folder / "requirements.txt").read_text() == f"nnrs=={nn.__version__}\n"
    with pytest.raises(ValueError, match="expected 'model', 'nnp', 'checkpoint' or 'MLmodel', got 'x'"):
        models.load_model(uri, model="x")


@needs_mlflow
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_saved(mlflow, tmp_path):
    (tmp_path / "p.h5").write_text("x")
    for options, kind in (
        ({"nnabla_model_name": "q.h5"}, FileNotFoundError),
        ({"nnp": "a.nnp"}, TypeError),
        ({"nnp": ["a.nnp"]}, FileNotFoundError),
        ({"input_example": 3}, ValueError),
    ):
        with pytest.raises(kind) as e:
            models.save_model(**{"nnabla_model_name": "p.h5", "path": "out", **options})
        assert isinstance(e.value, nn.Error) and not (tmp_path / "out").exists()
    models.save_model("p.h5", "out")
    with pytest.raises(OSError, match="has something in it already"):
        models.save_model("p.h5", "out")
    with pytest.raises(FileNotFoundError, match="no files of kind 'nnp'"):
        models.load_model("out", model="nnp")
