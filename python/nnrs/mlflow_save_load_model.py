"""Networks in MLflow: files of parameters, of networks and of a training's state, logged as one model, and found again.

Needs the package mlflow (`pip install nnrs[mlflow]`).

>>> import tempfile, mlflow, nnrs as nn, nnrs.parametric_functions as PF
>>> y = PF.affine(nn.Variable((1, 2)), 3)
>>> with tempfile.TemporaryDirectory() as folder:
...     nn.save_parameters(f"{folder}/net.h5")
...     save_model(f"{folder}/net.h5", f"{folder}/saved")  # log_model sends it to the active run instead
...     nn.clear_parameters()
...     _ = nn.load_parameters(load_model(f"{folder}/saved"))
>>> list(nn.get_parameters())
['affine/W', 'affine/b']
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ._errors import ArgumentError, ArgumentTypeError, FileError, MissingFileError, describe, message
from ._version import __version__
from .autolog import import_mlflow

FLAVOR_NAME = "nnabla"
_MODEL = "model"
_LISTS = {"nnp": "nnp_files", "checkpoint": "checkpoint_files", "extra_files": "extra_files"}


def get_default_pip_requirements() -> list[str]:
    """What a logged model needs: this version of nnrs.

    >>> import nnrs
    >>> get_default_pip_requirements() == [f"nnrs=={nnrs.__version__}"]
    True
    """
    return [f"nnrs=={__version__}"]


def get_default_conda_env() -> dict[str, Any]:
    """A conda environment with what a logged model needs."""
    return {"name": "mlflow-env", "dependencies": ["python", "pip", {"pip": get_default_pip_requirements()}]}


def log_model(
    nnabla_model_name: str,
    path: str,
    nnp: Sequence[str] | None = None,
    checkpoint: Sequence[str] | None = None,
    config_file: str | None = None,
    extra_files: Sequence[str] | None = None,
    conda_env: Any = None,
    code_paths: Sequence[str] | None = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> Any:
    """Log a model to the active run.

    Args:
        nnabla_model_name: Name of its file of parameters in the folder `path`.
        path: The folder, and the model's name in MLflow.
        nnp: Paths of `.nnp` files.
        checkpoint: Paths of files that a training goes on with.
        config_file: Path of a file of settings.
        extra_files: Paths of other files.
        conda_env: Environment, as a dict or the path of its file.
        code_paths: Files and folders of Python code.
        signature: MLflow's signature of inputs and outputs.
        input_example: Not supported: give a signature.
        pip_requirements: Packages that it needs; by default nnrs.
        extra_pip_requirements: Packages that it needs beside those.
        metadata: Anything else to be noted with the model.

    Returns:
        MLflow's `ModelInfo`.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If mlflow is not installed.
    """
    import_mlflow("log_model")
    from mlflow.models import Model

    import nnrs.mlflow_save_load_model as flavor

    return Model.log(
        artifact_path=path,
        flavor=flavor,
        nnabla_model_name=_file(path, nnabla_model_name),
        nnp=nnp,
        checkpoint=checkpoint,
        config_file=config_file,
        extra_files=extra_files,
        conda_env=conda_env,
        code_paths=code_paths,
        signature=signature,
        input_example=input_example,
        pip_requirements=pip_requirements,
        extra_pip_requirements=extra_pip_requirements,
        metadata=metadata,
    )


def save_model(
    nnabla_model_name: str,
    path: str,
    nnp: Sequence[str] | None = None,
    checkpoint: Sequence[str] | None = None,
    config_file: str | None = None,
    extra_files: Sequence[str] | None = None,
    conda_env: Any = None,
    code_paths: Sequence[str] | None = None,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write a model to a folder as MLflow keeps it; the arguments are those of `log_model`, but

    Args:
        nnabla_model_name: Path of the file of parameters.
        path: Folder to be made.
        mlflow_model: MLflow's `Model` to add it to.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If the folder has something in it already.
    """
    import_mlflow("save_model")
    from mlflow.models import Model

    if input_example is not None:
        raise ArgumentError(message("save_model", "input_example", "None: give a signature", describe(input_example)))
    model = mlflow_model if mlflow_model is not None else Model()
    given = {"nnp": nnp, "checkpoint": checkpoint, "extra_files": extra_files}
    lists = {argument: _files("save_model", argument, files) for argument, files in given.items()}
    parameters = _file(getattr(model, "artifact_path", None) or "", nnabla_model_name)
    folder = _new_folder(path)
    (folder / _MODEL).mkdir()
    shutil.copy(parameters, folder / _MODEL)
    if config_file:
        shutil.copy(config_file, folder)
    flavor: dict[str, Any] = {}
    for argument, files in lists.items():
        if files:
            flavor[_LISTS[argument]] = [_copied(file, folder, _LISTS[argument]) for file in files]
    code = [_copied(file, folder, "code") for file in _files("save_model", "code_paths", code_paths)]
    if signature:
        model.signature = signature
    if metadata is not None:
        model.metadata = metadata
    model.add_flavor(
        FLAVOR_NAME, model_data=_MODEL, nnabla_version=__version__, code="code" if code else None, **flavor
    )
    model.save(str(folder / "MLmodel"))
    requirements = [*(pip_requirements or get_default_pip_requirements()), *(extra_pip_requirements or ())]
    _write_environment(folder, conda_env, requirements)


def load_model(model_uri: str, dst_path: str | None = None, **kwargs: Any) -> Any:
    """Fetch a model that `log_model` has logged.

    Args:
        model_uri: Where it is: a folder, "runs:/<run>/<path>" or "models:/<name>/<version>".
        dst_path: Folder to put it in; by default a temporary one.
        **kwargs: `model`: what is wanted, "model" (the default), "nnp", "checkpoint" or "MLmodel".

    Returns:
        The path of the file of parameters; a list of paths for "nnp" and "checkpoint"; the folder for "MLmodel".

    Raises:
        FileNotFoundError: If the model has no such files.
    """
    mlflow = import_mlflow("load_model")
    wanted = kwargs.get("model", "model")
    if wanted not in ("model", "nnp", "checkpoint", "MLmodel"):
        raise ArgumentError(message("load_model", "model", "'model', 'nnp', 'checkpoint' or 'MLmodel'", repr(wanted)))
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path))
    if wanted == "MLmodel":
        return str(folder)
    part = folder / _LISTS.get(wanted, _MODEL)
    files = sorted(map(str, part.iterdir())) if part.is_dir() else []
    if not files:
        raise MissingFileError(f"load_model: the model at {model_uri!r} has no files of kind '{wanted}'")
    return files[0] if wanted == "model" else files


def unique_run_name() -> None:
    """From now on `mlflow.start_run` adds a number to a name that a run of the experiment has already."""
    mlflow = import_mlflow("unique_run_name")
    start = getattr(mlflow.start_run, "__wrapped__", mlflow.start_run)

    def start_run(
        run_id: str | None = None,
        experiment_id: str | None = None,
        run_name: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if run_id is None and run_name is not None:
            run_name = _unique(run_name, {run.info.run_name for run in _runs(mlflow, experiment_id)})
        return start(run_id, experiment_id, run_name, *args, **kwargs)

    start_run.__wrapped__ = start  # type: ignore[attr-defined]
    mlflow.start_run = start_run


def get_runid_by_name(run_name: str, experiment_name: str | None = None) -> str | None:
    """The id of the latest run of a name; None if there is none.

    Args:
        run_name: Name of the run.
        experiment_name: Name of its experiment; by default the current one.
    """
    mlflow = import_mlflow("get_runid_by_name")
    experiment = None
    if experiment_name is not None:
        found = mlflow.MlflowClient().get_experiment_by_name(experiment_name)
        if found is None:
            return None
        experiment = found.experiment_id
    return next((run.info.run_id for run in _runs(mlflow, experiment) if run.info.run_name == run_name), None)


def _runs(mlflow: Any, experiment_id: str | None) -> Iterator[Any]:
    """The runs of an experiment, the latest first."""
    from mlflow.tracking.fluent import _get_experiment_id

    client, token = mlflow.MlflowClient(), None
    experiment = experiment_id or _get_experiment_id()
    while True:
        page = client.search_runs([experiment], page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _unique(name: str, taken: set[str]) -> str:
    number, made = 0, name
    while made in taken:
        number += 1
        made = f"{name}-{number}"
    return made


def _file(folder: str, name: str) -> str:
    """The path of a file in a folder, or as it stands."""
    for path in (os.path.join(folder, name), name):
        if os.path.isfile(path):
            return path
    raise MissingFileError(f"mlflow: there is no file {os.path.join(folder, name)!r}")


def _files(function: str, argument: str, files: Sequence[str] | None) -> list[str]:
    if files is None:
        return []
    if isinstance(files, (str, bytes)) or not isinstance(files, Sequence):
        raise ArgumentTypeError(message(function, argument, "a list of paths", describe(files)))
    for file in files:
        if not os.path.exists(file):
            raise MissingFileError(f"{function}: argument '{argument}': there is no file {os.fspath(file)!r}")
    return list(files)


def _new_folder(path: str) -> Path:
    folder = Path(path).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"save_model: {os.fspath(path)!r} has something in it already")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _copied(file: str, folder: Path, into: str) -> dict[str, str]:
    """Copy a file or folder, and say where it is."""
    target = folder / into / os.path.basename(os.path.normpath(file))
    target.parent.mkdir(exist_ok=True)
    if os.path.isdir(file):
        shutil.copytree(file, target)
    else:
        shutil.copy(file, target)
    return {"path": f"{into}/{target.name}"}


def _write_environment(folder: Path, conda_env: Any, requirements: list[str]) -> None:
    import yaml  # mlflow needs it, too

    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n")
    if isinstance(conda_env, (str, os.PathLike)):
        shutil.copy(conda_env, folder / "conda.yaml")
        return
    made = get_default_conda_env() if conda_env is None else conda_env
    if conda_env is None:
        made["dependencies"][-1]["pip"] = requirements
    (folder / "conda.yaml").write_text(yaml.safe_dump(made, default_flow_style=False))
