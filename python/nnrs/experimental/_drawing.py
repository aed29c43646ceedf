"""Draws a layered graph as SVG, with no help from outside: ranks from top to bottom, few crossings, curved edges."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

_GAP_X, _GAP_Y, _MARGIN, _LINE = 22.0, 34.0, 20.0, 15.0
_SWEEPS = 8
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>'
)


@dataclass
class Node:
    """A box (function) or ellipse (variable) with lines of text."""

    key: str
    lines: list[str]
    box: bool
    fill: str
    text: str
    inputs: list[str] = field(default_factory=list)
    layer: int = 0
    x: float = 0.0
    bend: bool = False

    @property
    def width(self) -> float:
        if self.bend:
            return 6.0
        longest = max((len(line) for line in self.lines), default=1)
        return max(46.0, 7.2 * longest + (18 if self.box else 34))

    @property
    def height(self) -> float:
        return 0.0 if self.bend else _LINE * max(1, len(self.lines)) + 14


def svg(nodes: list[Node]) -> str:
    """The picture of `nodes` (inputs before their users) as SVG text."""
    table = {node.key: node for node in nodes}
    _assign_layers(nodes, table)
    layers, above = _layers(nodes, table)
    below: Edges = {}
    for key, tops in above.items():
        for top in tops:
            below.setdefault(top.key, []).append(table[key])
    _order(layers, above, below)
    _place(layers, above, below)
    return _render(layers, nodes, above, table)


Edges = dict[str, list[Node]]  # from a node's key to its neighbours on one side


def _assign_layers(nodes: list[Node], table: dict[str, Node]) -> None:
    for node in nodes:
        node.layer = max((table[key].layer + 1 for key in node.inputs), default=0)
    lowest: dict[str, int] = {}
    for node in nodes:
        for key in node.inputs:
            lowest[key] = min(lowest.get(key, node.layer), node.layer)
    for node in nodes:  # parameters and other inputs stand just above their first user
        if not node.inputs and node.key in lowest:
            node.layer = lowest[node.key] - 1


def _layers(nodes: list[Node], table: dict[str, Node]) -> tuple[list[list[Node]], Edges]:
    """Nodes by layer, and the nodes above each; edges over several layers get a bend in each that they cross."""
    layers: list[list[Node]] = [[] for _ in range(max((n.layer for n in nodes), default=-1) + 1)]
    above: Edges = {}
    for node in nodes:
        layers[node.layer].append(node)
    for node in nodes:
        above[node.key] = [_route(table[key], node, layers, above, table) for key in node.inputs]
    return layers, above


def _route(top: Node, bottom: Node, layers: list[list[Node]], above: Edges, table: dict[str, Node]) -> Node:
    for layer in range(top.layer + 1, bottom.layer):
        key = f"{top.key}>{layer}"  # edges from one node share their way
        if key not in table:
            table[key] = Node(key, [], False, "", "", layer=layer, bend=True)
            above[key] = [top]
            layers[layer].append(table[key])
        top = table[key]
    return top


def _order(layers: list[list[Node]], above: Edges, below: Edges) -> None:
    """Sort each layer by the mean place of its neighbours, downwards and upwards in turn."""
    for layer in layers:
        _number(layer)
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            means = {node.key: _mean([n.x for n in near.get(node.key, [])], node.x) for node in layer}
            layer.sort(key=lambda node: means[node.key])
            _number(layer)


def _number(layer: list[Node]) -> None:
    for place, node in enumerate(layer):
        node.x = place - len(layer) / 2


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _place(layers: list[list[Node]], above: Edges, below: Edges) -> None:
    """x of every node: packed first, then drawn towards its neighbours without overlap."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer))
    for sweep in range(2 * _SWEEPS):
        near = above if sweep % 2 == 0 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _spread(layer, [_mean([n.x for n in near.get(node.key, [])], node.x) for node in layer])


def _spread(layer: list[Node], wanted: list[float]) -> None:
    """Put nodes at their wanted places as far as order and widths allow (groups that touch share the shift)."""
    groups: list[tuple[float, int, list[tuple[Node, float]]]] = []  # mean start, count, (node, offset)
    for node, want in zip(layer, wanted, strict=True):
        start, members, count = want - node.width / 2, [(node, 0.0)], 1
        while groups and groups[-1][0] + _length(groups[-1][2]) > start:
            before, n, others = groups.pop()
            shift = _length(others)
            start = (before * n + (start - shift) * count) / (n + count)
            members = others + [(m, offset + shift) for m, offset in members]
            count += n
        groups.append((start, count, members))
    for start, _, members in groups:
        for node, offset in members:
            node.x = start + offset + node.width / 2


def _length(members: list[tuple[Node, float]]) -> float:
    last, offset = members[-1]
    return offset + last.width + _GAP_X


def _render(layers: list[list[Node]], nodes: list[Node], above: Edges, table: dict[str, Node]) -> str:
    heights = [max((node.height for node in layer), default=0.0) for layer in layers]
    tops = [_MARGIN + sum(heights[:i]) + _GAP_Y * i for i in range(len(heights))]
    middle = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
    left = min((n.x - n.width / 2 for n in nodes), default=0.0) - _MARGIN
    right = max((n.x + n.width / 2 for n in nodes), default=0.0) + _MARGIN
    height = (tops[-1] + heights[-1] if tops else 0.0) + _MARGIN
    lines = [_edge(top, table[key], middle) for key, tops_ in above.items() for top in tops_]
    shapes = [_shape(node, middle[node.layer]) for node in nodes]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right - left:.0f}" height="{height:.0f}" '
        f'viewBox="{left:.1f} 0 {right - left:.1f} {height:.1f}" font-family="Helvetica,Arial,sans-serif" '
        'font-size="12">'
    )
    return "\n".join(
        [
            head,
            _TIP,
            f'<rect x="{left:.1f}" width="{right - left:.1f}" height="{height:.1f}" fill="white"/>',
            *lines,
            *shapes,
            "</svg>\n",
        ]
    )


def _edge(top: Node, bottom: Node, middle: list[float]) -> str:
    y0, y1 = middle[top.layer] + top.height / 2, middle[bottom.layer] - bottom.height / 2
    turn = (y0 + y1) / 2
    tip = "" if bottom.bend else ' marker-end="url(#tip)"'
    path = f"M{top.x:.1f} {y0:.1f}C{top.x:.1f} {turn:.1f} {bottom.x:.1f} {turn:.1f} {bottom.x:.1f} {y1:.1f}"
    return f'<path d="{path}" fill="none" stroke="#667"{tip}/>'


def _shape(node: Node, y: float) -> str:
    w, h = node.width, node.height
    style = f'fill="{escape(node.fill)}" stroke="#556"'
    if node.box:
        body = f'<rect x="{node.x - w / 2:.1f}" y="{y - h / 2:.1f}" width="{w:.1f}" height="{h:.1f}" rx="4" {style}/>'
    else:
        body = f'<ellipse cx="{node.x:.1f}" cy="{y:.1f}" rx="{w / 2:.1f}" ry="{h / 2:.1f}" {style}/>'
    first = y - _LINE * (len(node.lines) - 1) / 2 + 4
    texts = [
        f'<text x="{node.x:.1f}" y="{first + _LINE * i:.1f}" text-anchor="middle" fill="{escape(node.text)}">'
        f"{escape(line)}</text>"
        for i, line in enumerate(node.lines)
    ]
    return body + "".join(texts)
