"""DeepLab, version 3+ (Chen et al., 2018).

>>> import tempfile, nnrs as nn, nnrs.parametric_functions as PF
>>> from nnrs.utils.save import save
>>> x = nn.Variable((1, 3, 513, 513))
>>> small = {"name": "runtime", "batch_size": 1, "outputs": {"y": PF.convolution(x, 21, (1, 1))}, "names": {"x": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/small.nnp", {"networks": [small]})  # stands for the trained network
...     network = DeepLabV3plus(path=f"{folder}/small.nnp")
>>> network().shape, network.input_shape, network.category_names[0]
((1, 21, 513, 513), (3, 513, 513), 'aeroplane')
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..._borrowed import borrower
from ..._core import Variable
from ..._errors import ArgumentError, message
from .._pretrained import first_output
from .base import SemanticSegmentation

# How often the image was halved where each interpolation ends.
_HALVED = {"Interpolate": 4, "Interpolate_2": 2, "Interpolate_3": 0}


class DeepLabV3plus(SemanticSegmentation):
    """DeepLab, version 3+.

    Args:
        dataset: "voc" or "voc-coco": what it was trained with.
        output_stride: 16 or 8: pixels of the image for one of the encoder's output.
        path: `.nnp` file to load; without one it is fetched from NNabla's server, once.
    """

    _KEY_VARIABLE = {
        "segmentation": "y",
        "lastconv": "BatchNormalization_146_Output",
        "lastconv+relu": "ReLU_82_Output",
    }

    def __init__(
        self, dataset: str = "voc", output_stride: int = 16, *, path: str | os.PathLike[str] | None = None
    ) -> None:
        if dataset not in ("voc", "voc-coco"):
            raise ArgumentError(message("DeepLabV3plus", "dataset", "'voc' or 'voc-coco'", repr(dataset)))
        if output_stride not in (16, 8):
            raise ArgumentError(message("DeepLabV3plus", "output_stride", "16 or 8", repr(output_stride)))
        name = f"DeepLabV3-{dataset}-os-{output_stride}.nnp"
        self._load_nnp(name, name, path)

    def _input_shape(self) -> tuple[int, int, int]:
        return 3, 513, 513

    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "segmentation",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """The graph of the network.

        Args:
            input_var: Images (batch, 3, height, width), values from -1 to 1; None: a new variable for one image.
            use_from: None.
            use_up_to: Where the graph ends: "segmentation" (a score for each class and pixel), "lastconv" or
                "lastconv+relu".
            training: Batch normalization by the batch's statistics, parameters that are trained.
            returns_net: Return the `NnpNetwork`.
            verbose: 1 prints how the network of the file is changed, 2 more.

        Returns:
            The output Variable, or the `NnpNetwork`.
        """
        input_var = self.get_input_var(input_var)
        callback = self._pass(input_var, "x", use_from, training, verbose)
        callback.force_average_pooling_global("AveragePooling")
        for name, times in _HALVED.items():
            callback.on_generate_function_by_name(name)(_to_size(_halved(input_var.shape[2:], times)))
        self.use_up_to(use_up_to, callback)
        net = self._network("runtime", input_var, callback)
        return net if returns_net else first_output(net)


def _halved(size: tuple[int, ...], times: int) -> list[int]:
    """An image's height and width after so many convolutions of stride 2."""
    found = list(size)
    for _ in range(times):
        found = [(n - 1) // 2 + 1 for n in found]
    return found


def _to_size(size: list[int]) -> Callable[[Any], Any]:
    def generate(f: Any) -> Any:
        f.proto.interpolate_param.output_size[:] = size
        return f

    return generate


__getattr__ = borrower(__name__)
