"""What `importlib.metadata` says of NNabla while nnrs stands for it."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path


class Nnabla(importlib.metadata.Distribution):
    """The distribution `nnabla`, of a version.

    >>> Nnabla("1.39.0").version
    '1.39.0'
    """

    def __init__(self, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: nnabla\nVersion: {version}\nSummary: nnrs in its place\n"

    def read_text(self, filename: str) -> str | None:
        """The metadata, and the names of the modules; there are no other files."""
        return {"METADATA": self._text, "top_level.txt": "nnabla\nnnabla_ext\n"}.get(filename)

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """A path beside nnrs."""
        return Path(__file__).parent.parent / path
