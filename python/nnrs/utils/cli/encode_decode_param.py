"""`nnrs decode_param` and `encode_param`: parameters as text, a file each, and back."""

from __future__ import annotations

import ast
import os
import urllib.parse
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Variable
from ..._errors import ArgumentError, FileError, FormatError, message
from ..._files import atomic_path
from ..._monitor_files import make_folder
from ...logger import logger
from ._arguments import add_parser, read_as


def save_param_in_txt(x: np.ndarray, filepath: str) -> None:
    """Write an array as text: its shape, then a number a line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_param_in_txt(np.float32([1, 0.5]), f"{folder}/x.txt")
    ...     print(Path(folder, "x.txt").read_text())
    (2,)
    1.0
    0.5
    """
    x = np.asarray(x)
    with atomic_path(filepath) as temporary, open(temporary, "w", encoding="ascii") as f:
        f.write(f"{tuple(x.shape)}\n")
        f.write("\n".join(map(repr, x.astype(np.float64).ravel().tolist())))


def load_param_in_txt(name: str, filepath: str) -> None:
    """Read a file of `save_param_in_txt` as the parameter `name` of the current scope.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no such file.
    """
    from ...parameter import set_parameter

    v = Variable.from_numpy_array(_read(filepath))
    v.need_grad = True
    set_parameter(name, v)


def _read(path: str) -> np.ndarray:
    try:
        head, _, rest = Path(path).read_text(encoding="ascii").partition("\n")
        shape = ast.literal_eval(head)
        values = np.array(rest.split(), np.float64)
        if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError(f"the first line {head[:40]!r} is no shape")
        with np.errstate(over="ignore"):
            return values.reshape(shape).astype(np.float32)
    except OSError as error:
        raise FileError(message("encode_param", None, f"cannot read {path!r}: {error.strerror}")) from error
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise FormatError(message("encode_param", None, f"{path!r} is no parameter as text: {error}")) from error


def decode_param_command(args: Any, **kwargs: Any) -> None:
    """Write each parameter of a file as text."""
    from ...parameter import get_parameters, load_parameters, parameter_scope

    with parameter_scope("", {}), read_as("decode_param", "param"):
        load_parameters(args.param)
        found = get_parameters(grad_only=False)
    if not found:
        raise ArgumentError(message("decode_param", "param", "a file with parameters", repr(args.param)))
    make_folder("decode_param", args.outdir)
    for key, v in found.items():
        logger.log(99, key)
        save_param_in_txt(v.d, os.path.join(args.outdir, _file_of(key)))
    logger.log(99, "Decode Parameter Completed.")


def _file_of(key: str) -> str:
    """NNabla's name of the file; a `~` in the key is written as %7E, so that it comes back as one."""
    return urllib.parse.quote(key, safe="/ ").replace("~", "%7E").replace("/", "~") + ".txt"


def encode_param_command(args: Any, **kwargs: Any) -> None:
    """Read texts of parameters into one file."""
    from ...parameter import parameter_scope, save_parameters

    try:
        entries = sorted(os.scandir(args.indir), key=lambda entry: entry.name)
    except OSError as error:
        raise FileError(message("encode_param", "indir", f"cannot read {args.indir!r}: {error.strerror}")) from error
    files = [entry.name for entry in entries if entry.is_file() and entry.name.endswith(".txt")]
    if not files:
        raise ArgumentError(message("encode_param", "indir", "a folder with .txt files", repr(args.indir)))
    with parameter_scope("", {}):
        for file in files:
            key = urllib.parse.unquote(os.path.splitext(file)[0].replace("~", "/"))
            logger.log(99, key)
            load_param_in_txt(key, os.path.join(args.indir, file))
        save_parameters(args.param)
    logger.log(99, "Encode Parameter Completed.")


def add_decode_param_command(subparsers: Any) -> None:
    """Add the command `decode_param`."""
    parser = add_parser(subparsers, "decode_param", "write parameters as text, a file each")
    parser.add_argument("-p", "--param", required=True, help="file with parameters (.h5, .nnp, .protobuf, ...)")
    parser.add_argument("-o", "--outdir", required=True, help="folder for the texts")
    parser.set_defaults(func=decode_param_command)


def add_encode_param_command(subparsers: Any) -> None:
    """Add the command `encode_param`."""
    parser = add_parser(subparsers, "encode_param", "read texts of parameters into one file")
    parser.add_argument("-i", "--indir", required=True, help="folder with the texts of decode_param")
    parser.add_argument("-p", "--param", required=True, help="file to write (.h5, .nnp, .protobuf, ...)")
    parser.set_defaults(func=encode_param_command)
