"""The steps of which `load` and `save` are made: handlers of files by extension, and what they share.

A loader is `loader(ctx, loaders, archive, filename, ext)`, a saver `saver(ctx, filename, ext)`; tables of them have
keys as ".nntxt,.prototxt". `ctx` is a `FileHandlerContext` with `proto` (a message `NNablaProtoBuf`) and, for savers,
`parameters`.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .. import _core, _files
from .._borrowed import borrower
from .._errors import ArgumentError, describe, message
from .._messages import message_class
from ..logger import logger
from ..parameter import get_parameters, parameter_scope
from ..solver import SolverState

__all__ = [
    "FileHandlerContext",
    "get_buf_type",
    "get_decorated_file_loader",
    "get_default_file_savers",
    "get_file_handle_load",
    "get_file_handle_save",
    "get_initial_file_loader",
    "get_parameter_file_loader",
    "get_parameter_file_savers",
    "load_files",
    "load_solve_state_from_h5",
    "save_files",
]

__getattr__ = borrower(__name__)

Handlers = OrderedDict[str, Callable[..., Any]]


class FileHandlerContext:
    """What the handlers of several files share, as attributes."""


def get_buf_type(filename: str) -> str:
    """The format of a file of states in an archive.

    >>> get_buf_type("adam_Adam_optimizer.h5.optimizer")
    'h5'
    """
    parts = filename.split("_")[-1].split(".")
    if len(parts) < 2:
        expected = "a name as 'a_optimizer.h5.optimizer'"
        raise ArgumentError(message("get_buf_type", "filename", expected, describe(filename)))
    return parts[1].lower()


@contextlib.contextmanager
def get_file_handle_load(nnp: Any, path: Any, ext: str) -> Iterator[Any]:
    """Open a file to read: a ZipFile of '.nnp', an h5py.File of '.h5', else a file of text or bytes.

    Args:
        nnp: Archive that has the file; None for one of its own.
        path: Its path, or an open file.
        ext: Its format.

    Raises:
        ValueError: If the format is not known.
    """
    here = "get_file_handle_load"
    ext = _files.file_extension(here, f"a{ext}", None, _files.NNABLA)
    if nnp is not None:
        path = io.BytesIO(nnp.read(path))
        if ext in (".nntxt", ".prototxt"):
            path = io.TextIOWrapper(path, "utf-8")
    if ext == ".nnp":
        made: Any = zipfile.ZipFile(path)
    elif ext == ".h5":
        made = _files.h5py_module(here).File(path if _files.is_path(path) else io.BytesIO(path.read()), "r")
    elif not _files.is_path(path):
        made = contextlib.nullcontext(path)
    else:
        made = open(path, "rb") if ext == ".protobuf" else open(path, encoding="utf-8")
    with made as f:
        yield f


@contextlib.contextmanager
def get_file_handle_save(path: Any, ext: str) -> Iterator[Any]:
    """Open a file to write, of the kinds of `get_file_handle_load`. A path gets it when the block has ended well.

    Raises:
        ValueError: If the format is not known.
        OSError: If the file cannot be written.
    """
    ext = _files.file_extension("get_file_handle_save", f"a{ext}", None, _files.NNABLA)
    if not _files.is_path(path):
        with _writer(path, ext) as f:
            yield f
        if hasattr(path, "seek"):
            path.seek(0)
        return
    with _files.atomic_path(path, wait_for_disk=True) as temporary, _writer(temporary, ext) as f:
        yield f


def _writer(path: Any, ext: str) -> Any:
    if ext == ".nnp":
        return zipfile.ZipFile(path, "w")
    if ext == ".h5":
        return _files.h5py_module("get_file_handle_save").File(path, "w")
    if not _files.is_path(path):
        return contextlib.nullcontext(path)
    return open(path, "wb") if ext == ".protobuf" else open(path, "w", encoding="utf-8")


def _load(ctx: Any, loaders: Any, nnp: Any, filename: Any, ext: str) -> None:
    """Add what one of NNabla's files has to a context; its parameters go into the current scope."""
    found = _files.read_nnabla("load_files", filename if nnp is None else io.BytesIO(nnp.read(filename)), ext)
    proto = _proto_of(ctx)
    if not getattr(ctx, "parameter_only", False):
        proto.MergeFrom(message_class("NNablaProtoBuf")._of(found.message))
    if not getattr(ctx, "exclude_parameter", False):
        _core.check_parameter_names("load_files", "filenames", [name for name, *_ in found.parameters])
        _core.set_parameters("load_files", found.parameters)
    for name, data in found.states:
        _load_states(ctx, loaders, None, (name, data), ".optimizer")


def _proto_of(ctx: Any) -> Any:
    if not hasattr(ctx, "proto"):
        ctx.proto = message_class("NNablaProtoBuf")()
    return ctx.proto


def _load_states(ctx: Any, loaders: Any, nnp: Any, filename: Any, ext: str) -> None:
    """Note the states of solvers of a file in an archive; those of optimizers that the context has get them at once."""
    from ._links import restore_optimizer_state
    from .load import _checkpoints

    name, data = filename if isinstance(filename, tuple) else (filename, nnp.read(filename))
    states = ctx.__dict__.setdefault("optimizer_states_checkpoint", OrderedDict())
    for key, checkpoint in _checkpoints(name, data):
        states[key] = checkpoint
        optimizer = getattr(ctx, "optimizers", {}).get(key)
        if optimizer is not None:
            optimizer.solver_checkpoint = checkpoint
            restore_optimizer_state(optimizer)


def get_initial_file_loader() -> Handlers:
    """Loaders of all that a file has."""
    kinds = (".nntxt,.prototxt", ".protobuf,.h5", ".nnp")
    return OrderedDict([*((kind, _load) for kind in kinds), (".optimizer", _load_states)])


def get_decorated_file_loader() -> Handlers:
    """Loaders of parameters and of states for optimizers that are there."""
    return OrderedDict([(".optimizer", _load_states), (".protobuf,.h5", _load), (".nnp", _load)])


def get_parameter_file_loader() -> Handlers:
    """Loaders of parameters."""
    return OrderedDict((kind, _load) for kind in (".h5", ".protobuf", ".nntxt,.prototxt", ".nnp"))


def load_files(ctx: Any, file_loaders: Any, filenames: Any, extension: str | None = None) -> None:
    """Let each file's loader add what it has to a context; files without one are left out, with a warning.

    Args:
        ctx: The context; parameters go into its `parameter_scope`, or the current one.
        file_loaders: Loaders by extension.
        filenames: Path, a list of paths, or a file open for reading.
        extension: The format of an open file.
    """
    with parameter_scope("", getattr(ctx, "parameter_scope", None)):
        for filename in filenames if isinstance(filenames, (list, tuple)) else [filenames]:
            ext, handler = _handler(file_loaders, filename, extension)
            if handler is None:
                logger.warning("%s is omitted.", filename)
            else:
                handler(ctx, file_loaders, None, filename, ext)


def _handler(handlers: Any, filename: Any, extension: str | None) -> tuple[str, Any]:
    ext = os.path.splitext(os.fspath(filename))[1] if _files.is_path(filename) else extension or ""
    found = [h for kinds, h in handlers.items() if ext and ext in [kind.strip() for kind in kinds.split(",")]]
    return ext, found[0] if found else None


def load_solve_state_from_h5(nnp: Any, filename: Any) -> OrderedDict[str, SolverState]:
    """The states in an '.h5' file of a solver, by parameter.

    Args:
        nnp: Archive that has the file; None for one of its own.
        filename: Its path, or a file open for binary reading.

    Raises:
        ValueError: If it holds no states.
    """
    from ..solver import _read_h5

    if nnp is None and _files.is_path(filename):
        return OrderedDict(_files.read_whole("load_solve_state_from_h5", filename, ".h5", _read_h5))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "states.h5")
        with open(path, "wb") as f:
            f.write(filename.read() if nnp is None else nnp.read(filename))
        return OrderedDict(_files.read_whole("load_solve_state_from_h5", path, ".h5", _read_h5))


def _save(ctx: Any, filename: Any, ext: str, parameter_format: str = ".h5", state_format: str | None = None) -> None:
    from .save import _states

    params: dict[str, Any] = {}
    states: list[tuple[str, bytes]] = []
    if ext == ".nnp":
        params = getattr(ctx, "parameters", None) or {}
        if getattr(ctx, "parameters", None) is None:
            params = get_parameters(grad_only=False)
        if state_format is not None:
            states = _states({"optimizers": [vars(o.optimizer) for o in ctx.optimizers.values()]}, state_format)
    proto = _proto_of(ctx)._dict()
    data = _core.write_nnabla(proto, list(params), list(params.values()), ext, parameter_format, states)
    _files.write_bytes("save_files", filename, ext, data, "filenames")


def _save_parameters(ctx: Any, filename: Any, ext: str) -> None:
    _files.write_parameters("save_files", filename, ext, ctx.parameters)


def get_default_file_savers(parameter_format: str = ".h5", solver_state_format: str | None = None) -> Handlers:
    """Savers of a context's `proto`, and in a '.nnp' of its `parameters`, and of the states of its `optimizers`."""
    nnp = partial(_save, parameter_format=parameter_format, state_format=solver_state_format)
    return OrderedDict([(".nntxt, .prototxt", _save), (".protobuf", _save), (".nnp", nnp)])


def get_parameter_file_savers() -> Handlers:
    """Savers of a context's `parameters`."""
    return OrderedDict([(".h5", _save_parameters), (".protobuf", _save_parameters)])


def save_files(ctx: Any, file_savers: Any, filenames: Any, extension: str | None = None) -> bool:
    """Let each file's saver write it; whether all of them had one.

    Args:
        ctx: What is to be written.
        file_savers: Savers by extension.
        filenames: Path, a list of paths, or a file open for writing.
        extension: The format of an open file.
    """
    done = []
    for filename in filenames if isinstance(filenames, (list, tuple)) else [filenames]:
        ext, handler = _handler(file_savers, filename, extension)
        if handler is not None:
            handler(ctx, filename, ext)
        done.append(handler is not None)
    return all(done)
