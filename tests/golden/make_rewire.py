"""Writes rewire.json: what NNabla 1.39 makes of `xa.rewire_on(yb)` for every need_grad of both.

Run with NNabla's Python: `python tests/golden/make_rewire.py`. tests/test_rewire.py asks nnrs the same.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

SETTINGS = (None, True, False)


def cases() -> list[tuple[bool | None, bool | None, bool, bool]]:
    """need_grad of xa and yb (None: never set), whether a function made xa, need_grad of the leaf behind yb."""
    return list(itertools.product(SETTINGS, SETTINGS, (False, True), (True, False)))


def run(nn: Any, F: Any, own: bool | None, other: bool | None, inner: bool, behind: bool) -> dict[str, Any]:
    """xa -> cos -> ya and xb -> exp -> yb, rewired: which variables got a gradient, what xa is then."""
    source, xb = nn.Variable((2,), need_grad=True), nn.Variable((2,), need_grad=behind)
    source.d, xb.d = [0.1, 0.2], [0.3, 0.4]
    xa = F.sin(source) if inner else nn.Variable((2,))
    yb = F.exp(xb)
    for v, setting in ((xa, own), (yb, other)):
        if setting is not None:
            v.need_grad = setting
    ya = F.cos(xa)
    xa.rewire_on(yb)
    for v in (source, xb, xa):
        v.g = 0
    ya.forward()
    ya.backward()
    return {
        "gradients": [[float(g) for g in v.g] for v in (xb, source, xa)],
        "value": [float(y) for y in ya.d],
        "need_grad": xa.need_grad,
    }


def main() -> None:
    import nnabla as nn
    import nnabla.functions as F

    lines = [json.dumps(run(nn, F, *case)) for case in cases()]
    Path(__file__).with_name("rewire.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
