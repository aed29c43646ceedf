"""Helpers around training: files, data, images."""

from __future__ import annotations

from typing import Any

from .._missing import missing_name


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name)
