"""YOLO, second version (Redmon and Farhadi, 2017).

>>> import tempfile, nnrs as nn, nnrs.functions as F
>>> from nnrs.utils.save import save
>>> x = nn.Variable((1, 3, 416, 416))
>>> small = {"name": "runtime", "batch_size": 1, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/small.nnp", {"networks": [small]})  # stands for the trained network
...     yolo = YoloV2("coco", path=f"{folder}/small.nnp")
>>> yolo().shape, yolo.get_nnp_input_size(), len(yolo.get_category_names())
((1, 3, 416, 416), (416, 416), 80)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._borrowed import borrower
from ..._core import Variable
from ..._errors import ArgumentError, message
from ...parameter import get_parameter, parameter_scope, set_parameter
from .._pretrained import first_output
from .base import ObjectDetection

_STRIDE = 32  # pixels of the image for one cell of the last layer
_ANCHORS = 5

Shape = list[int]
# Reshapes of the file have its image size in them. For each by name: what it makes of its input's shape `s` and of the
# shape `r` that it has in the file.
_RESHAPES: dict[str, Callable[[Shape, Shape], Shape]] = {
    "Reshape": lambda s, r: [s[0], s[1] // 4, s[2], 2, s[3], 2],
    "Reshape_2": lambda s, r: [s[0], s[1] * s[2] * s[3] * s[1] * s[2], s[4] // s[1], s[5] // s[2]],
    "Reshape_3": lambda s, r: [s[0], _ANCHORS, r[2], *s[2:]],
    "Reshape_4": lambda s, r: [*r[:3], s[0], *r[4:]],
    "Reshape_5": lambda s, r: [s[0], s[1], 1, s[2], s[3]],
    "Reshape_6": lambda s, r: [*r[:2], s[0], *r[3:]],
    "Reshape_7": lambda s, r: [s[0], s[1], 1, s[2], s[3]],
    "Reshape_8": lambda s, r: [s[0], s[1] * s[2] * s[3], s[4]],
}
# Where slices of the third axis end: x and y, width and height, whether there is an object, of which class (the end).
_SLICES = {"Slice": 2, "Slice_2": 4, "Slice_3": 5, "Slice_4": None}
# Functions that go by one axis of the image: numbers of cells, and their scale.
_CELLS = {"Arange": 3, "Arange_2": 2}
_SCALES = {"MulScalar_2": 3, "MulScalar_3": 2}


class YoloV2(ObjectDetection):
    """YOLO, second version.

    Args:
        dataset: "voc" or "coco": what it was trained with.
        path: `.nnp` file to load; without one it is fetched from NNabla's server, once.
    """

    _KEY_VARIABLE = {
        "detection": "y",
        "convdetect": "Reshape_3_Output",
        "lastconv": "Reshape_3_Output",
        "Arange": "Arange_Output",
        "Arange2": "Arange_2_Output",
    }

    def __init__(self, dataset: str = "voc", *, path: str | os.PathLike[str] | None = None) -> None:
        if dataset not in ("voc", "coco"):
            raise ArgumentError(message("YoloV2", "dataset", "'voc' or 'coco'", repr(dataset)))
        self._dataset_name = dataset
        self._load_nnp(f"yolov2-{dataset}.nnp", f"yolov2-{dataset}.nnp", path)

    def _input_shape(self) -> tuple[int, int, int]:
        return 3, 416, 416

    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "detection",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """The graph of the network.

        Args:
            input_var: Images (batch, 3, height, width), values from 0 to 1, sizes that 32 divides; None: a new one.
            use_from: None.
            use_up_to: Where the graph ends: "detection" (boxes, whether there is an object, classes), "convdetect",
                "lastconv".
            training: Batch normalization by the batch's statistics, parameters that are trained.
            returns_net: Return the `NnpNetwork`.
            verbose: 1 prints how the network of the file is changed, 2 more.

        Returns:
            The output Variable, for "detection" (batch, boxes, 5 + classes) with x, y, width, height as parts of the
            image; or the `NnpNetwork`.
        """
        input_var = self.get_input_var(input_var)
        callback = self._pass(input_var, "x", use_from, training, verbose)
        self.use_up_to(use_up_to, callback)
        if use_up_to != "detection":
            self.use_up_to("Arange", callback)
            self.use_up_to("Arange2", callback)
            callback.drop_function("Reshape_3", "Arange", "Arange_2")
        if use_up_to == "lastconv":
            callback.drop_function("Convolution_23")
        _fit(callback, input_var.shape, self.get_nnp_input_size())
        net = self._network("runtime", input_var, callback)
        return net if returns_net else first_output(net)


def _fit(callback: Any, image: tuple[int, ...], trained: tuple[int, int]) -> None:
    """Let what has the image size of the file fit this image; `trained` is height and width there."""
    for name, change in _RESHAPES.items():
        callback.on_generate_function_by_name(name)(_reshape(change))
    for name, end in _SLICES.items():
        callback.on_generate_function_by_name(name)(_slice(end))
    for name, axis in _CELLS.items():
        callback.on_generate_function_by_name(name)(_arange(image[axis] // _STRIDE))
    for name, axis in _SCALES.items():
        callback.on_generate_function_by_name(name)(_scale(trained[axis - 2] / image[axis]))
    callback.on_function_pass_by_name("Mul2")(_anchors(image, trained))


def _reshape(change: Callable[[Shape, Shape], Shape]) -> Callable[[Any], Any]:
    def generate(f: Any) -> Any:
        dims = f.proto.reshape_param.shape.dim
        dims[:] = change(list(f.inputs[0].proto.shape.dim), list(dims))
        return f

    return generate


def _slice(end: int | None) -> Callable[[Any], Any]:
    def generate(f: Any) -> Any:
        stop = list(f.inputs[0].proto.shape.dim)
        stop[2] = stop[2] if end is None else end
        f.proto.slice_param.stop[:] = stop
        return f

    return generate


def _arange(stop: int) -> Callable[[Any], Any]:
    def generate(f: Any) -> Any:
        f.proto.arange_param.stop = stop
        return f

    return generate


def _scale(factor: float) -> Callable[[Any], Any]:
    def generate(f: Any) -> Any:
        f.proto.mul_scalar_param.val *= factor
        return f

    return generate


def _anchors(image: tuple[int, ...], trained: tuple[int, int]) -> Callable[..., None]:
    """The sizes of anchors are in cells: those of a larger image are more."""

    def change(f: Any, variables: Any, scope: Any) -> None:
        cells = [np.array([w // _STRIDE, h // _STRIDE]).reshape(1, 1, 2, 1, 1) for h, w in (trained, image[2:])]
        with parameter_scope("", scope):
            sizes = get_parameter(f.inputs[1].proto.name)
            if sizes is not None:
                set_parameter("biases", Variable.from_numpy_array(sizes.d * cells[0] / cells[1]))

    return change


__getattr__ = borrower(__name__)
