"""The command line's entrance: finds the command, runs it, turns what went wrong into a line on stderr and a status.

Statuses: 0 done, 1 failed, 2 wrong arguments, 130 stopped by Ctrl-C.

>>> main(["version"])  # doctest: +ELLIPSIS
Version:...
0
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

from ..._errors import Error, UnsupportedError, message
from ..._version import __version__
from ._arguments import add_parser

# What adds each command, in the order of the help: module and function.
_COMMANDS = """
run.add_run_command doctor.add_doctor_command cli.add_version_command train.add_train_command
forward.add_forward_command forward.add_infer_command profile.add_profile_command
compare_with_cpu.add_compare_with_cpu_command conv_dataset.add_conv_dataset_command
compare_with_cpu.add_compare_params_command conv_dataset.add_create_cache_command
create_image_classification_dataset.add_create_image_classification_dataset_command
create_object_detection_dataset.add_create_object_detection_dataset_command uploader.add_upload_command
uploader.add_create_tar_command convert.add_convert_command optimize_model.add_optimize_command
encode_decode_param.add_encode_param_command encode_decode_param.add_decode_param_command
func_info.add_function_info_command plot.add_plot_series_command plot.add_plot_timer_command
draw_graph.add_draw_graph_command
""".split()
_STOPPED = 130
# Functions behind the commands, whose names tell a user nothing.
_INNER = r"FileReader|NnpLoader|SimpleGraph\.save|load|load_parameters|plot_series|plot_time_elapsed"


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands; `parse_args(..).func(args)` runs one."""
    parser = argparse.ArgumentParser(
        prog="nnrs",
        description="Trains and runs networks, and works on their data, files and logs.",
        epilog="`nnrs COMMAND --help` explains a command. Names and options are those of NNabla's nnabla_cli.",
    )
    parser.add_argument(
        "-m",
        "--mpi",
        action="store_true",
        help="be one of several processes that mpirun or torchrun started, as `train` is",
    )
    parser.add_argument("--version", action="version", version=f"nnrs {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where in nnrs an error was found")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", dest="command")
    for name in _COMMANDS:
        module, add = name.split(".")
        getattr(importlib.import_module(f".{module}", __package__), add)(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Its name and arguments; by default those of the program.

    Returns:
        The status to exit with. Only `--help`, wrong arguments, and scripts under `run` raise SystemExit.
    """
    try:
        parser = make_parser()
        args = parser.parse_args(argv)
    except KeyboardInterrupt:  # before there is a command
        return _STOPPED
    if args.command is None:
        parser.print_help(sys.stderr)
        return 2
    is_program = argv is None and not args.mpi and args.command != "run"
    if is_program and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # of a thread that is not the main one
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves no half of a file either
    try:
        return _run(args)
    except KeyboardInterrupt:
        return _said(args, "stopped", _STOPPED)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Error, OSError, MemoryError) as error:
        if args.traceback:
            raise
        return _said(args, str(error) or type(error).__name__, getattr(error, "exit_status", 1))


def version_command(args: Any) -> None:
    """Print the version."""
    from .. import callback

    version = callback.get_callback_version()
    print(f"Version:{__version__}" + (f", Callback:{version}" if version is not None else ""))


def add_version_command(subparsers: Any) -> None:
    """Add the command `version`."""
    add_parser(subparsers, "version", "print the version").set_defaults(func=version_command)


def _run(args: Any) -> int:
    from .. import callback

    other = callback.alternative_cli(args)
    if other is not None:
        return 0 if other is True else int(other)
    if args.mpi:
        _join(args)
    status = 0 if args.func(args) in (None, True) else 1
    sys.stdout.flush()
    return status


def _join(args: Any) -> None:
    """Refuse to be one of several processes, but for `train`: the other commands do not share their work."""
    from ..._communication.launch import launched

    started = launched()
    if started.size > 1 and args.command != "train":
        hint = "`nnrs train` shares its work, and so can a script with nnrs.communicators"
        raise UnsupportedError(message(args.command, "mpi", "one process", f"{started.size}", hint))


def _said(args: Any, text: str, status: int) -> int:
    text = re.sub(rf"^({args.command}|{_INNER}): ", "", text)
    from ..communicator_util import current_communicator

    comm = current_communicator()
    where = "" if comm is None else f" (rank {comm.rank})"
    print(f"nnrs {args.command}{where}: {text}", file=sys.stderr)
    if comm is not None:
        comm.abort()  # the others would wait
    return status


if __name__ == "__main__":
    sys.exit(main())
