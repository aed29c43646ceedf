"""How far long work has come: written to a file, given to a callback.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as d:
...     configure_progress(os.path.join(d, "progress.txt"), lambda state, progress: print(state, progress))
...     progress("Create cache", 0.5)
...     configure_progress("", lambda state, progress: None)
None 0.0
Create cache 0.5
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType

from ..logger import logger

state_file_name: str = ""
state_callback: Callable[[str | None, float], object] | None = None
_SECONDS = 1.0  # between two writes of the file
_written = float("-inf")


def configure_progress(file_name: str | None, cb: Callable[[str | None, float], object] | None = None) -> None:
    """Say where progress goes, and begin with an empty state.

    Args:
        file_name: File that holds the state as a line of text; "" for none, None to leave it as it is.
        cb: Called as `cb(state, progress)`; None to leave it as it is.
    """
    global state_file_name, state_callback
    if file_name is not None:
        state_file_name = file_name
    if cb is not None:
        state_callback = cb
    progress(None)


def progress(state: str | None, progress: float = 0.0) -> None:
    """Tell how far work has come. A file that cannot be written is logged: work goes on.

    Args:
        state: What is being done; None when it begins and ends.
        progress: The part that is done, from 0 to 1.
    """
    text = f"{state} ({progress * 100:3.2f}%)"
    if state_file_name:
        _write("" if state is None else text, at_once=state is None)
    callback = callback_module()
    if callback is not None:
        callback.update_progress(text)
    if state_callback is not None:
        state_callback(state, progress)


def _write(text: str, at_once: bool) -> None:
    """Write the file, once a second at most."""
    global _written
    now = time.monotonic()
    if not at_once and now - _written < _SECONDS:
        return
    _written = now
    try:
        with open(state_file_name, "w", encoding="utf-8") as f:
            f.write(text)
    except OSError as error:
        logger.warning("progress: cannot write %r: %s", state_file_name, error)


def callback_module() -> ModuleType | None:
    """`nnrs.utils.callback`, where this version has it."""
    try:
        return importlib.import_module(".callback", __package__)
    except ModuleNotFoundError:
        return None
