"""Loops of loaded networks, written out with the names that NNabla gives the passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.graph_optimizer import IdentityRemover


def expand_loops(graph: Any) -> dict[str, str]:
    """Replace the loops of a `ProtoGraph` by their passes. What only marked where a pass begins or ends is taken out.

    Args:
        graph: The graph, which is changed.

    Returns:
        Names of variables that went with the marks, with those that stand for them.
    """
    marks = {name: _marks(n.functions.values()) for name, n in graph.networks.items()}
    graph.expand_loop_control()
    renamed: dict[str, str] = {}
    for name, network in graph.networks.items():
        if marks[name]:
            network.execute_on_proto(IdentityRemover(renamed, _is_made_of(marks[name])))
            network._connect()
    return renamed


def _marks(functions: Iterable[Any]) -> list[str]:
    return [f.name for f in functions if f._is_loop_control]


def _is_made_of(marks: list[str]) -> Callable[[Any], bool]:
    """Whether a function is one of those that marks have become: NAME, or NAME_LOOP[0] and so on."""

    def is_made_of(f: Any) -> bool:
        return any(f.name == m or (f.name.startswith(f"{m}_") and f.name.endswith("]")) for m in marks)

    return is_made_of
