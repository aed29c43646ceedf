"""How variables, arrays, functions and parameters show themselves in a notebook (`_repr_html_`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ._core import Error, Function, NdArray, Variable

_MOST_VALUES = 1000
_MOST_FUNCTIONS = 60


def escape(text: str) -> str:
    """Text as HTML shows it."""
    import html  # here, since only notebooks ask

    return html.escape(text)


class ParameterDict(OrderedDict[str, Any]):
    """An `OrderedDict` of parameters; a notebook shows it as a table."""

    def __repr__(self) -> str:
        return repr(OrderedDict(self))

    def __reduce__(self) -> Any:
        return OrderedDict, (list(self.items()),)

    def _repr_html_(self) -> str:
        total = sum(v.size for v in self.values())
        head = "<tr><th>parameter</th><th>shape</th><th>size</th><th>type</th><th>need_grad</th></tr>"
        rows = "".join(map(_row, self, self.values()))
        return f"<table>{head}{rows}</table><p>{len(self)} parameters, {total:,} numbers</p>"


def _row(name: str, v: Variable) -> str:
    cells = (name, v.shape, f"{v.size:,}", _type(v.data), v.need_grad)
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _type(a: NdArray) -> str:
    return str(getattr(a.dtype, "__name__", a.dtype))


def array_html(a: NdArray) -> str:
    """An array: shape, type, and its values if they are few."""
    return f"<code>NdArray {a.shape} {escape(_type(a))}</code>{_values(a)}"


def variable_html(v: Variable) -> str:
    """A variable: what it is, its values and gradient if they are few, its graph if that is small."""
    name = f" '{v.name}'" if v.name else ""
    maker = f", from {v.parent.name}" if v.parent is not None else ""
    text = f"Variable{name} {v.shape} {_type(v.data)}, need_grad={v.need_grad}{maker}"
    gradient = _folded("gradient", _values(v.grad)) if v.need_grad else ""
    return f"<code>{escape(text)}</code>{_values(v.data)}{gradient}{_graph(v)}"


def function_html(f: Function) -> str:
    """A function: its arguments, and the shapes of inputs and outputs."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in f.args.items())
    shapes = f"{_shapes(f.inputs)} \N{RIGHTWARDS ARROW} {_shapes(f.outputs)}"
    return f"<code>{escape(f'{f.name}({arguments})')}</code><pre>{escape(shapes)}</pre>"


def _shapes(variables: list[Variable]) -> str:
    return ", ".join(str(v.shape) for v in variables)


def _values(a: NdArray) -> str:
    if a.size > _MOST_VALUES:
        return ""
    try:
        return f"<pre>{escape(repr(a.get_data('r')))}</pre>"
    except Error as error:  # it was not kept
        return f"<pre>{escape(str(error))}</pre>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>" if content else ""


def _graph(v: Variable) -> str:
    """The picture of a graph that is not too large."""
    count = 0

    def is_much(f: Function) -> bool:
        nonlocal count
        count += 1
        return count > _MOST_FUNCTIONS

    if v.parent is None or v.visit_check(is_much):
        return ""
    from .experimental.viewers import SimpleGraph

    return _folded(f"graph: {count} function{'s' if count > 1 else ''}", SimpleGraph().draw(v).svg)


def _attach(kind: Any, html: Callable[[Any], str]) -> None:
    def _repr_html_(self: Any) -> str:
        return html(self)

    kind._repr_html_ = _repr_html_


_attach(Variable, variable_html)
_attach(NdArray, array_html)
_attach(Function, function_html)
