"""`nnrs plot_series` and `plot_timer`: curves of what monitors wrote, on the screen or as a picture.

>>> import pathlib, tempfile
>>> from nnrs.utils.cli.cli import main
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = pathlib.Path(folder, "loss.series.txt").write_text("9 0.5\\n19 0.25\\n")
...     main(["plot_series", "-o", f"{folder}/loss.svg", "-t", "Training", f"{folder}/loss.series.txt"])
...     b"svg" in pathlib.Path(folder, "loss.svg").read_bytes()
0
True
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..._errors import FormatError, MissingPackageError, message
from ..._files import atomic_path
from ._arguments import add_parser, finite

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def plot_series_command(args: Any) -> None:
    """Plot files of `MonitorSeries`."""
    from ...monitor import plot_series

    plot_any_command(args, plot_series)


def plot_timer_command(args: Any) -> None:
    """Plot files of `MonitorTimeElapsed`."""
    from ...monitor import plot_time_elapsed

    if not args.ylabel:
        unit = _UNITS[args.time_unit]
        args.ylabel = f"Total elapsed time [{unit}]" if args.elapsed else f"Elapsed time [{unit}/iter]"
    plot_any_command(args, plot_time_elapsed, {"elapsed": args.elapsed, "unit": args.time_unit})


def plot_any_command(args: Any, plot_func: Callable[..., None], plot_func_kwargs: dict[str, Any] | None = None) -> None:
    """Plot all input files into one picture.

    Args:
        args: What the command line says.
        plot_func: Plots one file in matplotlib's current axes.
        plot_func_kwargs: Arguments for it.

    Raises:
        OSError: If a file cannot be read or written.
        ValueError: If a file is empty or of another kind.
        ImportError: If matplotlib is not installed.
    """
    plt = _pyplot(args.command, to_file=bool(args.outfile))
    figure = plt.figure()
    labels = args.label or []
    for i, file in enumerate(args.inputs):
        label = labels[i] if i < len(labels) else file
        plot_func(file, plot_kwargs={"label": label}, **(plot_func_kwargs or {}))
        if not len(plt.gca().lines[-1].get_xdata()):  # a script may plot it, and has nothing then
            raise FormatError(message(args.command, None, f"{file!r} is empty: its monitor has written nothing yet"))
    plt.legend(loc="best")
    plt.title(args.title)
    plt.xlabel(args.xlabel)
    plt.ylabel(args.ylabel)
    plt.xlim(left=args.xlim_min, right=args.xlim_max)
    plt.ylim(bottom=args.ylim_min, top=args.ylim_max)
    if args.outfile:
        _save(figure, args.outfile)
    else:
        plt.show()
    plt.close(figure)


def _pyplot(command: str, to_file: bool) -> Any:
    try:
        import matplotlib

        if to_file:
            matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        text = message(command, None, "this needs the package matplotlib", hint="pip install 'nnrs[viz]'")
        raise MissingPackageError(text) from error
    return pyplot


def _save(figure: Any, path: str) -> None:
    """Write the picture, of the kind that the name says; by default a png."""
    import os

    from ..._errors import ArgumentError, FileError, reason

    kind = os.path.splitext(path)[1][1:].lower() or "png"
    known = sorted(figure.canvas.get_supported_filetypes())
    if kind not in known:
        raise ArgumentError(message("plot", "outfile", f"a name that ends in one of {', '.join(known)}", repr(path)))
    try:
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind)
    except OSError as error:
        raise FileError(message("plot", "outfile", f"cannot write {path!r}: {reason(error, path)}")) from error


def add_plot_any_command(
    subparsers: Any,
    subcommand: str,
    help: str,
    description: str,
    plot_command: Callable[[Any], None],
    ylabel_default: str = "",
) -> argparse.ArgumentParser:
    """Add a command that plots files, with the options that all of them have."""
    parser = add_parser(subparsers, subcommand, help, examples=description)
    parser.add_argument("inputs", nargs="+", metavar="FILE", help="file of a monitor")
    parser.add_argument("-l", "--label", action="append", help="name of a curve; once for each file, in their order")
    parser.add_argument("-o", "--outfile", default="", help="picture to write; without it a window opens")
    parser.add_argument("-x", "--xlabel", default="", help="text below the x axis")
    parser.add_argument("-y", "--ylabel", default=ylabel_default, help="text beside the y axis")
    parser.add_argument("-t", "--title", default="", help="text above the picture")
    for short, name, text in (
        ("-T", "--ylim-max", "top of the y axis"),
        ("-B", "--ylim-min", "bottom of the y axis"),
        ("-R", "--xlim-max", "right end of the x axis"),
        ("-L", "--xlim-min", "left end of the x axis"),
    ):
        parser.add_argument(short, name, type=finite, metavar="NUMBER", help=text)
    parser.set_defaults(func=plot_command)
    return parser


def add_plot_series_command(subparsers: Any) -> None:
    """Add the command `plot_series`."""
    example = "example:\n  nnrs plot_series -x epochs -l small -l large -o loss.png a/loss.series.txt b/loss.series.txt"
    add_plot_any_command(subparsers, "plot_series", "plot .series.txt files", example, plot_series_command)


def add_plot_timer_command(subparsers: Any) -> None:
    """Add the command `plot_timer`."""
    example = "example:\n  nnrs plot_timer -e -u m -o time.png results/epoch-time.timer.txt"
    parser = add_plot_any_command(subparsers, "plot_timer", "plot .timer.txt files", example, plot_timer_command)
    parser.add_argument("-e", "--elapsed", action="store_true", help="time since the start, not that of each interval")
    parser.add_argument("-u", "--time-unit", choices=list(_UNITS), default="s", help="unit of time (default: s)")
