"""What the two commands that make data sets of images have in common: finding, shaping and writing images."""

from __future__ import annotations

import argparse
import csv
import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..._errors import ArgumentError, Error, FileError, FormatError, UnsupportedError, failures_as, message
from ..._files import atomic_path
from ...logger import logger
from .._workers import Check, in_order
from ._arguments import flag, positive
from ._progress import tracked

T = TypeVar("T")
_ENDINGS = (".bmp", ".jpg", ".jpeg", ".png", ".gif", ".tif", ".tiff")


def is_image(name: str) -> bool:
    """Whether a file's name is that of an image."""
    return os.path.splitext(name)[1].lower() in _ENDINGS


def listed(command: str, folder: str) -> list[str]:
    """The names in a folder, sorted."""
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        text = f"cannot read the folder {folder!r}: {error.strerror}"
        raise FileError(message(command, "sourcedir", text)) from error


def check_folders(args: Any) -> None:
    """Refuse to write into the folder that is read."""
    if os.path.realpath(args.sourcedir) == os.path.realpath(args.outdir):
        raise ArgumentError(message(args.command, "outdir", "another folder than sourcedir", repr(args.outdir)))


def shaped(image: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    """The image, cut ('trimming') or padded with black ('padding') to the form of `size` or whole ('resize'), resized.

    Args:
        image: (height, width) or (height, width, channel).
        size: (width, height).
        mode: 'trimming', 'padding' or 'resize'.

    >>> shaped(np.zeros((2, 8), np.uint8), (4, 4), "padding").shape
    (4, 4)
    """
    from ..image_utils import imresize

    (h, w), (width, height) = image.shape[:2], size
    if (w, h) == size:
        return image
    if mode == "trimming":
        if h * width > height * w:
            cut = (h - int(w / width * height)) // 2
            image = image[cut : h - cut]
        else:
            cut = (w - int(h / height * width)) // 2
            image = image[:, cut : w - cut]
    elif mode == "padding":
        image = _padded(image, max(int(height / width * w), h), max(int(width / height * h), w))
    return imresize(image, size)


def _padded(image: np.ndarray, height: int, width: int) -> np.ndarray:
    rest = (height - image.shape[0], width - image.shape[1])
    return np.pad(image, [(n // 2, n - n // 2) for n in rest] + [(0, 0)] * (image.ndim - 2))


def with_channels(image: np.ndarray, channels: int) -> np.ndarray:
    """The image in grey (1) or as RGB (3)."""
    if image.ndim == 2 and channels == 3:
        return np.stack([image] * 3, axis=2)
    if image.ndim == 3 and channels == 1:
        return (image[..., :3] @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    return image


def convert_image(source: str, target: str, args: Any) -> tuple[int, int]:
    """Read an image, write it as the arguments will have it, and return its (width, height) before that."""
    from ..image_utils import imread, imsave

    image = imread(source)
    if image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim != 2 and not (image.ndim == 3 and image.shape[2] == 3):
        raise FormatError(f"{source}: expected a grey or RGB image, got {image.shape[2]} channels")
    made = with_channels(shaped(image, (args.width, args.height), args.mode), args.channel)
    with failures_as(lambda error: _UnwrittenError(str(error)), (Error, OSError)):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        imsave(target, made)
    return image.shape[1], image.shape[0]


class _UnwrittenError(FileError):
    """An image that cannot be written: then no other one can, most likely."""


def done(convert: Callable[[T], object], items: Sequence[T], label: str) -> list[T]:
    """The items that could be converted; a warning for each other one."""

    def attempt(item: T, check: Check) -> bool:
        try:
            convert(item)
        except (UnsupportedError, ImportError, MemoryError, _UnwrittenError):
            raise
        except (Error, OSError) as error:
            logger.warning("left out: %s", str(error).splitlines()[0])
            return False
        return True

    with in_order(attempt, items, os.cpu_count() or 1) as made:
        results = list(tracked(made, label, len(items)))
    return [item for item, good in zip(items, results, strict=True) if good]


def write_csv_files(args: Any, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the rows to the one or two csv files of the arguments."""
    rows = list(rows)
    if args.shuffle:
        random.shuffle(rows)
    first = len(rows) * (100 - args.ratio2) // 100
    parts = [(args.file1, rows[:first]), (args.file2, rows[first:])]
    for name, part in parts:
        if not name or not part:
            continue
        with atomic_path(os.path.join(args.outdir, name)) as temporary:
            with open(temporary, "w", encoding="utf-8", newline="") as f:
                csv.writer(f, lineterminator="\n").writerows([head, *part])


def _percent(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 100, got {text}")
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that both commands have."""
    parser.add_argument("-o", "--outdir", required=True, help="folder to write")
    parser.add_argument("-c", "--channel", type=int, choices=(1, 3), required=True, help="1: grey images, 3: RGB")
    parser.add_argument("-w", "--width", type=positive, required=True, help="width of the images that are written")
    parser.add_argument("-g", "--height", type=positive, required=True, help="height of the images that are written")
    mode = "whether images of another form are cut, padded with black or stretched"
    parser.add_argument("-m", "--mode", choices=("trimming", "padding", "resize"), required=True, help=mode)
    shuffle = "true or false: whether the rows of the csv files are in a random order"
    parser.add_argument("-s", "--shuffle", type=flag, metavar="BOOL", required=True, help=shuffle)
    parser.add_argument("-f1", "--file1", required=True, help="name of the csv file")
    parser.add_argument("-r1", "--ratio1", type=_percent, help="percentage of rows in it; what -r2 leaves")
    parser.add_argument("-f2", "--file2", help="name of another csv file, for tests")
    parser.add_argument("-r2", "--ratio2", type=_percent, default=0, help="percentage of rows in that (default: 0)")
