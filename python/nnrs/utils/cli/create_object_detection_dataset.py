"""`nnrs create_object_detection_dataset`: a data set of images with boxes of objects, for detectors like YOLO.

Beside each image, `a.jpg`, is a text `a.txt` with a line for each object: class, x, y, width, height in parts of the
image's width and height.

>>> import pathlib, tempfile, numpy as np
>>> from nnrs.utils.cli.cli import main
>>> from nnrs.utils.image_utils import imsave
>>> with tempfile.TemporaryDirectory() as folder:
...     pathlib.Path(folder, "photos").mkdir()
...     imsave(f"{folder}/photos/a.png", np.zeros((8, 8), np.uint8))
...     _ = pathlib.Path(folder, "photos", "a.txt").write_text("0 0.5 0.5 0.25 0.25")
...     options = "-n 1 -c 1 -w 8 -g 8 -a 1 -d 4 -m resize -s false -f1 data.csv".split()
...     main(["create_object_detection_dataset", "-i", f"{folder}/photos", "-o", f"{folder}/data", *options])
...     pathlib.Path(folder, "data", "data.csv").read_text().split()
0
['x:image,y:label,r:region', './data/a.png,./data/a_label.csv,./data/a_region.csv']
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..._errors import ArgumentError, message
from ..._files import atomic_path
from ..._monitor_files import make_folder
from ...logger import logger
from . import _anchors, _images
from ._anchors import ObjectRect, load_label
from ._arguments import add_parser, positive

__all__ = [
    "ObjectRect",
    "add_create_object_detection_dataset_command",
    "create_object_detection_dataset_command",
    "load_label",
]


def create_object_detection_dataset_command(args: Any) -> None:
    """Write the images as png in one size, their objects by cells of a grid, and csv files of all names."""
    _check(args)
    names = _found(args, "")
    if not names:
        raise ArgumentError(message(args.command, "sourcedir", "a folder with images", repr(args.sourcedir)))
    sizes = [label[3:5] for name in names for label in load_label(_beside(args.sourcedir, name, ".txt"))]
    if len(sizes) < args.num_anchor:
        text = f"{len(sizes)} objects in all images"
        raise ArgumentError(
            message(args.command, "num_anchor", "no more than there are objects", f"{args.num_anchor} and {text}")
        )
    anchors = _anchors.get_anchors(np.array(sizes), args.num_anchor)
    make_folder(args.command, args.outdir)
    good = _images.done(lambda name: _convert(args, name, anchors), names, "Creating output images")
    if not good:
        raise ArgumentError(message(args.command, "sourcedir", "images that can be read", repr(args.sourcedir)))
    stems = [os.path.join(".", "data", os.path.splitext(name)[0]) for name in good]
    rows = ([stem + ending for ending in (".png", "_label.csv", "_region.csv")] for stem in stems)
    _images.write_csv_files(args, ["x:image", "y:label", "r:region"], rows)
    logger.log(99, "Dataset was successfully created.")


def _check(args: Any) -> None:
    _images.check_folders(args)
    for name in ("width", "height"):
        if getattr(args, name) % args.grid_size:
            text = f"a multiple of grid_size {args.grid_size}"
            raise ArgumentError(message(args.command, name, text, getattr(args, name)))


def _found(args: Any, folder: str) -> list[str]:
    """The images in the source folder and those below, by their paths in it."""
    found = []
    for name in _images.listed(args.command, os.path.join(args.sourcedir, folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(os.path.join(args.sourcedir, path)):
            found += _found(args, path)
        elif _images.is_image(name):
            found.append(path)
    return found


def _beside(folder: str, name: str, ending: str) -> str:
    return os.path.join(folder, os.path.splitext(name)[0] + ending)


def _convert(args: Any, name: str, anchors: np.ndarray) -> None:
    folder = os.path.join(args.outdir, "data")
    labels = load_label(_beside(args.sourcedir, name, ".txt"))
    before = _images.convert_image(os.path.join(args.sourcedir, name), _beside(folder, name, ".png"), args)
    size = (args.width, args.height)
    moved = [_anchors.warped(label, before, size, args.mode) for label in labels]
    grid = (args.width // args.grid_size, args.height // args.grid_size)
    classes, regions = _anchors.on_grid(moved, grid, anchors)
    _write(_beside(folder, name, "_label.csv"), classes, "%i")
    _write(_beside(folder, name, "_region.csv"), regions, "%f")


def _write(path: str, values: np.ndarray, form: str) -> None:
    """Write the values as a csv file, a line for each row of the grid."""
    with atomic_path(path) as temporary:
        np.savetxt(temporary, values.reshape(values.shape[0] * values.shape[1], -1), fmt=form, delimiter=",")


def add_create_object_detection_dataset_command(subparsers: Any) -> None:
    """Add the command `create_object_detection_dataset`."""
    example = """example:
  nnrs create_object_detection_dataset -i photos -o data -n 2 -c 3 -w 96 -g 96 -a 3 -d 16 -m padding -s true \\
      -f1 train.csv -f2 test.csv -r2 20"""
    name = "create_object_detection_dataset"
    parser = add_parser(subparsers, name, "make a csv data set of images and boxes of objects", examples=example)
    source = "folder with images, and beside each a .txt of its objects: class, x, y, width, height"
    parser.add_argument("-i", "--sourcedir", required=True, help=source)
    parser.add_argument("-n", "--num_class", type=positive, required=True, help="number of classes")
    parser.add_argument("-a", "--num_anchor", type=positive, required=True, help="number of typical sizes of objects")
    parser.add_argument("-d", "--grid_size", type=positive, required=True, help="pixels of a cell's side")
    _images.add_arguments(parser)
    parser.set_defaults(func=create_object_detection_dataset_command)
