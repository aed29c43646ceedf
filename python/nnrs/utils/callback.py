"""What a program around training may hook into: its modules are named in NNabla's settings.

`util_callback_module` in section CALLBACK of `nnrs.config.nnabla_config` names one module or several, `[a, b.c]`. Each
function here calls the function of its name of the first module that has one, and else gives what stands for nothing.

>>> get_timelimit(None)
-1
"""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType
from typing import Any

from ..config import nnabla_config


def _modules() -> list[ModuleType]:
    """The modules that are named; a RuntimeWarning for one that cannot be imported."""
    text = nnabla_config.get("CALLBACK", "util_callback_module", fallback="")
    found = []
    for name in text.strip("[] ").replace(" ", "").split(","):
        try:
            found += [importlib.import_module(name)] if name else []
        except Exception as error:
            warnings.warn(f"nnabla.conf: CALLBACK util_callback_module '{name}' is ignored: {error}", RuntimeWarning, 2)
    return found


callback_list: list[ModuleType] = _modules()
"""The modules, the first one first."""


def _call(default: Any, name: str, *args: Any) -> Any:
    for module in callback_list:
        if hasattr(module, name):
            return getattr(module, name)(*args)
    return default


def alternative_cli(args: Any) -> Any:
    """Do a command in another way; None: it is done as usual.

    Args:
        args: The command's arguments, as argparse gives them.
    """
    return _call(None, "alternative_cli", args)


def get_callback_version() -> Any:
    """The version of the module; None if it does not say."""
    return _call(None, "get_callback_version")


def get_best_from_status(args: Any) -> Any:
    """The best epoch and its error in a former training; (None, None) if there are none.

    Args:
        args: The command's arguments.
    """
    return _call((None, None), "get_best_from_status", args)


def update_time_train(prediction: Any = None) -> None:
    """Training has gone on.

    Args:
        prediction: Seconds that it will take in all, or None.
    """
    _call(None, "update_time_train", prediction)


def save_train_snapshot() -> None:
    """It is time to save the training's state."""
    _call(None, "save_train_snapshot")


def update_status(state: Any = None, start: bool = False, start_time: float | None = None) -> None:
    """The program's state has changed.

    Args:
        state: The new state, or None; what it may be, the module says.
        start: Whether something begins.
        start_time: When it began, in seconds as of `time.time`.
    """
    _call(None, "update_status", state, start, start_time)


def add_train_command_arg(subparser: Any) -> None:
    """Add arguments to those of the command `train`.

    Args:
        subparser: The command's parser, an `argparse.ArgumentParser`.
    """
    _call(None, "add_train_command_arg", subparser)


def get_timelimit(args: Any) -> Any:
    """Seconds that training may take; -1: as many as it takes.

    Args:
        args: The command's arguments.
    """
    return _call(-1, "get_timelimit", args)


def process_evaluation_result(outdir: str, filename: str) -> None:
    """A file of results has been written.

    Args:
        outdir: The folder of results.
        filename: The file.
    """
    _call(None, "process_evaluation_result", outdir, filename)


def update_forward_time() -> None:
    """An inference has gone on."""
    _call(None, "update_forward_time")


def check_training_time(args: Any, config: Any, timeinfo: Any, epoch: int, last_epoch: int) -> Any:
    """Whether there is time to go on training.

    Args:
        args: The command's arguments.
        config: The training's configuration.
        timeinfo: Times so far.
        epoch: The epoch that has ended.
        last_epoch: The last one to be trained.
    """
    return _call(True, "check_training_time", args, config, timeinfo, epoch, last_epoch)


def result_base(base: str, suffix: str, outdir: str) -> Any:
    """The name for a file of results; None: the usual one.

    Args:
        base: The usual name without what is behind it.
        suffix: What is behind it.
        outdir: The folder of results.
    """
    return _call(None, "result_base", base, suffix, outdir)


def update_progress(text: str) -> None:
    """Something goes on.

    Args:
        text: What.
    """
    _call(None, "update_progress", text)


def get_load_image_func(ext: str) -> Any:
    """The function that loads images of a kind of file; None: the usual one.

    Args:
        ext: The file's ending, as ".png".
    """
    return _call(None, "get_load_image_func", ext)
