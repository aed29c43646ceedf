"""The messages of NNabla's files by their names: `NNablaProtoBuf`, `Network`, `Function`, ...

They are what `nnrs.load_parameters`, `nnrs.graph_def` and the others give and take, and need no package. With the
package protobuf (`nnrs[protobuf]`), its `text_format` and `json_format` read and write them, and they have a
`DESCRIPTOR`. They are no objects of it: `SerializeToString` and `FromString` lead to these and back.

>>> proto = NNablaProtoBuf()
>>> network = proto.network.add(name="main", batch_size=16)
>>> NNablaProtoBuf.FromString(proto.SerializeToString()) == proto
True
>>> print(proto, end="")
network {
  name: "main"
  batch_size: 16
}
"""

from __future__ import annotations

from typing import Any

from .. import _protobuf
from .._messages import message_class
from .._missing import missing_name

__all__ = sorted(_protobuf.names())

globals().update({name: message_class(name) for name in __all__})


def __getattr__(name: str) -> Any:
    if name == "DESCRIPTOR":
        return _protobuf.file_descriptor()
    raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return [*globals(), "DESCRIPTOR"]
