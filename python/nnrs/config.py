"""Settings and states that scripts may read.

`in_recomputing`, as in Chainer's `config`: True while functions of the current thread run a second time because their
results were dropped (`nnrs.recompute`, `F.forget`), for instance as seen from a hook or a PythonFunction.

`nnabla_config`: NNabla's settings, a `configparser.RawConfigParser` with its defaults, on top of them what is in
`/etc/nnabla.conf`, `~/.nnabla`, `nnabla.conf` of the current folder and the file that NNABLA_CONFIG_FILE_PATH names.
Scripts read and set it; data sources and caches go by its section DATA_ITERATOR.

>>> import nnrs as nn
>>> nn.config.in_recomputing
False
>>> nn.config.nnabla_config.get("DATA_ITERATOR", "data_source_file_cache_size")
'100'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core

if TYPE_CHECKING:
    import configparser

in_recomputing: bool
nnabla_config: configparser.RawConfigParser


def __getattr__(name: str) -> Any:
    if name == "in_recomputing":
        return _core.in_recomputing()
    if name == "nnabla_config":  # read when it is first asked for
        from ._settings import read

        return globals().setdefault(name, read())
    raise AttributeError(f"module 'nnrs.config' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["in_recomputing", "nnabla_config"]
