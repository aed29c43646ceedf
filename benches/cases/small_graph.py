"""1,000 small nodes: what a node costs when the arithmetic costs nothing.

The mix is a block of ten functions over 16 floats, repeated 100 times, each with a weight and bias of its own:
affine 16x16, tanh, mul_scalar, add2 (skip), sigmoid, mul2 (skip), reshape to 4x4, sum over an axis, sub2 (broadcast),
reshape back. torch runs the same ten operators eagerly; its forward without autograd (its fastest), its backward and
the dynamic row with autograd.
"""

from __future__ import annotations

import time

import numpy as np

from .case import Case, Kit, Step, nabla_step

BLOCKS = 100
NODES = 10 * BLOCKS
WIDTH = 16


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    shapes = [(WIDTH, WIDTH), (WIDTH,)]
    return [tuple(rng.normal(0, 0.25, s).astype(np.float32) for s in shapes) for _ in range(BLOCKS)]


def image() -> np.ndarray:
    return np.linspace(-1, 1, WIDTH, dtype=np.float32)[None]


def nabla_leaves(kit: Kit, need_grad: bool = True):
    def leaf(a):
        v = kit.nn.Variable(a.shape, need_grad=need_grad)
        v.d = a
        return v

    return leaf(image()), [(leaf(w), leaf(b)) for w, b in weights()]


def nabla_graph(F, x, parameters):
    h = x
    for w, b in parameters:
        a = F.tanh(F.affine(h, w, b))
        a = F.add2(F.mul_scalar(a, 0.5), h)
        a = F.mul2(F.sigmoid(a), h)
        a = F.reshape(a, (4, 4))
        h = F.reshape(F.sub2(a, F.sum(a, axis=0, keepdims=True)), (1, WIDTH))
    return h


def torch_leaves(need_grad: bool):
    import torch

    def leaf(a):
        return torch.from_numpy(a).requires_grad_(need_grad)

    return leaf(image()), [(leaf(w), leaf(b)) for w, b in weights()]


def torch_graph(x, parameters):
    import torch

    h = x
    for w, b in parameters:
        a = torch.tanh(torch.addmm(b, h, w))
        a = torch.add(torch.mul(a, 0.5), h)
        a = torch.mul(torch.sigmoid(a), h)
        a = torch.reshape(a, (4, 4))
        h = torch.reshape(torch.sub(a, torch.sum(a, 0, keepdim=True)), (1, WIDTH))
    return h


def nabla_forward(kit: Kit) -> Step:
    y = nabla_graph(kit.F, *nabla_leaves(kit))
    return lambda: y.forward()


def torch_forward() -> Step:
    import torch

    leaves = torch_leaves(False)

    def step():
        with torch.no_grad():
            torch_graph(*leaves)

    return step


def nabla_backward(kit: Kit) -> Step:
    x, parameters = nabla_leaves(kit)
    y = nabla_graph(kit.F, x, parameters)
    return nabla_step(y, [x, *(v for pair in parameters for v in pair)], True)


def torch_backward() -> Step:
    import torch

    x, parameters = torch_leaves(True)
    leaves = [x, *(v for pair in parameters for v in pair)]
    seed = torch.ones(1, WIDTH)

    def step():
        y = torch_graph(x, parameters)
        for v in leaves:
            v.grad = None
        start = time.perf_counter()
        y.backward(seed)
        return time.perf_counter() - start

    return step


def nabla_build(kit: Kit) -> Step:
    leaves = nabla_leaves(kit)

    def step():
        start = time.perf_counter()
        y = nabla_graph(kit.F, *leaves)
        seconds = time.perf_counter() - start
        del y  # freeing is not building
        return seconds

    return step


def nabla_first(kit: Kit, backward: bool) -> Step:
    """A graph that is built anew in each step, as recurrent scripts do: what its first run costs, planning included."""
    leaves = nabla_leaves(kit)

    def step():
        y = nabla_graph(kit.F, *leaves)
        start = time.perf_counter()
        y.forward()
        middle = time.perf_counter()
        y.backward()
        return time.perf_counter() - middle if backward else middle - start

    return step


def nabla_two_plans(kit: Kit) -> Step:
    """Two plans of one graph in turn, forward and backward."""
    y = nabla_graph(kit.F, *nabla_leaves(kit))

    def step():
        y.forward()
        y.backward()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)

    return step


def nabla_dynamic(kit: Kit) -> Step:
    leaves = nabla_leaves(kit)

    def step():
        with kit.nn.auto_forward():
            nabla_graph(kit.F, *leaves)  # dropped here: freeing the history counts

    return step


def torch_dynamic() -> Step:
    leaves = torch_leaves(True)

    def step():
        torch_graph(*leaves)

    return step


CASES = [
    Case(
        "small_graph_forward",
        "static graph of 1,000 small nodes: forward, per node",
        nabla_forward,
        torch_forward,
        {"torch": 0.15, "nnabla": 0.2},
        NODES,
    ),
    Case(
        "small_graph_backward",
        "static graph of 1,000 small nodes: backward, per node",
        nabla_backward,
        torch_backward,
        {"torch": 0.25, "nnabla": 0.2},
        NODES,
    ),
    Case(
        "first_forward",
        "first forward of a static graph of 1,000 small nodes, per node",
        lambda kit: nabla_first(kit, False),
        None,
        {"nnabla": 1.0},
        NODES,
    ),
    Case(
        "first_backward",
        "first backward of a static graph of 1,000 small nodes, per node",
        lambda kit: nabla_first(kit, True),
        None,
        {"nnabla": 1.0},
        NODES,
    ),
    Case(
        "two_plans",
        "two kinds of training steps in turn on one graph, per node and run",
        nabla_two_plans,
        None,
        {"nnabla": 0.2},
        4 * NODES,
    ),
    Case("build_node", "building a static node from Python", nabla_build, None, {"nnabla": 0.06}, NODES),
    Case(
        "dynamic_node",
        "dynamic (auto_forward) node, forward and freed",
        nabla_dynamic,
        torch_dynamic,
        {"torch": 1.2},
        NODES,
    ),
]
