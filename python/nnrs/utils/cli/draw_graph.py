"""`nnrs draw_graph`: pictures of the networks in a file.

>>> import pathlib, tempfile, nnrs as nn, nnrs.functions as F
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.save import save
>>> x = nn.Variable((8, 3))
>>> network = {"name": "net", "batch_size": 8, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/net.nnp", {"networks": [network]})
...     main(["draw_graph", "-f", "svg", "-o", folder, f"{folder}/net.nnp"])  # doctest: +ELLIPSIS
...     pathlib.Path(folder, "net.svg").read_bytes()[:5]
/...net.svg
0
b'<svg '
"""

from __future__ import annotations

import os
from typing import Any

from ..._errors import ArgumentError, message
from ...logger import logger
from ._arguments import add_parser, read_as


def draw_graph_command(args: Any) -> None:
    """Draw networks of a file."""
    from ... import functions as F
    from ..._monitor_files import make_folder
    from ...experimental.viewers import SimpleGraph
    from ..nnp_graph import NnpLoader

    with read_as("draw_graph", "input"):
        loader = NnpLoader(args.input)
    names = loader.get_network_names()
    if not names:
        raise ArgumentError(message("draw_graph", "input", "a file with a network", repr(args.input)))
    wanted = args.network or names
    for name in wanted:
        if name not in names:
            known = ", ".join(map(repr, names)) or "none"
            raise ArgumentError(message("draw_graph", "network", f"one of {known}", repr(name)))
    make_folder("draw_graph", args.output_dir)
    for name in wanted:
        outputs = list(loader.get_network(name).outputs.values())
        if not outputs:
            logger.warning("network %r has no output: it is not drawn", name)
            continue
        leaf = outputs[0] if len(outputs) == 1 else F.sink(*outputs)
        path = os.path.join(args.output_dir, _file_name(name))
        print(SimpleGraph(format=args.format).save(leaf, path, format=args.format))


def _file_name(network: str) -> str:
    """The network's name as that of a file in the folder."""
    return network.replace(" ", "_").replace("/", "~").replace(os.sep, "~")


def add_draw_graph_command(subparsers: Any) -> None:
    """Add the command `draw_graph`."""
    example = "example:\n  nnrs draw_graph -f svg -o pictures network.nnp"
    parser = add_parser(subparsers, "draw_graph", "draw the networks of a .nnp or .nntxt file", examples=example)
    parser.add_argument("input", metavar="FILE", help=".nnp, .nntxt or .protobuf file")
    parser.add_argument("-o", "--output-dir", default="draw_out", help="folder of the pictures (default: draw_out)")
    parser.add_argument("-n", "--network", action="append", help="network to draw; may be repeated; without it all")
    kinds = "kind of picture (default: png); svg always works, others need graphviz's program dot"
    parser.add_argument("-f", "--format", default="png", help=kinds)
    parser.set_defaults(func=draw_graph_command)
