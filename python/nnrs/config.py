"""Settings and states of the current thread that scripts may read, as Chainer's `config`.

`in_recomputing`: True while functions run a second time because their results were dropped (`nnrs.recompute`,
`F.forget`), for instance as seen from a hook or a PythonFunction.

>>> import nnrs as nn
>>> nn.config.in_recomputing
False
"""

from __future__ import annotations

from . import _core

in_recomputing: bool


def __getattr__(name: str) -> bool:
    if name == "in_recomputing":
        return _core.in_recomputing()
    raise AttributeError(f"module 'nnrs.config' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["in_recomputing"]
