"""HDF5 files that h5py opens, none of which is believed to hold what it claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._files import check_depth

# Deflate, the strongest filter in common use, shrinks by 1,032 at most: a file that claims more than that is lying.
_MOST_PER_BYTE = 1032


def check_node(h5py: Any, name: str, node: Any) -> None:
    """Refuse what lies too deep, and groups with links into other files."""
    check_depth(name)
    if not isinstance(node, h5py.Group):
        return
    for key in node:
        if isinstance(node.get(key, getlink=True), h5py.ExternalLink):
            raise ValueError(f"'{name}/{key}'".replace("'/", "'") + " is a link into another file")


def h5_array(name: str, dataset: Any, size: int) -> np.ndarray:
    """The values of a dataset in a file of `size` bytes, which is not believed to hold what it claims."""
    name.encode("utf-8")
    if dataset.dtype.kind not in "biuf" or dataset.dtype.itemsize > 8:
        raise ValueError(f"parameter '{name}' has elements of type {dataset.dtype}, expected numbers of up to 64 bits")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"parameter '{name}' keeps its values in another file")
    if dataset.shape is None or dataset.nbytes > _MOST_PER_BYTE * size:
        raise ValueError(f"parameter '{name}' claims shape {dataset.shape}, but the file has {size} bytes")
    if dataset.nbytes and not dataset.id.get_storage_size():
        raise ValueError(f"parameter '{name}' of shape {dataset.shape} has no values in the file")
    array = np.asarray(dataset[...])
    return array.astype(array.dtype.newbyteorder("="), copy=False)
