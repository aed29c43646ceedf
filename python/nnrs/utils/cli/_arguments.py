"""What the commands' arguments have in common."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

from ..._errors import Error

REMAINDER = argparse.REMAINDER


def add_parser(subparsers: Any, name: str, help: str, more: str = "", examples: str = "") -> argparse.ArgumentParser:
    """Add a command.

    Args:
        subparsers: Where commands are added.
        name: The command.
        help: What it does, in a line.
        more: What else to know, in lines of text.
        examples: Calls with what they do.
    """
    said = help[0].upper() + help[1:] + "." + (f"\n\n{more}" if more else "")
    made: argparse.ArgumentParser = subparsers.add_parser(
        name, help=help, description=said, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    return made


@contextlib.contextmanager
def read_as(command: str, argument: str) -> Iterator[None]:
    """Inside, errors of a function that reads a file name the command, and its own argument that has the path."""
    try:
        yield
    except Error as error:
        text, found = re.subn(
            r"^\w+: argument '(path|filenames|filepath)'", f"{command}: argument '{argument}'", str(error)
        )
        if found:
            raise type(error)(text) from error
        raise


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return number


def finite(text: str) -> float:
    """A number that is neither infinite nor NaN."""
    number = float(text)
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text}")
    return number


def flag(text: str) -> bool:
    """'true' or 'false', as NNabla's options spell them."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"expected true or false, got {text}")
    return text.lower() == "true"
