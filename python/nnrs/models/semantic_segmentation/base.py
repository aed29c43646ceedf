"""What networks for segmentation share.

>>> network = SemanticSegmentation()
>>> len(network.category_names), network.category_names[-1]
(20, 'tvmonitor')
"""

from __future__ import annotations

from typing import Any

from ..._borrowed import borrower
from ..._core import Variable
from .._categories import VOC
from .._pretrained import PretrainedNetwork


class SemanticSegmentation(PretrainedNetwork):
    """A network that tells the classes of VOC apart, pixel by pixel."""

    _folder = "semantic_segmentation"

    @property
    def category_names(self) -> list[str]:
        """The names of the classes. The first output is for what is none of them."""
        return list(VOC)

    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "segmentation",
        training: bool = False,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """The graph of the network; see the networks."""
        raise NotImplementedError


__getattr__ = borrower(__name__)
