"""What networks for object detection share.

>>> network = ObjectDetection()
>>> len(network.get_category_names()), network.get_category_names()[:3]
(20, ['aeroplane', 'bicycle', 'bird'])
"""

from __future__ import annotations

from typing import Any

from ..._borrowed import borrower
from ..._core import Variable
from .._categories import COCO, VOC
from .._pretrained import PretrainedNetwork


class ObjectDetection(PretrainedNetwork):
    """A network that finds objects of the classes of a data set."""

    _folder = "object_detection"
    _dataset_name = "voc"

    def get_category_names(self) -> list[str]:
        """The names of the classes, in the order of the outputs."""
        return list({"voc": VOC, "coco": COCO}[self._dataset_name])

    def get_nnp_input_size(self) -> tuple[int, int]:
        """Height and width of the images in the file's network."""
        network = next(iter(self.nnp.network_dict.values())).as_proto()
        read = {name for f in network.function for name in f.input}
        made = {name for f in network.function for name in f.output}
        v = next(v for v in network.variable if v.name in read - made and v.type != "Parameter")
        height, width = v.shape.dim[2:4]
        return height, width

    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "detection",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """The graph of the network; see the networks."""
        raise NotImplementedError


__getattr__ = borrower(__name__)
