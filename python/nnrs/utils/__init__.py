"""Helpers around training: files, data, images. A module is imported when it is first asked for, as `nn.utils.rnn`."""

from __future__ import annotations

from typing import Any

from .._lazy_modules import module_of


def __getattr__(name: str) -> Any:
    return module_of(__name__, name)
