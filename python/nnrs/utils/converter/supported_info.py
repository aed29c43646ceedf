"""The kinds of files that `convert_files` reads and writes."""

from __future__ import annotations

from typing import NamedTuple


class FileKinds(NamedTuple):
    """Kinds that are read and kinds that are written.

    >>> ".h5" in extensions.import_name, ".h5" in extensions.export_name
    (True, False)
    """

    import_name: list[str]
    export_name: list[str]


extensions = FileKinds(
    [".nnp", ".nntxt", ".prototxt", ".protobuf", ".h5"],
    [".nnp", ".nntxt", ".prototxt", ".protobuf"],
)
formats = FileKinds(["NNP"], ["NNP"])
