"""Networks of files that can be loaded for batches of any size."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._errors import check_type
from .._messages import Message, message_class

__all__ = ["variable_batch_size"]


def variable_batch_size(network: Any) -> None:
    """Leave the batch's size of a network open: -1 in the shapes of what has one entry for each sample.

    Args:
        network: A message `Network`, which is changed.

    Raises:
        ValueError: If a shape among the arguments of its functions does not begin with the batch's size.

    >>> from nnrs._messages import parse_text
    >>> net = parse_text("Network", '''
    ...     variable { name: "x" shape { dim: [8, 3] } }  variable { name: "y" shape { dim: [8, 3] } }
    ...     function { name: "Softmax" type: "PReLU" input: "x" output: "y" prelu_param { base_axis: 1 } }''')
    >>> variable_batch_size(net)
    >>> net.variable[0].shape.dim, net.batch_size
    ([-1, 3], 8)
    """
    here = "variable_batch_size"
    if hasattr(network, "_open_batch"):
        network._open_batch()
        return
    check_type(here, "network", network, message_class("Network"), "a network")
    opened: Message = message_class("Network")._of(_core.open_batch(here, network._dict()))
    network.CopyFrom(opened)
