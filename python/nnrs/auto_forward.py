"""Dynamic graphs, whose functions run as they are applied, under NNabla's module name.

>>> import nnrs as nn, nnrs.functions as F
>>> with auto_forward():
...     y = F.relu(nn.Variable.from_numpy_array([-1.0, 2.0]))
>>> y.d.tolist(), get_auto_forward()
([0.0, 2.0], False)
"""

from __future__ import annotations

from ._modes import auto_forward, get_auto_forward, set_auto_forward

__all__ = ["auto_forward", "get_auto_forward", "set_auto_forward"]
