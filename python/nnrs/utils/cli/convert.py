"""`nnrs dump`, `convert` and `nnb_template`: what is in files with networks; one kind of them into another.

>>> import tempfile, nnrs as nn, nnrs.functions as F
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.save import save
>>> x = nn.Variable((8, 3))
>>> network = {"name": "net", "batch_size": 8, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/net.nnp", {"networks": [network]})
...     main(["convert", f"{folder}/net.nnp", f"{folder}/net.nntxt"])
...     main(["dump", "-F", f"{folder}/net.nntxt"])
0
  Network: net
  Network:   Function[  0  ]: Type: ReLU                 Name: @net/ReLU
0
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..._errors import ArgumentError, UnsupportedError, message
from ._arguments import add_parser, read_as
from ._networks import expanded, read_networks

_OURS = (".nnp", ".nntxt", ".prototxt", ".protobuf", ".h5")
_OTHERS = {
    ".onnx": "ONNX",
    ".pb": "TF_PB",
    ".ckpt": "TF_CKPT_V1",
    ".meta": "TF_CKPT_V2",
    ".tflite": "TFLITE",
    ".nnb": "NNB",
}
_PORTS = {
    "optimizer": (("In", "Data", "data"), ("In", "Generator", "generator"), ("Out", "Loss", "loss")),
    "monitor": (("In", "Data", "data"), ("In", "Generator", "generator"), ("Out", "Monitor", "monitor")),
    "executor": (
        ("In", "Data", "data"),
        ("In", "Generator", "generator"),
        ("Out", "Loss", "loss"),
        ("Out", "Output", "output"),
    ),
}


def dump_command(args: Any) -> None:
    """Print what optimizers, monitors and executors run, and their networks."""
    _check_import(args)
    whole = read_networks(args.command, args.files)
    nets = {n.name: n if args.nnp_no_expand_network else expanded(args.command, n) for n in whole.network}
    if args.dump_variable_name is not None:
        print("\n".join(_variable(nets, args.dump_variable_name)))
        return
    for kind in _PORTS:
        for i, user in enumerate(_users(args, whole, kind)):
            prefix = f"  {kind.capitalize():9}[{i}]: "
            print(prefix + user.name)
            for line in _ports(kind, user, _shapes(_network(args, nets, user.network_name))):
                print(prefix + line)
            for line in _functions(args, _network(args, nets, user.network_name)):
                print(prefix + line)
    used = {user.network_name for kind in _PORTS for user in getattr(whole, kind)}
    for name in nets.keys() - used if not args.dump_verbose else nets:
        print(f"  Network: {name}")
        for line in _functions(args, nets[name]):
            print(f"  Network: {line}")


def _users(args: Any, whole: Any, kind: str) -> list[Any]:
    found = list(getattr(whole, kind))
    if kind == "executor" and args.nnp_import_executor_index is not None:
        return [_executor(args, whole)]
    return found if args.nnp_import_executor_index is None else []


def _executor(args: Any, whole: Any) -> Any:
    index = args.nnp_import_executor_index
    if not 0 <= index < len(whole.executor):
        expected = f"the number of one of {len(whole.executor)} executors, from 0 on"
        raise ArgumentError(message(args.command, "nnp-import-executor-index", expected, index))
    return whole.executor[index]


def _network(args: Any, nets: dict[str, Any], name: str) -> Any:
    if name not in nets:
        raise ArgumentError(message(args.command, None, f"the file speaks of a network {name!r} that it does not have"))
    return nets[name]


def _shapes(network: Any) -> dict[str, list[int]]:
    return {v.name: list(v.shape.dim) for v in network.variable}


def _ports(kind: str, user: Any, shapes: dict[str, list[int]]) -> Iterator[str]:
    for way, title, field in _PORTS[kind]:
        for i, port in enumerate(getattr(user, f"{field}_variable")):
            name = port.variable_name
            yield f" {f'({way})':5}{title:9} variable[{i}]: Name:{name:30} Shape:{shapes.get(name, ' - ')}"


def _functions(args: Any, network: Any) -> Iterator[str]:
    shapes = _shapes(network)
    most = args.dump_limit if args.dump_limit >= 0 else None
    if args.dump_functions:
        for i, f in enumerate(network.function[:most]):
            yield f"  Function[{i:^5}]: Type: {f.type:20} Name: {f.name}"
            for way, names in (("Input", f.input), ("Output", f.output)) if args.dump_variables else ():
                for j, name in enumerate(names):
                    yield f"  Function[{i:^5}]: {way:>7}{j}: Name: {name:20} Shape: {shapes.get(name, ' - ')}"
    elif args.dump_variables:
        for i, v in enumerate(network.variable[:most]):
            yield f"  Variable[{i:^5}]: Type: {v.type:10} Name: {v.name:30} Shape: {list(v.shape.dim)}"


def _variable(nets: dict[str, Any], name: str) -> list[str]:
    lines = [
        f"Variable Name: {name:20} Shape: {shapes[name]} in {net.name}"
        for net in nets.values()
        if name in (shapes := _shapes(net))
    ]
    if not lines:
        raise ArgumentError(message("dump", "dump-variable-name", "the name of a variable in the file", repr(name)))
    return lines


def convert_command(args: Any) -> None:
    """Write files with networks as one file of another kind."""
    from ..._core import write_nnabla
    from ..._files import write_bytes

    *files, output = args.files
    if not files:
        raise ArgumentError(message("convert", None, "files to convert, and the file to write", repr(output)))
    args.files = files
    _check_import(args)
    kind = _check_export(args, output)
    whole, params = _read_all(args)
    if kind != ".nnp" or args.nnp_parameter_nntxt:
        whole.MergeFromString(write_nnabla({}, list(params), list(params.values()), ".protobuf", ".h5", []))
        params = {}
    data = write_nnabla(whole._dict(), list(params), list(params.values()), kind, _parameter_kind(args), [])
    write_bytes("convert", output, kind, data)


def _read_all(args: Any) -> tuple[Any, dict[str, Any]]:
    """What the files say, as the options will have it, and their parameters, in the message or beside it."""
    from ...parameter import get_parameters, load_parameters, parameter_scope

    whole = read_networks("convert", args.files)
    if not args.nnp_no_expand_network:
        whole.network[:] = [expanded("convert", network) for network in whole.network]
    if args.nnp_import_executor_index is not None:
        _keep_executor(whole, _executor(args, whole))
    if args.batch_size is not None and args.batch_size > 0:
        for network in whole.network:
            network.batch_size = args.batch_size
    with parameter_scope("", {}), read_as("convert", "files"):
        for file in args.files:
            load_parameters(file)
        params = {} if args.nnp_exclude_parameter else get_parameters(grad_only=False)
    return whole, params


def _keep_executor(whole: Any, executor: Any) -> None:
    """Leave out all but one executor and its network."""
    whole.executor[:] = [executor]
    whole.network[:] = [n for n in whole.network if n.name == executor.network_name]
    for field in ("optimizer", "monitor", "dataset", "training_config"):
        whole.ClearField(field)


def _parameter_kind(args: Any) -> str:
    return ".h5" if args.nnp_parameter_h5 else ".protobuf"


def _check_import(args: Any) -> None:
    for file in args.files:
        kind = os.path.splitext(file)[1].lower()
        other = _OTHERS.get(kind) or (args.import_format if args.import_format != "NNP" else None)
        other = "SAVED_MODEL" if os.path.isdir(file) else other
        if other is not None:
            raise UnsupportedError(message(args.command, None, f"nnrs does not read {other}: {file!r}", hint=_WHY))


def _check_export(args: Any, output: str) -> str:
    kind = os.path.splitext(output)[1].lower()
    other = _OTHERS.get(kind) or (args.export_format if args.export_format not in (None, "NNP") else None)
    if other is not None:
        raise UnsupportedError(message("convert", None, f"nnrs does not write {other}: {output!r}", hint=_WHY))
    if kind not in _OURS[:-1]:
        raise ArgumentError(message("convert", None, f"a name that ends in one of {', '.join(_OURS[:-1])}", output))
    if args.split is not None:
        raise UnsupportedError(message("convert", "split", "nnrs does not split networks"))
    return kind


_WHY = (
    "the files of NNabla are read and written; NNabla's converter (pip install nnabla_converter) makes others of them"
)


def nnb_template_command(args: Any) -> None:
    """Say that this cannot be done."""
    why = "nnrs writes no NNB files, so it makes no settings for them"
    raise UnsupportedError(message("nnb_template", None, why, hint="`nnrs dump -V` lists a network's variables"))


def _add_import(parser: Any) -> None:
    parser.add_argument("-I", "--import-format", default="NNP", help="kind of the files: NNP")
    executor = "only the executor of this number, and its network"
    parser.add_argument("-E", "--nnp-import-executor-index", type=int, metavar="N", help=executor)
    parser.add_argument("--nnp-exclude-preprocess", action="store_true", help="ignored")
    parser.add_argument("--nnp-no-expand-network", action="store_true", help="leave loops of networks as they are")


def add_convert_command(subparsers: Any) -> None:
    """Add the commands `dump`, `nnb_template` and `convert`."""
    _add_dump(subparsers)
    parser = add_parser(subparsers, "nnb_template", "not supported: make settings for an NNB file")
    parser.add_argument("files", nargs="*")
    _add_import(parser)
    parser.add_argument("-b", "--batch-size", type=int)
    parser.add_argument("-T", "--default-variable-type", nargs=1)
    parser.add_argument("--api", type=int)
    parser.set_defaults(func=nnb_template_command)
    _add_convert(subparsers)


def _add_dump(subparsers: Any) -> None:
    examples = "example:\n  nnrs dump -F -V network.nnp    all functions, their inputs and outputs"
    parser = add_parser(subparsers, "dump", "show what is in a file with networks", examples=examples)
    parser.add_argument("-v", "--dump-verbose", action="store_true", help="also list networks that something runs")
    parser.add_argument("-F", "--dump-functions", action="store_true", help="list functions")
    parser.add_argument(
        "-V", "--dump-variables", action="store_true", help="list variables; with -F those of functions"
    )
    parser.add_argument("--dump-limit", type=int, default=-1, metavar="N", help="functions or variables listed at most")
    parser.add_argument("-n", "--dump-variable-name", metavar="NAME", help="show one variable")
    parser.add_argument("files", metavar="FILE", nargs="+", help=".nnp, .nntxt or .protobuf files")
    _add_import(parser)
    parser.set_defaults(func=dump_command)


def _add_convert(subparsers: Any) -> None:
    examples = "example:\n  nnrs convert network.nnp network.nntxt"
    more = "NNabla's own kinds of files: .nnp, .nntxt, .protobuf. Others (ONNX, NNB, TensorFlow) are not supported."
    parser = add_parser(subparsers, "convert", "turn a file with networks into another kind", more, examples)
    parser.add_argument("files", metavar="FILE", nargs="+", help="files to convert, and at last the file to write")
    _add_import(parser)
    parser.add_argument("-O", "--export-format", help="kind of the file to write: NNP")
    parser.add_argument(
        "-f", "--force", action="store_true", help="nothing: a file that is there is written over, as by NNabla"
    )
    parser.add_argument("-b", "--batch-size", type=int, metavar="N", help="batch size of the networks")
    parser.add_argument("--nnp-parameter-h5", action="store_true", help=".nnp: parameters as .h5, not as .protobuf")
    parser.add_argument("--nnp-parameter-nntxt", action="store_true", help=".nnp: parameters within the .nntxt")
    parser.add_argument("--nnp-exclude-parameter", action="store_true", help="leave parameters out")
    for name in (
        "-S/--split",
        "-d/--define_version",
        "--outputs",
        "--inputs",
        "--dataset",
        "-c/--config",
        "--nnp-version",
    ):
        parser.add_argument(*name.split("/"), help="not supported")
    for name in ("-T/--default-variable-type", "-s/--settings"):
        parser.add_argument(*name.split("/"), nargs=1, help="ignored: for NNB")
    for name in ("--ir_version", "--api"):
        parser.add_argument(name, type=int, help="ignored: for ONNX and NNB")
    for name in ("--enable-optimize-pb", "--channel-last", "--quantization"):
        parser.add_argument(name, action="store_true", help="ignored: for TensorFlow")
    parser.set_defaults(func=convert_command)
