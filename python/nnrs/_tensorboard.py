"""TensorBoard's event files, by the package tensorboardX: numbers, and PNG files as they are."""

from __future__ import annotations

import os
import struct
import weakref
from pathlib import Path
from typing import Any

from ._errors import FileError, FormatError, MissingPackageError, message, reason


class Events:
    """An event file in a folder; it is closed at the end of the program at the latest."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            hint = "pip install nnrs[tensorboard]"
            text = message("MonitorTensorBoard", None, "this needs the package tensorboardX", hint=hint)
            raise MissingPackageError(text) from error
        try:
            self._writer = SummaryWriter(os.fspath(folder))
        except OSError as error:
            raise FileError(
                f"MonitorTensorBoard: cannot write to {os.fspath(folder)!r}: {reason(error, folder)}"
            ) from error
        self.close = weakref.finalize(self, self._writer.close)

    def scalar(self, name: str, index: Any, value: float) -> None:
        if self.close.alive:
            self._writer.add_scalar(name, value, int(index))

    def image(self, name: str, index: Any, path: str) -> None:
        """A PNG file, under the name and what the file's own has behind the index."""
        if not self.close.alive:
            return
        from tensorboardX.proto.summary_pb2 import Summary

        picture = Path(path).read_bytes()
        if picture[:8] != b"\x89PNG\r\n\x1a\n" or len(picture) < 24:
            raise FormatError(f"MonitorTensorBoard: {path!r} is no PNG file")
        width, height = struct.unpack(">II", picture[16:24])
        made = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=picture)
        _, dash, number = Path(path).stem.partition("-")
        value = Summary.Value(tag=f"{name}/{number}" if dash else name, image=made)
        self._writer.file_writer.add_summary(Summary(value=[value]), int(index))
