"""Pictures of a network's graph: functions as boxes, variables as ellipses, parameters tinted.

With graphviz's program `dot` on the PATH the picture is dot's; without it, SVG is drawn here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

from .._core import Variable
from .._errors import ArgumentError, ArgumentTypeError, MissingPackageError, UnsupportedError, describe, message
from .._files import atomic_path
from .._visits import functions_in_order
from ..parameter import get_parameters
from ._drawing import Node, svg

if TYPE_CHECKING:
    from ..utils.profiler import GraphProfiler

_FUNCTION_FILL = "#4a6fa5"
_VARIABLE_FILL = "#eef0f4"
_PARAMETER_FILL = "#f7d6d9"
_TIMES = "\N{MULTIPLICATION SIGN}"


class SimpleGraph:
    """Draws the graph that leads to a variable.

    Args:
        format: Kind of picture: 'svg' always works, 'png', 'pdf' and others need the program `dot`.
        verbose: Also show arguments of functions and `need_grad` of variables.
        fname_color_map: Colours by a function's name, such as `{"Affine": "red"}`.
        vname_color_map: Colours by a variable's name.

    >>> import os, tempfile
    >>> from nnrs import functions as F
    >>> y = F.relu(Variable((2, 3)))
    >>> with tempfile.TemporaryDirectory() as d:
    ...     os.path.basename(SimpleGraph(format="svg").save(y, os.path.join(d, "graph")))
    'graph.svg'
    """

    def __init__(
        self,
        format: str = "png",
        verbose: bool = False,
        fname_color_map: dict[str, str] | None = None,
        vname_color_map: dict[str, str] | None = None,
    ) -> None:
        self._format = format
        self._verbose = verbose
        self._functions = fname_color_map or {}
        self._variables = vname_color_map or {}

    def draw(self, vleaf: Any, params: dict[str, Any] | None = None, profile: GraphProfiler | None = None) -> Picture:
        """The picture as SVG, which a notebook shows. It is always drawn here.

        Args:
            vleaf: Variable whose graph is drawn.
            params: Parameters by name; by default those of the current scope.
            profile: A profiler of this graph that has been run: functions get their times, forward and backward.

        Raises:
            TypeError: If `vleaf` is not a Variable.
            ValueError: If `profile` is of another graph.

        >>> from nnrs import functions as F
        >>> "ReLU" in SimpleGraph().draw(F.relu(Variable((2, 3)))).svg
        True
        """
        nodes = self._nodes(vleaf, params)
        if profile is not None:
            _add_times(nodes, profile)
        return Picture(svg(nodes))

    def save(self, vleaf: Any, fpath: str | os.PathLike[str], cleanup: bool = False, format: str | None = None) -> str:
        """Write the picture to `fpath` with the format as ending, and return that path.

        Args:
            vleaf: Variable whose graph is drawn.
            fpath: Path; the ending is added if it is not there.
            cleanup: Ignored: no other file is left.
            format: Kind of picture, in place of the object's.

        Raises:
            TypeError: If `vleaf` is not a Variable.
            RuntimeError: If the format needs `dot`, which is not installed.
        """
        return self._write(self._nodes(vleaf, None), os.fspath(fpath), format or self._format)

    def view(
        self,
        vleaf: Any,
        fpath: str | os.PathLike[str] | None = None,
        cleanup: bool = True,
        format: str | None = None,
        params: dict[str, Any] | None = None,
    ) -> str:
        """Write the picture (to a temporary folder, if no path is given), open it, and return its path.

        Args:
            vleaf: Variable whose graph is drawn.
            fpath: Path; the ending is added if it is not there.
            cleanup: Ignored: no other file is left.
            format: Kind of picture, in place of the object's.
            params: Parameters by name; by default those of the current scope.
        """
        import webbrowser

        path = os.fspath(fpath) if fpath is not None else os.path.join(tempfile.mkdtemp(prefix="nnrs-"), "graph")
        written = self._write(self._nodes(vleaf, params), path, format or self._format)
        webbrowser.open(f"file://{os.path.abspath(written)}")
        return written

    def create_graphviz_digraph(
        self, vleaf: Any, params: dict[str, Any] | None = None, format: str | None = None
    ) -> Any:
        """The graph as a `graphviz.Digraph` (Python package graphviz).

        Args:
            vleaf: Variable whose graph is drawn.
            params: Parameters by name; by default those of the current scope.
            format: Kind of picture, in place of the object's.
        """
        try:
            import graphviz  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as error:
            hint = "pip install graphviz, or use save(), which does not need it"
            text = message("create_graphviz_digraph", None, "this needs the package graphviz", hint=hint)
            raise MissingPackageError(text) from error
        graph = graphviz.Digraph(format=format or self._format)
        for node in self._nodes(vleaf, params):
            graph.node(node.key, "\n".join(node.lines), **_style(node))
            for key in node.inputs:
                graph.edge(key, node.key)
        return graph

    def _write(self, nodes: list[Node], path: str, kind: str) -> str:
        path = path if path.endswith(f".{kind}") else f"{path}.{kind}"
        dot = shutil.which("dot")
        if dot is None and kind != "svg":
            hint = "use format='svg', or install graphviz (apt install graphviz)"
            raise UnsupportedError(message("SimpleGraph.save", "format", f"'{kind}' needs the program dot", hint=hint))
        picture = svg(nodes).encode() if dot is None else _run_dot(dot, nodes, kind)
        with atomic_path(path) as temporary, open(temporary, "wb") as f:
            f.write(picture)
        return path

    def _nodes(self, vleaf: Any, params: dict[str, Any] | None) -> list[Node]:
        """The graph as nodes, inputs before their users."""
        if not isinstance(vleaf, Variable):
            raise ArgumentTypeError(message("SimpleGraph", "vleaf", "a Variable", describe(vleaf)))
        known = get_parameters(grad_only=False) if params is None else params
        return _Collector(self, {v: name for name, v in known.items()}).collect(vleaf)


class Picture:
    """A picture; `svg` is its text."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def _add_times(nodes: list[Node], profile: GraphProfiler) -> None:
    """Write each function's times below it. Profiler and picture have the functions in one order."""
    from ..utils.profiler import results_of

    result = results_of("SimpleGraph.draw", profile)
    functions = [node for node in nodes if node.box]
    forward, backward = result["forward"], result["backward"]
    if [stat.function_name for stat in forward] != [node.lines[0] for node in functions]:
        raise ArgumentError(message("SimpleGraph.draw", "profile", "a profiler of this graph", "one of another graph"))
    unit = f"{profile.time_scale}s".replace("us", "\N{MICRO SIGN}s")
    for node, f, b in zip(functions, forward, backward, strict=True):
        node.lines.append(f"{float(f.mean_time):.3g} + {float(b.mean_time):.3g} {unit}")


class _Collector:
    """Walks over a graph and makes the nodes of its picture."""

    def __init__(self, graph: SimpleGraph, params: dict[Any, str]) -> None:
        self.graph = graph
        self.params = params
        self.nodes: list[Node] = []
        self.keys: dict[Any, str] = {}

    def collect(self, leaf: Any) -> list[Node]:
        for f in functions_in_order(leaf):
            self._function(f)
        self._variable(leaf)
        return self.nodes

    def _function(self, f: Any) -> None:
        inputs = [self._variable(v) for v in f.inputs]
        names = [self.params[v] for v in f.inputs if v.parent is None and v in self.params]
        scope = names[0].rpartition("/")[0] if names else ""
        lines = [f.name, *([scope] if scope else []), *(_arguments(f) if self.graph._verbose else [])]
        fill = self.graph._functions.get(f.name, _FUNCTION_FILL)
        node = Node(f"f{len(self.nodes)}", lines, True, fill, "white", list(dict.fromkeys(inputs)))
        self.nodes.append(node)
        for v in f.outputs:
            self._variable(v, node.key)

    def _variable(self, v: Any, maker: str | None = None) -> str:
        identity = (v, v.rank)  # the same memory at another rank is another variable of the graph
        if identity not in self.keys:
            self.keys[identity] = f"v{len(self.nodes)}"
            self.nodes.append(self._variable_node(self.keys[identity], v, maker))
        return self.keys[identity]

    def _variable_node(self, key: str, v: Any, maker: str | None) -> Node:
        path = self.params.get(v) if maker is None else None
        name = path.rpartition("/")[2] if path else (v.name or "")
        shape = f" {_TIMES} ".join(str(n) for n in v.shape) or "scalar"
        lines = [*([name] if name else []), shape]
        if self.graph._verbose:
            lines.append(f"need_grad={v.need_grad}")
        fill = self.graph._variables.get(name, _VARIABLE_FILL if path is None else _PARAMETER_FILL)
        return Node(key, lines, False, fill, "#223", [maker] if maker else [])


def _arguments(f: Any) -> list[str]:
    return [f"{key}={json.dumps(value, default=str)}" for key, value in (f.arguments or {}).items()]


def _style(node: Node) -> dict[str, str]:
    shape = "box" if node.box else "ellipse"
    return {"shape": shape, "style": "filled", "fillcolor": node.fill, "fontcolor": node.text, "color": "#555566"}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _run_dot(dot: str, nodes: list[Node], kind: str) -> bytes:
    lines = ["digraph {"]
    for node in nodes:
        style = " ".join(f"{key}={_quoted(value)}" for key, value in _style(node).items())
        lines.append(f"{node.key} [label={_quoted(chr(10).join(node.lines))} {style}]")
        lines.extend(f"{key} -> {node.key}" for key in node.inputs)
    source = "\n".join([*lines, "}"]).encode()
    done = subprocess.run([dot, f"-T{kind}"], input=source, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ArgumentError(message("SimpleGraph.save", "format", f"dot failed: {said}"))
    return done.stdout
