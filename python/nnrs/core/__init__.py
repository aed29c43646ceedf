"""NNabla's `nnabla.core`: networks as objects."""

from __future__ import annotations

from typing import Any

from .._lazy_modules import module_of


def __getattr__(name: str) -> Any:
    return module_of(__name__, name)
