"""What monitors write, in MLflow too: `autolog()` before training.

Series and times become metrics of the active run, images its artifacts, and saved parameters too if that is asked for.
A run is begun if none is active. Needs the package mlflow (`pip install nnrs[mlflow]`).

>>> import tempfile, mlflow
>>> from nnrs.monitor import MonitorSeries
>>> with tempfile.TemporaryDirectory() as folder:
...     mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
...     with mlflow.start_run() as run:
...         autolog()
...         MonitorSeries("loss", verbose=False).add(0, 0.5)
...         stop_autolog()
...     print(mlflow.get_run(run.info.run_id).data.metrics)
...     mlflow.set_tracking_uri("")
{'loss': 0.5}
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from . import _recorders, parameter
from ._errors import MissingPackageError, message

_logging: _Mlflow | None = None
_originals: dict[Any, Callable[..., Any]] = {}


def import_mlflow(function: str) -> Any:
    """The package mlflow."""
    try:
        import mlflow
    except ImportError as error:
        text = message(function, None, "this needs the package mlflow", hint="pip install nnrs[mlflow]")
        raise MissingPackageError(text) from error
    return mlflow


class _Mlflow(_recorders.Recorder):
    """Tells MLflow what monitors write."""

    def __init__(self, mlflow: Any) -> None:
        self._mlflow = mlflow

    def series(self, name: str, index: Any, value: float) -> None:
        self._mlflow.log_metric(name, value, step=int(index))

    def elapsed(self, name: str, index: Any, seconds: float) -> None:
        self._mlflow.log_metric(name, seconds, step=int(index))

    def image(self, name: str, index: Any, path: str) -> None:
        self.file(path, name)

    def file(self, path: str, name: str) -> None:
        """Log a file as an artifact of the active run."""
        run = self._mlflow.active_run() or self._mlflow.start_run()
        self._mlflow.log_artifact(path, f"runs_{run.info.run_id}/{name}")


def autolog(with_save_parameters: bool = False) -> None:
    """Log to MLflow what monitors write from now on.

    Args:
        with_save_parameters: Whether to log the files of `nnrs.save_parameters` too.

    Raises:
        ImportError: If mlflow is not installed.
    """
    global _logging
    made = _Mlflow(import_mlflow("autolog"))
    stop_autolog()
    _logging = made
    _recorders.everywhere.append(made)
    if with_save_parameters:
        _replace(made)


def stop_autolog() -> None:
    """Log nothing to MLflow any more."""
    global _logging
    if _logging is not None:
        _recorders.everywhere.remove(_logging)
        _logging = None
    for module, original in _originals.items():
        module.save_parameters = original
    _originals.clear()


def _replace(recorder: _Mlflow) -> None:
    """Let `save_parameters` log the file that it has written."""
    import nnrs

    original = parameter.save_parameters

    @functools.wraps(original)
    def save_parameters(path: Any, *args: Any, **kwargs: Any) -> None:
        original(path, *args, **kwargs)
        if isinstance(path, (str, os.PathLike)):
            recorder.file(os.fspath(path), "parameters")

    for module in (nnrs, parameter):
        _originals[module] = original
        setattr(module, "save_parameters", save_parameters)  # noqa: B010
