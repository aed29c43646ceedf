"""What the files given to a command say of networks, and how they are run and trained, as one message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._errors import ArgumentError, message
from ..._files import read_nnabla
from ..._messages import message_class


def read_networks(command: str, files: Sequence[str]) -> Any:
    """The message `NNablaProtoBuf` of all files together; files of parameters have none.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If a file is of another kind, or none of them has a network.
    """
    whole = message_class("NNablaProtoBuf")()
    for file in files:
        whole.MergeFrom(message_class("NNablaProtoBuf")._of(read_nnabla(command, file, None, "files")[0]))
    if not whole.network:
        raise ArgumentError(message(command, None, "files with a network", ", ".join(map(repr, files))))
    return whole


def expanded(command: str, network: Any) -> Any:
    """The network with its loops written out."""
    from ..._core import expand_network

    return message_class("Network")._of(expand_network(command, network._dict()))
