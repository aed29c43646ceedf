"""`nnrs function_info`: the functions of nnrs, or those that files use, by NNabla's names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..._errors import ArgumentError, FileError, UnsupportedError, message, reason
from ..._files import atomic_path
from ..._missing import nearest
from ._arguments import add_parser


def function_names() -> dict[str, dict[str, Any]]:
    """What is known of each function, by the name of its class, also of NNabla's that are several in the engine.

    >>> function_names()["ReLU"]["name"], function_names()["Einsum"]["name"]
    ('relu', 'einsum')
    """
    from ..._core import registry
    from ...function import _GRAPHS

    graphs = {name: _of_a_graph(name, function, arguments.split()) for name, (function, arguments) in _GRAPHS.items()}
    return {f["class_name"]: f for f in registry()} | graphs


def _of_a_graph(class_name: str, function: str, arguments: list[str]) -> dict[str, Any]:
    """What the registry would say of a function that is a graph of others: its signature and docstring say it."""
    from ... import functions

    called = getattr(functions, function)
    parts = inspect.signature(called).parameters
    said = inspect.cleandoc(called.__doc__ or "")
    texts = dict(re.findall(r"^    \*?(\w+): (.*(?:\n {8}.*)*)", said.partition("\nArgs:\n")[2], re.MULTILINE))
    texts = {name: " ".join(text.split()) for name, text in texts.items()}
    given = parts.keys() - {*arguments, "output_stat", "n_outputs", "outputs"}
    return {
        "class_name": class_name,
        "name": function,
        "doc": said.partition("\n\n")[0],
        "inputs": [(name, "", texts[name]) for name in parts if name in given],
        "args": [(name, "", "", _default(parts[name]), texts[name]) for name in arguments],
    }


def _default(part: inspect.Parameter) -> str | None:
    return None if part.default is part.empty else repr(part.default)


def function_info_command(args: Any) -> None:
    """Print names of functions, or what is known of one."""
    if args.all_support:
        why = "nnrs writes no NNB and reads no ONNX files, so it has no lists of what they can hold"
        raise UnsupportedError(message("function_info", "all_support", why, hint="leave -f out for nnrs's functions"))
    if args.api:
        raise UnsupportedError(
            message("function_info", "api", "functions of nnrs have no API levels: those are of NNB")
        )
    if args.query is None and len(args.files) == 1 and not Path(args.files[0]).suffix:
        args.query = args.files[0]  # what has no ending is no file of networks
    if args.query:
        print(describe_function(args.query), end="")
        return
    names = _chosen(args)
    text = "".join(f"{name}\n" for name in names)
    if args.output is None:
        print(text, end="")
        return
    if args.output.lower().endswith(".yaml"):
        text = "".join(f"{name}: [ALL]\n" for name in names)
    with atomic_path(args.output) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def _chosen(args: Any) -> list[str]:
    chosen = _used(args.files) if args.files else set(function_names())
    if args.config:
        chosen &= _listed(args.config)
    return sorted(chosen - set(args.exclude))


def _used(files: Iterable[str]) -> set[str]:
    """The functions of the networks in files. Loops of networks are no functions."""
    from ._networks import read_networks

    found = {f.type for network in read_networks("function_info", list(files)).network for f in network.function}
    return found - {"RepeatStart", "RepeatEnd", "RecurrentInput", "RecurrentOutput", "Delay"}


def _listed(path: str) -> set[str]:
    """The names in a file: one a line, or keys of YAML."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise FileError(message("function_info", "config", f"cannot read {path!r}: {reason(error, path)}")) from error
    return {found[1] for line in lines if (found := re.match(r"([A-Za-z]\w*)\s*(:|$)", line))}


def describe_function(name: str) -> str:
    """What a function computes, its inputs and arguments.

    Args:
        name: Its class ('ReLU') or Python name ('relu').

    Raises:
        ValueError: If there is no such function.

    >>> print(describe_function("ReLU"))  # doctest: +ELLIPSIS
    ReLU: nnrs.functions.relu(x, inplace=False)
    ...
    """
    known = function_names()
    by_name = {f["name"]: f for f in known.values()}
    f = known.get(name) or by_name.get(name)
    if f is None:
        near = nearest(name, [*known, *by_name])
        hint = f"is it {' or '.join(near)}?" if near else None
        raise ArgumentError(message("function_info", "query", "the name of a function", repr(name), hint=hint))
    inputs = [(n, text) for n, _, text in f["inputs"]]
    options = [(f"{n}={default}" if default is not None else n, text) for n, _, _, default, text in f["args"]]
    call = ", ".join(n for n, _ in inputs + options)
    doc = " ".join(f["doc"].split())
    lines = [f"{f['class_name']}: nnrs.functions.{f['name']}({call})", doc, ""]
    return "\n".join(lines + [f"  {n}: {text}" for n, text in inputs + options]) + "\n"


def add_function_info_command(subparsers: Any) -> None:
    """Add the command `function_info`."""
    examples = """examples:
  nnrs function_info                 all functions
  nnrs function_info network.nnp     those that its networks use
  nnrs function_info -q Convolution  what it computes, its inputs and arguments"""
    parser = add_parser(subparsers, "function_info", "list functions", examples=examples)
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help=".nnp, .nntxt or .protobuf files; or the name of one function"
    )
    parser.add_argument("-o", "--output", help="file to write the list to; as YAML, if its name ends so")
    parser.add_argument("-f", "--all_support", help="NNB or ONNX: not supported")
    parser.add_argument("-c", "--config", help="file with names; others are left out")
    parser.add_argument("-x", "--exclude", action="append", default=[], help="function to leave out; may be repeated")
    parser.add_argument("-t", "--target", action="store_true", help="ignored: it is for ONNX")
    parser.add_argument("-q", "--query", metavar="NAME", help="describe one function")
    parser.add_argument("--nnp-no-expand-network", action="store_true", help="ignored: the functions are the same")
    parser.add_argument("--api", type=int, default=0, help="API levels: not supported")
    parser.set_defaults(func=function_info_command)
