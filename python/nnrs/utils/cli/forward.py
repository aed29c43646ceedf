"""`nnrs forward` and `infer`: what a file's executors make of a data set, or of binary files.

>>> import tempfile, numpy as np, nnrs as nn, nnrs.functions as F
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.save import save
>>> x = nn.Variable((1, 3))
>>> network = {"name": "net", "batch_size": 1, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
>>> executor = {"name": "runtime", "network": "net", "data": ["x"], "output": ["y"]}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/net.nnp", {"networks": [network], "executors": [executor]})
...     np.float32([-1, 0, 2]).tofile(f"{folder}/x.bin")
...     main(["infer", "-c", f"{folder}/net.nnp", f"{folder}/x.bin"])
0.0 0.0 2.0
0
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._errors import ArgumentError, FileError, FormatError, ShapeError, message
from ..._files import atomic_path
from ..._monitor_files import make_folder
from ...logger import logger
from ._arguments import add_parser
from ._experiment import feed, open_experiment
from ._progress import states_as_bar
from .utility import compute_full_path, is_float

_IMAGES = (".bmp", ".jpeg", ".jpg", ".png", ".gif", ".tif")


@dataclass
class ForwardResult:
    """The columns of results: their names, what they hold ('col': numbers; else files of that ending), how many."""

    names: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    dims: list[int] = field(default_factory=list)

    def add(self, kind: str, name: str, shape: tuple[int, ...]) -> None:
        """Add what one sample of this shape becomes."""
        if not kind:
            kind = {2: ".csv", 3: ".png"}.get(len(shape), "col")
        files = shape[0] if kind == ".png" and shape[0] not in (1, 3) else 1
        self.names.append(name)
        self.types.append(kind)
        self.dims.append(int(np.prod(shape)) if kind == "col" else files)

    def header(self, is_deviation: bool) -> list[str]:
        """The names of the columns."""
        found: list[str] = []
        for name, dim in zip(self.names, self.dims, strict=True):
            one = "Uncertainty(Std)" if is_deviation else name
            found += [one] if dim == 1 else [f"{name}__{i}" for i in range(dim)]
        return found


def run_executor(e: Any, data: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of an executor for a batch: of the last evaluation, or mean or deviation of all.

    Raises:
        ValueError: If the data lacks a variable, or one has another number of values.
    """
    for name in e.dataset_assign.values():
        if name not in data:
            known = ", ".join(map(repr, data)) or "none"
            raise ArgumentError(message("forward", "dataset", f"a variable {name!r}", f"variables {known}"))
    fitting = {name: _reshaped(data[name], v.variable_instance.shape, name) for v, name in e.dataset_assign.items()}
    feed("forward", e, fitting)
    outputs = [v.variable_instance for v in e.output_assign]
    values = [np.zeros(v.shape, np.float32) for v in outputs]
    squares = [np.zeros(v.shape, np.float32) for v in outputs]
    for _ in range(e.num_evaluations):
        e.forward_target.forward(clear_buffer=True)
        if e.need_back_propagation:
            e.backward_target.backward(clear_buffer=True)
        for i, v in enumerate(outputs):
            found = v.d.copy()
            values[i] = found if e.repeat_evaluation_type == "last" else values[i] + found
            squares[i] = squares[i] + found**2
    if e.repeat_evaluation_type == "last":
        return values
    n = e.num_evaluations
    if e.repeat_evaluation_type == "std":
        return [np.sqrt(np.maximum(q / n - (s / n) ** 2, 0)) for q, s in zip(squares, values, strict=True)]
    return [s / n for s in values]


def _reshaped(x: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    try:
        return np.reshape(x, shape)
    except ValueError:
        raise ShapeError(message("forward", "dataset", f"values for shape {shape} of {name!r}", x.shape)) from None


def forward_batch(
    executors: Sequence[Any], data: dict[str, np.ndarray], index: int, folder: str | None, below: str
) -> tuple[ForwardResult, list[list[str]]]:
    """What all executors make of a batch.

    Args:
        executors: The executors.
        data: Arrays by variable.
        index: Number of the first sample, which names its files.
        folder: Where images and tables go; None: all values are numbers.
        below: Folder in that one, which the results name.

    Returns:
        The columns, and for each sample its values as text.
    """
    result = ForwardResult()
    rows: list[list[str]] = []
    for e in executors:
        for values, (kind, name) in zip(run_executor(e, data), e.output_assign.values(), strict=True):
            column = len(result.names)
            for i, value in enumerate(values):
                if i == 0:
                    result.add(kind if folder is not None else "col", name, value.shape)
                if i == len(rows):
                    rows.append([])
                rows[i] += _texts(value, result, column, index + i, folder, below)
    return result, rows


def _texts(
    value: np.ndarray, result: ForwardResult, column: int, index: int, folder: str | None, below: str
) -> list[str]:
    kind, dim = result.types[column], result.dims[column]
    if kind == "col" or folder is None:
        return [str(x) for x in np.ravel(value)]
    found = []
    for i in range(dim):
        name = os.path.join(f"{column}_{index // 1000:04d}", (f"{i}_" if dim > 1 else "") + f"{index}{kind}")
        _write_file(os.path.join(folder, below, name), kind, value[i] if dim > 1 else value)
        found.append(os.path.join(".", below, name))
    return found


def _write_file(path: str, kind: str, value: np.ndarray) -> None:
    """Write one value as an image or a table."""
    make_folder("forward", os.path.dirname(path))
    if kind in _IMAGES:
        from ..image_utils import imsave

        x = value.reshape(value.shape[-3:]) if value.ndim > 3 else value
        x = x[0] if x.ndim == 3 and x.shape[0] == 1 else x
        x = x.transpose(1, 2, 0) if x.ndim == 3 else x
        imsave(path, np.clip(np.nan_to_num(x) * 255.0, 0, 255).astype(np.uint8))
        return
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as f:
        table = value.reshape(-1, value.shape[-1]) if value.ndim else value.reshape(1, 1)
        csv.writer(f, lineterminator="\n").writerows([str(x) for x in row] for row in table)


def forward_command(args: Any) -> None:
    """Run a file's executors on a data set, and write the set with their results as more columns."""
    from .. import callback

    callback.update_status(args)
    x = _opened("forward", args)
    executors = _executors("forward", x)
    head, rows, opened = _dataset(args, x, executors)
    make_folder("forward", args.outdir)
    path = os.path.join(args.outdir, args.outfile)
    callback.update_status(("data.max", len(rows)))
    callback.update_status("processing", True)
    with states_as_bar(os.path.join(args.outdir, "progress.txt")), opened() as iterator, atomic_path(path) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="") as f:
            head = _forward_all(args, executors, iterator, head, rows, csv.writer(f, lineterminator="\n"))
    callback.process_evaluation_result(args.outdir, path)
    logger.log(99, "Forward Completed.")
    for name, value in (("csv_header", ",".join(head)), ("column_num", len(head)), ("data_num", len(rows))):
        callback.update_status((f"output_result.{name}", value))
    callback.update_status("finished")


def _forward_all(
    args: Any, executors: list[Any], iterator: Any, head: list[str], rows: list[list[str]], writer: Any
) -> list[str]:
    from .. import callback
    from ..progress import progress

    index = 0
    while index < iterator.size:
        data = dict(zip(iterator.variables, iterator.next(), strict=False))
        result, found = forward_batch(executors, data, index, args.outdir, args.result_outdir)
        if index == 0:
            head = head + result.header(executors[-1].repeat_evaluation_type == "std")
            writer.writerow(head)
        writer.writerows(row + more for row, more in zip(rows[index:], found, strict=False))
        index += max(len(found), 1)
        done = min(index, len(rows))
        callback.update_status(("data.current", done))
        callback.update_forward_time()
        callback.update_status()
        progress("Forward", done / max(len(rows), 1))
    return head


def _opened(command: str, args: Any) -> Any:
    size = args.batch_size if args.batch_size > 0 else None
    return open_experiment(command, args.config, args.param, size, with_data=False)


def _executors(command: str, x: Any) -> list[Any]:
    if not x.executors:
        raise ArgumentError(message(command, "config", "a file with an executor", "none"))
    return list(x.executors.values())


def _dataset(args: Any, x: Any, executors: list[Any]) -> tuple[list[str], list[list[str]], Callable[[], Any]]:
    """The names of columns, the rows, and what opens the data."""
    from ..data_iterator import data_iterator_cache, data_iterator_csv_dataset

    if not args.dataset:
        raise ArgumentError(message("forward", "dataset", "a .csv file or .cache folder (-d)", "none"))
    same = [d for d in x.datasets.values() if args.dataset in (d.uri, d.cache_dir)]
    normalize = (same[-1].normalize if same else True) and not any(e.no_image_normalization for e in executors)
    size = args.batch_size if args.batch_size > 0 else executors[0].network.batch_size
    kind = os.path.splitext(args.dataset.rstrip("/"))[1].lower()
    if kind == ".csv":
        head, rows = _csv_rows(args.dataset, _root(args))
        return (
            head,
            rows,
            lambda: data_iterator_csv_dataset(
                args.dataset, size, normalize=normalize, with_memory_cache=False, with_file_cache=False
            ),
        )
    if kind == ".cache":
        head, rows = _cache_rows(args.dataset)
        return head, rows, lambda: data_iterator_cache(args.dataset, size, normalize=normalize)
    raise ArgumentError(message("forward", "dataset", "a .csv file or .cache folder", repr(args.dataset)))


def _root(args: Any) -> str:
    return os.path.abspath(os.path.dirname(args.dataset)) if args.replace_path else "."


def _csv_rows(path: str, root: str) -> tuple[list[str], list[list[str]]]:
    """The names of columns, and the rows, with paths of files as they are from here."""
    from ..data_source_loader import FileReader

    with FileReader(path).open(textmode=True) as f:
        try:
            rows = [row for row in csv.reader(f) if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(message("forward", "dataset", f"{path!r} is no csv file: {error}")) from error
    if not rows:
        raise FormatError(
            message("forward", "dataset", "a first row with names of variables", f"{path!r}, which is empty")
        )
    head, *rows = rows

    def full(i: int, item: str) -> str:
        is_comment = i < len(head) and head[i].startswith("#")
        return item if is_comment or is_float(item) else compute_full_path(root, item)

    return head, [[full(i, item) for i, item in enumerate(row)] for row in rows]


def _cache_rows(folder: str) -> tuple[list[str], list[list[str]]]:
    """The rows of the csv file that a cache was made of, in the cache's order."""
    head, rows = _csv_rows(os.path.join(folder, "original.csv"), ".")
    try:
        with open(os.path.join(folder, "order.csv"), encoding="utf-8", newline="") as f:
            pairs = [(int(original), int(shuffled)) for original, shuffled in csv.reader(f)]
        places = dict(pairs)
        return head, [rows[places[i]] for i in range(len(rows))]
    except FileNotFoundError:
        return head, rows
    except OSError as error:
        raise FileError(
            message("forward", "dataset", f"cannot read order.csv of {folder!r}: {error.strerror}")
        ) from error
    except (ValueError, IndexError, KeyError) as error:
        raise FormatError(message("forward", "dataset", f"order.csv of {folder!r} is no order of its rows")) from error


def infer(info: Any, input_data: Sequence[np.ndarray]) -> tuple[ForwardResult, list[list[str]]]:
    """What the executors of a file make of arrays.

    Args:
        info: What `load` gives.
        input_data: An array for each variable that the executors read, in their order.
    """
    executors = _executors("infer", info)
    names = list(dict.fromkeys(name for e in executors for name in e.dataset_assign.values()))
    if len(names) != len(input_data):
        text = f"{len(names)} inputs, for {', '.join(names)}"
        raise ArgumentError(message("infer", "inputs", text, len(input_data)))
    data = dict(zip(names, input_data, strict=True))
    for v, name in (pair for e in executors for pair in e.dataset_assign.items()):
        shape, size = v.variable_instance.shape, np.size(data[name])
        if size != v.variable_instance.size:
            raise ShapeError(
                message("infer", "inputs", f"{math.prod(shape)} numbers for shape {shape} of {name!r}", size)
            )
    return forward_batch(executors, data, 0, None, "")


def infer_command(args: Any) -> None:
    """Run a file's executors on arrays in binary files, and write the results of each sample as such."""
    x = _opened("infer", args)
    _, rows = infer(x, [_binary(path, args.data_type) for path in args.inputs])
    for i, row in enumerate(rows):
        values = np.array([float(text) for text in row], np.float32)
        if args.output is None:
            print(" ".join(row))
            continue
        with atomic_path(f"{args.output}_{i}.bin") as temporary:
            values.tofile(temporary)


def _binary(path: str, kind: str) -> np.ndarray:
    """The numbers in a file. A name with another type in it says so, as in NNabla."""
    if kind == "float32":
        name = os.path.basename(path)
        kind = next((other for other in ("int32", "uint8") if other in name), kind)
    try:
        size = os.path.getsize(path)
        values = np.fromfile(path, kind)
    except OSError as error:
        raise FileError(message("infer", "inputs", f"cannot read {path!r}: {error.strerror}")) from error
    if size != values.nbytes:
        raise FormatError(message("infer", "inputs", f"{path!r} has {size} bytes, which is no whole number of {kind}"))
    return values


def _add_files(parser: Any) -> None:
    parser.add_argument("-c", "--config", required=True, help=".nnp or .nntxt file with an executor")
    parser.add_argument("-p", "--param", help="file with parameters, where the first one has none")


def add_infer_command(subparsers: Any) -> None:
    """Add the command `infer`."""
    example = "example:\n  nnrs infer -c network.nnp -o result x.bin    writes result_0.bin"
    parser = add_parser(subparsers, "infer", "run a network on arrays in binary files", examples=example)
    _add_files(parser)
    parser.add_argument("-o", "--output", help="beginning of the names of results; without it they are printed")
    kinds = "type of the numbers (default: float32; int32 or uint8 where the file's name has that)"
    parser.add_argument("-t", "--data_type", choices=("uint8", "int32", "float32"), default="float32", help=kinds)
    parser.add_argument("-b", "--batch_size", type=int, default=1, help="samples (default: 1); -1: as the file says")
    parser.add_argument("inputs", metavar="FILE", nargs="+", help="numbers of an input; one file for each input")
    parser.set_defaults(func=infer_command)


def add_forward_command(subparsers: Any) -> None:
    """Add the command `forward`."""
    example = "example:\n  nnrs forward -c results/results.nnp -d test.csv -o evaluation"
    parser = add_parser(subparsers, "forward", "run a network on a data set", examples=example)
    _add_files(parser)
    parser.add_argument("-d", "--dataset", help=".csv file or .cache folder")
    parser.add_argument("-o", "--outdir", required=True, help="folder for the results")
    outfile = "name of the csv file with the results (default: output_result.csv)"
    parser.add_argument("-f", "--outfile", default="output_result.csv", help=outfile)
    parser.add_argument("--replace_path", action="store_true", help="write paths of the data's files as absolute ones")
    parser.add_argument("--result_outdir", default="", help="folder in outdir for results that are images or tables")
    parser.add_argument(
        "-b", "--batch_size", type=int, default=-1, help="samples of a batch (default: as the file says)"
    )
    parser.set_defaults(func=forward_command)
