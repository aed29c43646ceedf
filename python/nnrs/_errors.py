"""Errors of the Python side: each is both `nnrs.Error` and the built-in kind that a Python user expects."""

from __future__ import annotations

import contextlib
import errno
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ._core import Error, NdArray, Variable


class ArgumentError(Error, ValueError):
    """A value, shape or name that does not fit."""


class ShapeError(Error, ValueError):
    """Shapes that do not fit."""


class ParameterError(Error, ValueError):
    """A parameter that is missing or does not fit."""


class GraphError(Error, RuntimeError):
    """A graph that is not in a state that allows this."""


class StateError(Error, RuntimeError):
    """An object that is not in a state that allows this: something has to be done before, or went wrong."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is used up, or its limit is reached."""


class DeviceError(Error, RuntimeError):
    """A GPU that has failed."""


class CommunicatorError(Error, RuntimeError):
    """Processes that cannot work together, or one of them that is missing."""


class _SystemError(Error, OSError):
    """One whose text says all; `errno`, `strerror` and `filename` are there for those who look at them."""

    def __init__(self, text: object = "", number: int | None = None) -> None:
        super().__init__(text)
        found = re.search(r"\(os error (\d+)\)", str(text))  # as Rust says it
        if number is None and found is not None:
            number = int(found[1])
        if number is not None:
            self.errno, self.strerror = number, os.strerror(number)

    def __str__(self) -> str:
        return str(self.args[0])


class FileError(_SystemError):
    """A file that cannot be read or written."""


class NetworkError(Error, OSError):
    """A server that cannot be reached, refuses or breaks off."""


class FolderError(_SystemError, IsADirectoryError):
    """A folder where a file is expected."""

    def __init__(self, text: object = "") -> None:
        super().__init__(text, errno.EISDIR)


class ArgumentTypeError(Error, TypeError):
    """An argument of the wrong type."""


class FormatError(Error, ValueError):
    """A file whose content is not what it should be."""


class ForeignStatesError(GraphError, ValueError):
    """A file with states of parameters that a solver does not have: a RuntimeError, too, as in NNabla."""


class MissingFileError(_SystemError, FileNotFoundError):
    """A file that is not there."""

    def __init__(self, text: object = "") -> None:
        super().__init__(text, errno.ENOENT)


class MissingPackageError(Error, ImportError):
    """An optional package that is not installed."""


class UnknownExtensionError(Error, ModuleNotFoundError):
    """A backend that this build does not know or does not have."""


class OutOfBoundsError(Error, IndexError):
    """An index that an array does not have."""


class UnknownNameError(ArgumentError, KeyError):
    """A name of something that is not there."""

    __str__ = Exception.__str__  # KeyError's would put quotes around it


class UnsupportedError(Error, NotImplementedError):
    """Something that this version cannot do. As NotImplementedError it is a RuntimeError, too."""


def message(function: str, argument: str | None, expected: str, actual: object = None, hint: str | None = None) -> str:
    """The text of an error, laid out as the engine lays out its own."""
    head = f"{function}: " + (f"argument '{argument}': " if argument else "")
    body = expected if actual is None else f"expected {expected}, got {actual}"
    return head + body + (f"\n  hint: {hint}" if hint else "")


def describe(value: Any) -> str:
    """A short text for a wrong argument: its type and, where short, its value ("?" where `repr` fails)."""
    try:
        text = repr(value)
    except MemoryError:
        raise
    except Exception:
        text = "?"
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


# What reads files, and says by an exception what is wrong with them.
_READERS = frozenset({"nnrs", "h5py", "numpy", "PIL", "cv2", "png", "pydicom", "pydub"}) | sys.stdlib_module_names


@contextlib.contextmanager
def failures_as(
    told: Callable[[Exception], Exception],
    of: type[Exception] | tuple[type[Exception], ...] = Exception,
    but: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Inside, a failure of the kinds `of`, unless of `but`, is raised as the error `told(failure)`.

    What came through the user's code (a signal handler, a file object) stays as it is: it says nothing of a file.

    >>> with failures_as(lambda failure: FormatError(f"no JSON: {failure}"), of=ValueError):
    ...     float("x")
    Traceback (most recent call last):
    nnrs._errors.FormatError: no JSON: could not convert string to float: 'x'
    """
    try:
        yield
    except but:
        raise
    except of as error:
        if is_of_user_code(error):
            raise
        raise _as_the_system_says(told(error), error) from error


def _as_the_system_says(made: Exception, error: Exception) -> Exception:
    """An error with the number and the file of the one that it tells of."""
    if isinstance(made, OSError) and isinstance(error, OSError) and error.errno is not None:
        made.errno, made.strerror = error.errno, error.strerror
        if isinstance(error.filename, str) and "/.nnrs-" not in f"/{error.filename}":
            made.filename = error.filename
    return made


def is_of_user_code(error: BaseException) -> bool:
    """Whether code of others than `_READERS` lies between here and where it was raised."""
    at = error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__")).partition(".")[0] not in _READERS:
            return True
        at = at.tb_next
    return False


def reason(error: BaseException, *named: Any) -> str:
    """What an error says, where the message names the paths `named` already.

    Of the system's errors: no number, and no path that is one of these, or that of a file still being written.

    >>> reason(OSError(21, "Is a directory", "a/b"), "a/b"), reason(OSError(2, "No such file", "a"), "a/b")
    ('Is a directory', "No such file: 'a'")
    """
    found = re.search("error message = '([^']+)'", str(error))  # HDF5's, within a page of numbers
    if found or not isinstance(error, OSError) or not error.strerror:
        return found[1] if found else str(error)
    path = error.filename
    is_told = path is None or path in [os.fspath(p) for p in named if isinstance(p, (str, bytes, os.PathLike))]
    return error.strerror if is_told or "/.nnrs-" in f"/{path}" else f"{error.strerror}: {path!r}"


@contextlib.contextmanager
def described_by_a_file(function: str) -> Iterator[None]:
    """Inside, what is wrong with what a file describes is a ValueError, whichever function finds it."""
    try:
        yield
    except (ArgumentTypeError, GraphError, UnsupportedError) as error:
        what = str(error).removeprefix(f"{function}: ")
        raise ArgumentError(f"{function}: the file describes what cannot be made: {what}") from error


def check_callable(function: str, argument: str, value: Any) -> None:
    """Raise `ArgumentTypeError` unless `value` can be called."""
    if not callable(value):
        raise ArgumentTypeError(message(function, argument, "a callable", describe(value)))


def check_type(function: str, argument: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> None:
    """Raise `ArgumentTypeError` unless `value` is one of `kinds`."""
    if not isinstance(value, kinds):
        raise ArgumentTypeError(message(function, argument, expected, describe(value)))


def check_name(function: str, argument: str, value: Any, expected: str) -> str:
    """`value`, if it is a str that can be written in UTF-8 (half of a surrogate pair cannot)."""
    check_type(function, argument, value, str, expected)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ArgumentError(message(function, argument, "a text that UTF-8 can hold", ascii(value))) from None
    return str(value)


MOST_ITEMS = 1 << 20


def check_list(function: str, argument: str, value: Any, kind: type | tuple[type, ...], items: str) -> list[Any]:
    """The elements of `value`, all of `kind`; of an iterator `MOST_ITEMS` at most, whatever it says of its length."""
    check_type(function, argument, value, Iterable, f"a list of {items}")
    if isinstance(value, (str, bytes)):  # whose items are letters
        raise ArgumentTypeError(message(function, argument, f"a list of {items}", describe(value)))
    most = len(value) if isinstance(value, (list, tuple)) else MOST_ITEMS
    found = []
    for item in value:
        check_type(function, argument, item, kind, items)
        found.append(item)
        if len(found) > most:
            raise ArgumentError(message(function, argument, f"{most} {items} at most", "an iterator that gives more"))
    return found


def check_flag(function: str, argument: str, value: Any) -> bool:
    """The truth of `value`, of any type, as NNabla takes flags; an `ArgumentTypeError` where it has none (arrays)."""
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(function, argument, "bool", describe(value))) from None


def check_switch(function: str, argument: str, value: Any) -> bool:
    """As `check_flag`, but that no text is one: "False", or what belongs to another argument, would be true."""
    if isinstance(value, str):
        raise ArgumentTypeError(message(function, argument, "bool", describe(value)))
    return check_flag(function, argument, value)


def check_array(function: str, argument: str, value: Any) -> None:
    """Raise `ArgumentTypeError` unless `value` is an array of the library."""
    check_type(function, argument, value, (Variable, NdArray), "a Variable or NdArray")


def check_one_output(function: str, outputs: Any) -> list[NdArray] | None:
    """`outputs` as a list of one NdArray; None for None."""
    found = None if outputs is None else check_list(function, "outputs", outputs, NdArray, "NdArray")
    if found is not None and len(found) != 1:
        raise ArgumentError(message(function, "outputs", "1 array", f"{len(found)}"))
    return found


def check_number(function: str, argument: str, value: Any) -> float:
    """`value` as a float; a text is none."""
    try:
        return float(value if not isinstance(value, (str, bytes)) else None)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(function, argument, "float", describe(value))) from None


def check_integer(function: str, argument: str, value: Any, least: int | None = None) -> int:
    """`value` as an int, of `least` or more."""
    try:
        number = operator.index(value)
    except TypeError as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(function, argument, "int", describe(value))) from None
    if least is not None and number < least:
        raise ArgumentError(message(function, argument, f"{least} or more", number))
    return number


def check_batch_size(function: str, value: Any) -> None:
    """Raise unless `value` is None, or a number of samples that an array's shape can have."""
    if value is not None and check_integer(function, "batch_size", value, 1) > sys.maxsize:
        raise ArgumentError(message(function, "batch_size", f"{sys.maxsize} at most", value))


MOST_AXES = 64


def check_integers(function: str, argument: str, value: Any, least: int | None = None) -> list[int]:
    """`value` as a list of ints, one for each of some axes, each of `least` or more."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)) or np.ndim(value) != 1:
        raise ArgumentTypeError(message(function, argument, "Sequence[int]", describe(value)))
    found = [check_integer(function, argument, n, least) for n in islice(value, MOST_AXES + 1)]
    if len(found) > MOST_AXES:
        raise ArgumentError(message(function, argument, f"{MOST_AXES} numbers at most", "more"))
    return found
