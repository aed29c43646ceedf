"""Each function of the library on its own, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, Kit, Step
from .function_calls import CALLS, Call
from .function_shapes import SHAPES


def arrays(call: Call) -> list[np.ndarray | None]:
    rng = np.random.default_rng(0)
    made = [rng.normal(size=x) if isinstance(x, tuple) else x(rng) if x is not None else None for x in call.inputs]
    return [x if x is None or x.dtype.kind in "iu" else x.astype(np.float32) for x in made]


def has_gradient(call: Call, x: list[np.ndarray | None]) -> list[bool]:
    asked = call.need_grad or [a is not None and a.dtype.kind == "f" for a in x]
    return [bool(a) and call.backward for a in asked]


def nabla_inputs(kit: Kit, call: Call) -> list[Any]:
    x = arrays(call)
    return [
        None if a is None else kit.nn.Variable.from_numpy_array(a, need_grad=g)
        for a, g in zip(x, has_gradient(call, x), strict=True)
    ]


def nabla_results(kit: Kit, name: str, call: Call, x: list[Any]) -> list[Any]:
    y = call.call(kit.F, *x) if call.call else getattr(kit.F, name)(*x, **call.args)
    return [y] if isinstance(y, kit.nn.Variable) else list(y)


def nabla_root(kit: Kit, ys: list[Any]) -> Any:
    """The result, or what runs all of them."""
    return ys[0] if len(ys) == 1 else kit.F.sink(*ys, one_input_grad=False)


def nabla_forward(kit: Kit, name: str, call: Call) -> Step:
    return nabla_root(kit, nabla_results(kit, name, call, nabla_inputs(kit, call))).forward


def nabla_backward(kit: Kit, name: str, call: Call) -> Step:
    """As inside a network: the results' gradients are arrays, and those of the inputs are written."""
    x = nabla_inputs(kit, call)
    ys = nabla_results(kit, name, call, x)
    root = nabla_root(kit, ys)
    root.forward()
    for y in ys:
        y.g = np.ones(y.shape, np.float32)
    gradients = [v.grad for v in x if v is not None and v.need_grad]

    def step():
        for gradient in gradients:
            gradient.zero()
        root.backward(None)

    return step


def torch_inputs(call: Call, gradients: bool) -> list[Any]:
    import torch

    x = arrays(call)
    tensors = [None if a is None else torch.from_numpy(a) for a in x]
    for tensor, g in zip(tensors, has_gradient(call, x), strict=True):
        if tensor is not None and g and gradients:
            tensor.requires_grad_()
    return tensors


def torch_forward(call: Call) -> Step:
    import torch

    x = torch_inputs(call, gradients=False)

    def step():
        with torch.no_grad():
            call.torch(torch, *x)

    return step


def torch_backward(call: Call) -> Step:
    import torch

    x = torch_inputs(call, gradients=True)
    y = call.torch(torch, *x)
    ys = [v for v in (y if isinstance(y, (list, tuple)) else [y]) if v.requires_grad]
    seeds, leaves = [torch.ones_like(v) for v in ys], [v for v in x if v is not None and v.requires_grad]

    def step():
        torch.autograd.grad(ys, leaves, seeds, retain_graph=True)

    return step


def case(name: str, shape: str, call: Call, is_backward: bool) -> Case:
    nabla, torch = (nabla_backward, torch_backward) if is_backward else (nabla_forward, torch_forward)
    direction = "backward" if is_backward else "forward"
    title = ", ".join(part for part in (name, shape, direction) if part)
    of_torch = (lambda: torch(call)) if call.torch else None
    limits = {"torch": 2.0, "nnabla": 1.0}
    key = ".".join(part.replace(" ", "_") for part in ("functions", name, shape, direction) if part)
    return Case(key, title, lambda kit: nabla(kit, name, call), of_torch, limits)


CASES = [
    case(name, shape, call, is_backward)
    for name, usual in CALLS.items()
    for shape, call in {"": usual, **SHAPES.get(name, {})}.items()
    for is_backward in ([False, True] if call.backward else [False])
]
