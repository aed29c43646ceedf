"""How the steps' operations are called in nnrs, and how a trace reads as a script."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnrs as nn
import nnrs.functions as F
from nnrs import backward_functions
from nnrs.function import PythonFunction

INPLACE = ("relu", "leaky_relu", "add2", "sub2", "mul2", "add_scalar", "mul_scalar", "pow_scalar")


class Square(PythonFunction):
    """x x, in Python."""

    name = "MachineSquare"

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].data.copy_from(inputs[0].data * inputs[0].data)  # `.d =` would make a fresh array float32

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
        if propagate_down[0]:
            g = inputs[0].data * outputs[0].grad * 2.0
            inputs[0].grad.copy_from(inputs[0].grad + g if accum[0] else g)

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        return True

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        return False


def _square_rule(grad_inputs: Any, inputs: Any, input_shapes: Any, outputs: Any, output_shapes: Any, **_: Any) -> Any:
    return grad_inputs[0] * inputs[0] * 2.0


def prepare() -> None:
    """Tells nnrs the gradient of the Python function."""
    backward_functions.register(Square.name, _square_rule)


def _keywords(op: str, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as nnrs has them."""
    if op == "slice":
        keys = args["key"]
        return {"start": [k.start for k in keys], "stop": [k.stop for k in keys], "step": [k.step for k in keys]}
    return {k: v for k, v in args.items() if k not in ("cell", "n")} | ({"p": 0.5} if op == "dropout" else {})


def call(op: str, x: list[nn.Variable], args: dict[str, Any], inplace: bool) -> list[nn.Variable]:
    """Applies the function; always a list of outputs."""
    if op == "square":
        return [Square()(*x)]
    extra = {"inplace": inplace} if op in INPLACE else {}
    y = getattr(F, op)(*x, **_keywords(op, args), **extra)
    return list(y) if isinstance(y, (tuple, list)) else [y]


def values(seed: int, shape: tuple[int, ...]) -> Any:
    """Numbers of a step: never 0, so that kinks are not met by chance."""
    rng = np.random.default_rng(seed)
    return np.asarray(np.round(rng.uniform(0.1, 1.3, shape) * rng.choice([-1.0, 1.0], shape), 3))


def line(kind: str, a: dict[str, Any]) -> str:
    """A step as a line of a script; `values` is the function above."""
    of = lambda ids: ", ".join(f"v{i}" for i in ids)  # noqa: E731
    flags = ", ".join(f"{k}={a[k]!r}" for k in ("clear_buffer", "clear_no_need_grad") if a.get(k))
    if kind == "apply":
        keywords = "".join(f", {k}={v!r}" for k, v in _keywords(a["op"], a["args"]).items())
        name = "Square()" if a["op"] == "square" else f"F.{a['op']}"
        text = f"{of(a['new'])} = {name}({of(a['x'])}{keywords})"
        return text + "".join(
            f"  # {k}" for k in (a["mode"], "recompute" if a["mark"] else "") if k not in ("static", "")
        )
    lines = {
        "leaf": "v{new} = leaf(values({seed}, {shape}), need_grad={need})",
        "forget": "v{new} = F.forget(lambda v: {ops}, v{x})",
        "write": "v{i}.d = values({seed}, v{i}.shape)  # by {how}",
        "write_grad": "v{i}.g = {value}",
        "need": "v{i}.need_grad = {value}",
        "persistent": "v{i}.persistent = {value}",
        "recompute": "v{i}.recompute = {value}",
        "rewire": "v{i}.rewire_on(v{other})",
        "unlink": "v{new} = v{i}.get_unlinked_variable(need_grad={need})",
        "cut": "v{i}.parent = None",
        "drop": "del v{i}",
        "release": "del a{k}",
        "read": "a{k}  # read",
        "share": "v{i}.{what} = v{other}.{what}",
        "fresh": "v{i}.{what} = an array of numbers of {seed}",
        "walk": "# all that v{i} leads to is read: {what}, visit: {visit}",
        "fusion": "nn.set_fusion({on})",
        "threads": "nn.set_num_threads({n})",
        "check": "v{i}.d, v{i}.g",
        "check_all": "# all that is held is read",
        "peek": "v{new} = v{i}.parent.inputs[{k}]; v{new}.d",
        "view": "views.append(v{i}.d)",
        "unview": "views.clear()",
    }
    if kind == "forward":
        return f"nn.forward_all([{of(a['roots'])}], {flags})  # hooks: {a['hooks']}"
    if kind == "backward":
        return f"v{a['i']}.backward({a['seed']!r}, {flags})  # hooks: {a['hooks']}"
    if kind == "grad":
        call = f"nn.grad([{of(a['y'])}], [{of(a['x'])}], {a['seed']!r}, bind_grad_output={a.get('bind')!r})"
        return f"{of(a['new'])} = {call}  # {a['mode']}"
    if kind == "hold":
        name = {"d": "data", "g": "grad"}[a["what"]]
        how = {"narrow": ".narrow(0, 0, 1)", "view": f".view([v{a['i']}.size])", "numpy": ".get_data('r')"}
        return f"a{a['new']} = v{a['i']}.{name}{how.get(a['how'], '')}"
    if kind == "reset":
        return "; ".join(f"v{i}.reset_shape(({a['n']}, *v{i}.shape[1:]), True)" for i in a["ids"]) + f"  # {a['seed']}"
    return lines[kind].format(**a)


def script(double: bool, steps: list[tuple[str, dict[str, Any]]]) -> str:
    """The steps as text."""
    head = f"# type_config={'double' if double else 'float'}"
    return "\n".join([head, *(line(kind, a) for kind, a in steps)])
