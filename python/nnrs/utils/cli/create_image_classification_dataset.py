"""`nnrs create_image_classification_dataset`: a data set of images that lie in a folder for each class.

>>> import pathlib, tempfile, numpy as np
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.image_utils import imsave
>>> with tempfile.TemporaryDirectory() as folder:
...     for name in ("cats", "dogs"):
...         pathlib.Path(folder, "photos", name).mkdir(parents=True)
...         imsave(f"{folder}/photos/{name}/0.png", np.zeros((8, 8), np.uint8))
...     options = "-c 1 -w 4 -g 4 -m resize -s false -f1 data.csv".split()
...     main(["create_image_classification_dataset", "-i", f"{folder}/photos", "-o", f"{folder}/data", *options])
...     pathlib.Path(folder, "data", "data.csv").read_text().split()
0
['x:image,y:label', './cats/0.png,0', './dogs/0.png,1']
"""

from __future__ import annotations

import os
from typing import Any

from ..._errors import ArgumentError, message
from ..._monitor_files import make_folder
from ...logger import logger
from . import _images
from ._arguments import add_parser


def create_image_classification_dataset_command(args: Any) -> None:
    """Write the images as png in one size, and csv files of their names and classes."""
    _images.check_folders(args)
    found = _labelled(args)
    if not found:
        text = "a folder with a folder of images for each class"
        raise ArgumentError(message(args.command, "sourcedir", text, f"{args.sourcedir!r}, where there is no image"))
    make_folder(args.command, args.outdir)

    def convert(item: tuple[str, int]) -> None:
        source = os.path.join(args.sourcedir, item[0])
        _images.convert_image(source, os.path.join(args.outdir, _png(item[0])), args)

    good = _images.done(convert, found, "Creating output images")
    if not good:
        raise ArgumentError(message(args.command, "sourcedir", "images that can be read", repr(args.sourcedir)))
    rows = ((os.path.join(".", _png(name)), label) for name, label in good)
    _images.write_csv_files(args, ["x:image", "y:label"], rows)
    logger.log(99, "Dataset was successfully created.")


def _labelled(args: Any) -> list[tuple[str, int]]:
    """The images, by paths in the source folder, and their classes, the folders with images in their order."""
    found: list[tuple[str, int]] = []
    label = -1
    for folder in _images.listed(args.command, args.sourcedir):
        path = os.path.join(args.sourcedir, folder)
        names = _images.listed(args.command, path) if os.path.isdir(path) else []
        images = [n for n in names if _images.is_image(n) and os.path.isfile(os.path.join(path, n))]
        label += bool(images)
        found += [(os.path.join(folder, name), label) for name in images]
    return found


def _png(name: str) -> str:
    return os.path.splitext(name)[0] + ".png"


def add_create_image_classification_dataset_command(subparsers: Any) -> None:
    """Add the command `create_image_classification_dataset`."""
    example = """example:
  nnrs create_image_classification_dataset -i photos -o data -c 3 -w 64 -g 64 -m trimming -s true \\
      -f1 train.csv -f2 test.csv -r2 20"""
    name = "create_image_classification_dataset"
    parser = add_parser(subparsers, name, "make a csv data set of images, a folder for each class", examples=example)
    parser.add_argument("-i", "--sourcedir", required=True, help="folder with a folder of images for each class")
    _images.add_arguments(parser)
    parser.set_defaults(func=create_image_classification_dataset_command)
