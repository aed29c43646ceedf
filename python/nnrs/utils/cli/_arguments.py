"""What the commands' arguments have in common."""

from __future__ import annotations

import argparse
import math
from typing import Any

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
