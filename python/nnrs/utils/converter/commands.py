"""The commands `convert` and `dump` as functions.

>>> import tempfile, nnrs as nn, nnrs.functions as F
>>> from types import SimpleNamespace
>>> from nnrs.utils.save import save
>>> x = nn.Variable((8, 3))
>>> network = {"name": "net", "batch_size": 8, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/net.nnp", {"networks": [network]})
...     convert_files(SimpleNamespace(batch_size=4), [f"{folder}/net.nnp"], f"{folder}/net.nntxt")
...     dump_files(SimpleNamespace(dump_functions=True), [f"{folder}/net.nntxt"])
True
  Network: net
  Network:   Function[  0  ]: Type: ReLU                 Name: @net/ReLU
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..cli.cli import make_parser


def convert_files(args: Any, ifiles: Sequence[str], output: str) -> bool:
    """Write files with networks and parameters as one file of another kind: `nnrs convert`.

    Args:
        args: Object whose attributes are options of the command; those that it does not have are the usual ones.
        ifiles: Paths of the files.
        output: Path of the file to write.

    Returns:
        True.

    Raises:
        OSError: If a file cannot be read, or the other one be written.
        ValueError: If a file is no such file.
        RuntimeError: If one of them is of a kind of other libraries (ONNX, NNB, TensorFlow).
    """
    return _run("convert", args, [*ifiles, output])


def dump_files(args: Any, ifiles: Sequence[str]) -> bool:
    """Print what is in files with networks: `nnrs dump`.

    Args:
        args: Object whose attributes are options of the command; those that it does not have are the usual ones.
        ifiles: Paths of the files.

    Returns:
        True.
    """
    return _run("dump", args, list(ifiles))


def nnb_template(args: Any, ifiles: Sequence[str], output: str) -> bool:
    """Settings for an NNB file.

    Args:
        args: Options.
        ifiles: Paths of the files.
        output: Path of the settings.

    Raises:
        RuntimeError: Always: nnrs writes no NNB files.
    """
    return _run("nnb_template", args, [*ifiles, output])


def _run(command: str, args: Any, files: list[str]) -> bool:
    usual = make_parser().parse_args([command, *files])
    given = {name: value for name, value in vars(args).items() if name not in ("command", "files", "func")}
    usual.__dict__.update(given)
    usual.func(usual)
    return True
