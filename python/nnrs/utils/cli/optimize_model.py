"""`nnrs optimize`: not here. NNabla's undoes what its importers of other formats write, which are not here either."""

from __future__ import annotations

from typing import Any

from ..._errors import UnsupportedError, message
from ._arguments import add_parser


def optimization_command(args: Any) -> None:
    """Say that this cannot be done.

    >>> try:
    ...     optimization_command(None)
    ... except RuntimeError as error:
    ...     print(str(error).splitlines()[0])
    optimize: nnrs does not rewrite files: NNabla's command makes Affine of what its importers write for it
    """
    why = "nnrs does not rewrite files: NNabla's command makes Affine of what its importers write for it"
    raise UnsupportedError(message("optimize", None, why, hint="what can be fused is fused when a network runs"))


def add_optimize_command(subparsers: Any) -> None:
    """Add the command `optimize`."""
    parser = add_parser(subparsers, "optimize", "not supported: rewrite an imported model")
    parser.add_argument("input_file", nargs=1)
    parser.add_argument("output_file", nargs=1)
    parser.set_defaults(func=optimization_command)
