"""`nnrs run script.py`: a script that says `import nnabla`, on nnrs.

The script finds the interpreter as `python script.py` would have it: `sys.argv`, `sys.path[0]`, the module `__main__`,
`SystemExit`, tracebacks that begin in the script. Programs that it starts, with multiprocessing or by themselves, run
on nnrs, too: a folder on their PYTHONPATH has modules with NNabla's names.

>>> import subprocess
>>> code = "import nnabla as nn; print(nn.Variable((2, 3)).shape)"
>>> done = subprocess.run([sys.executable, "-m", "nnrs", "run", "-c", code], capture_output=True, text=True, check=True)
>>> done.stdout
'(2, 3)\\n'
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import pkgutil
import runpy
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..._errors import FileError, FolderError, FormatError, MissingFileError, reason
from ._arguments import REMAINDER, add_parser

_EXAMPLES = """examples:
  nnrs run train.py --epochs 3     as `python train.py --epochs 3`, with nnrs in NNabla's place
  nnrs run -m package.train        as `python -m package.train`
  nnrs run -c 'import nnabla'      as `python -c 'import nnabla'`
  nnrs run - < train.py            the script from the standard input"""


def run_command(args: Any) -> None:
    """Run a script or module with nnrs in NNabla's place."""
    from ... import compat

    compat.install()
    _lend_to_children()
    if args.module:
        sys.argv = [args.script, *args.args]
        _enter(os.getcwd())
        _check_module(args.script)
        name = compat.real_name(args.script) or args.script
        warnings.filterwarnings("ignore", "'nnrs.* found in sys.modules", RuntimeWarning)  # for this command
        _as_main(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))
    elif args.code or args.script == "-":
        _run_text(args)
    else:
        run_script(args.script, args.args)


def _run_text(args: Any) -> None:
    """Run code of the command line or the standard input."""
    source, name = (args.script, "<string>") if args.code else (sys.stdin.buffer.read(), "<stdin>")
    sys.argv = ["-c" if args.code else "-", *args.args]
    _enter("")
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins)
    sys.modules["__main__"] = main
    _as_main(lambda: exec(compile(source, name, "exec", dont_inherit=True), main.__dict__))


def run_script(path: str, args: list[str]) -> None:
    """Run a script as the program's main module.

    Args:
        path: The script, or a folder or zip file with a `__main__.py`.
        args: What it finds in `sys.argv[1:]`.

    Raises:
        OSError: If it cannot be read.
        SystemExit: If it ends with one, or with an error, which has then been printed.
    """
    sys.argv = [path, *args]
    whole = os.path.join(os.getcwd(), path)  # not abspath: behind a link ".." is another folder
    if path and pkgutil.get_importer(whole) is not None:
        _run_folder(path, whole)
        return
    source = _read(path)
    _enter(os.path.dirname(os.path.realpath(path)))
    main = _main_module(whole, importlib.machinery.SourceFileLoader("__main__", whole))
    _as_main(lambda: exec(compile(source, whole, "exec", dont_inherit=True), main.__dict__))


def _run_folder(path: str, whole: str) -> None:
    """Run the module `__main__` of a folder or zip file, of which `whole` is the absolute path."""
    spec = importlib.machinery.PathFinder.find_spec("__main__", [whole])
    if spec is None or spec.origin is None:
        what, kind = ("a folder", FolderError) if os.path.isdir(whole) else ("a zip file", FormatError)
        raise kind(f"{path}: expected a script, got {what} without a __main__.py")
    _enter(whole)
    loader: Any = spec.loader
    main = _main_module(spec.origin, loader)
    main.__dict__.update(__spec__=spec, __package__="", __cached__=spec.cached)
    _as_main(lambda: exec(loader.get_code("__main__"), main.__dict__))


def _as_main(run: Callable[[], object]) -> None:
    """Run the program; an error is printed as the interpreter would, and ends it."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException as error:
        _print(error)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _check_module(name: str) -> None:
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        raise MissingFileError(f"there is no module {name!r}")


class _MissingScriptError(MissingFileError):
    exit_status = 2  # Python's


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as f:
            source = f.read()
    except FileNotFoundError:
        raise _MissingScriptError(f"there is no script {path!r}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read the script {path!r}: {reason(error, path)}") from error
    if b"\0" in source:
        raise FormatError(f"{path!r} is no Python script: it has zero bytes")
    return source


def _main_module(path: str, loader: Any) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __loader__=loader, __cached__=None)
    sys.modules["__main__"] = main
    return main


def _enter(folder: str) -> None:
    """Let imports find the modules beside the script, and no longer those beside the program that runs it."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0:1] = [folder]


def _lend_to_children() -> None:
    """Let processes that the script starts find nnrs by NNabla's names.

    Those of multiprocessing get this process's sys.path, in which the script's folder, the first, is to be set yet.
    """
    folder = os.path.join(os.path.dirname(sys.modules["nnrs"].__file__ or ""), "_as_nnabla")
    sys.path.insert(1, folder)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = folder + (os.pathsep + before if before else "")


def _print(error: BaseException) -> None:
    """Print the error as the interpreter would: from the script's own lines on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)


def add_run_command(subparsers: Any) -> None:
    """Add the command `run`."""
    parser = add_parser(subparsers, "run", "run a script that says `import nnabla` on nnrs", examples=_EXAMPLES)
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name, as for `python -m`")
    parser.add_argument("-c", dest="code", action="store_true", help="SCRIPT is code, as for `python -c`")
    parser.add_argument("script", metavar="SCRIPT", help="path of the script; - for the standard input")
    parser.add_argument("args", nargs=REMAINDER, metavar="...", help="the script's arguments")
    parser.set_defaults(func=run_command)
