"""Speeds on one NVIDIA GPU, nnrs beside torch in one process, in turn: steps of networks, a chain of element-wise
functions and Adam, in float and in bfloat16.

    python benches/gpu.py [--case NAME] [--rounds N] [--small]     # --small: sizes for a trial run

A row ends with `ok` or `MISS` against the aim of the project. TF32 is off on both sides unless the row is bfloat16, and
both let cuDNN measure its algorithms; torch may take ones that are not deterministic.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context

try:
    import torch
except ImportError:  # then only nnrs is measured
    torch = None

Step = Callable[[], Any]
DTYPES = {"float": "float32", "bfloat16": "bfloat16"}


@dataclass
class Row:
    """A case in one precision, done by nnrs in one way or several, of which the fastest counts.

    `limits`: the largest share of each rival's time; `bytes`: of least traffic.
    """

    name: str
    nnrs: dict[str, Callable[[str], Step]]
    rivals: dict[str, Callable[[str], Step]] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    bytes: int = 0
    least_share: float = 0.0


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def labels(n: int, classes: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, classes, (n, 1))


# ---- nnrs


def lenet(h):
    for i in range(2):
        h = F.relu(F.max_pooling(PF.convolution(h, 16, (5, 5), name=f"conv{i}"), (2, 2)))
    h = F.relu(PF.affine(h, 50, name="affine0"))
    return PF.affine(h, 10, name="affine1")


def mlp(h):
    for i in range(2):
        h = F.relu(PF.affine(h, 1024, name=f"affine{i}"))
    return PF.affine(h, 10, name="affine2")


def resnet50(h, last: bool = False):
    channels, axes = (3, (1, 2)) if last else (1, (2, 3))

    def unit(h, maps, kernel, name, stride=1, relu=True):
        with nn.parameter_scope(name):
            how = {"pad": ((kernel - 1) // 2,) * 2, "stride": (stride, stride), "channel_last": last}
            h = PF.convolution(h, maps, (kernel, kernel), with_bias=False, **how)
            h = PF.batch_normalization(h, axes=[channels])
        return F.relu(h) if relu else h

    def block(h, maps, stride, name):
        with nn.parameter_scope(name):
            y = unit(unit(h, maps, 1, "a"), maps, 3, "b", stride)
            y = unit(y, 4 * maps, 1, "c", relu=False)
            same = stride == 1 and h.shape[channels] == 4 * maps
            return F.relu(y + (h if same else unit(h, 4 * maps, 1, "s", stride, relu=False)))

    h = F.max_pooling(unit(h, 64, 7, "first", 2), (3, 3), (2, 2), pad=(1, 1), channel_last=last)
    for i, (maps, count) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True)):
        for k in range(count):
            h = block(h, maps, 2 if k == 0 and i else 1, f"{i}{k}")
    return PF.affine(F.mean(h, axis=axes), 1000)


def training(network, shape: tuple[int, ...], classes: int, solver: Callable[[], Any]) -> Callable[[str], Step]:
    def build(kind: str) -> Step:
        nn.clear_parameters()
        with nn.context_scope(get_extension_context("cudnn", type_config=kind)):
            x, t = nn.Variable(shape), nn.Variable((shape[0], 1))
            x.d, t.d = numbers(shape), labels(shape[0], classes)
            loss = F.mean(F.softmax_cross_entropy(network(x), t))
        s = solver()
        s.set_parameters(nn.get_parameters())

        def step() -> None:
            s.zero_grad()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
            s.update()

        return step

    return build


def chain(size: int) -> Callable[[str], Step]:
    def build(kind: str) -> Step:
        with nn.context_scope(get_extension_context("cudnn", type_config=kind)):
            x = nn.Variable((size,))
            x.d = numbers((size,))
            h = x
            for _ in range(10):
                h = F.mul2(F.leaky_relu(F.add_scalar(F.mul_scalar(F.sub2(h, x), 0.5), 0.25), 0.1), x)
        h.forward()
        return lambda: h.forward(clear_no_need_grad=True)

    return build


def adam(size: int) -> Callable[[str], Step]:
    def build(kind: str) -> Step:
        w = nn.Variable((size,), need_grad=True)
        w.d, w.g = numbers((size,)), numbers((size,), 1)
        with nn.context_scope(get_extension_context("cudnn", type_config="float")):
            nn.forward_all([F.identity(w)])  # brings it to the GPU
            g = F.mul_scalar(nn.Variable.from_numpy_array(numbers((size,), 1)), 1.0)
            g.forward()
        w.grad = g.data
        solver = S.Adam(1e-3)
        solver.set_parameters({"w": w})
        return solver.update

    return build


# ---- torch


def torch_net(name: str, kind: str):
    tn = torch.nn
    if name == "mlp":
        return tn.Sequential(tn.Linear(784, 1024), tn.ReLU(), tn.Linear(1024, 1024), tn.ReLU(), tn.Linear(1024, 10))
    if name == "lenet":
        maps = [tn.Conv2d(1, 16, 5), tn.MaxPool2d(2), tn.ReLU(), tn.Conv2d(16, 16, 5), tn.MaxPool2d(2), tn.ReLU()]
        return tn.Sequential(*maps, tn.Flatten(), tn.Linear(256, 50), tn.ReLU(), tn.Linear(50, 10))
    import torchvision

    return torchvision.models.resnet50()


def torch_training(name: str, shape: tuple[int, ...], classes: int, way: str) -> Callable[[str], Step]:
    def build(kind: str) -> Step:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        layout = torch.channels_last if len(shape) == 4 else torch.contiguous_format
        net = torch_net(name, kind).cuda().to(memory_format=layout)
        x = torch.from_numpy(numbers(shape)).cuda().to(memory_format=layout)
        t = torch.from_numpy(labels(shape[0], classes)[:, 0]).cuda()
        if name == "resnet50":
            solver: Any = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        else:
            solver = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True, capturable=way == "graph")
        run = torch.compile(net) if way == "compile" else net

        def step() -> None:
            solver.zero_grad(set_to_none=way != "graph")
            with torch.autocast("cuda", torch.bfloat16, enabled=kind == "bfloat16"):
                loss = torch.nn.functional.cross_entropy(run(x), t)
            loss.backward()
            solver.step()

        if way != "graph":
            return step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return lambda: (graph.replay(), step)  # the graph alone does not keep the batch and the network alive

    return build


def torch_adam(size: int) -> Callable[[str], Step]:
    def build(kind: str) -> Step:
        w = torch.nn.Parameter(torch.from_numpy(numbers((size,))).cuda())
        w.grad = torch.from_numpy(numbers((size,), 1)).cuda()
        return torch.optim.Adam([w], lr=1e-3, fused=True).step

    return build


def rows(small: bool) -> list[Row]:
    image, big, weights = (2, 3, 32, 32), 1 << 16, 1 << 16
    if not small:
        image, big, weights = (64, 3, 224, 224), 64_000_000, 25_600_000
    batch = 4 if small else 64

    def both(name: str, shape: tuple[int, ...], network, classes: int, limits: dict[str, float], solver) -> Row:
        ways = {f"torch {way}": torch_training(name, shape, classes, way) for way in (k[6:] for k in limits)}
        return Row(name, {"nnrs": training(network, shape, classes, solver)}, ways, limits)

    def resnet(limits: dict[str, float]) -> Row:
        def momentum() -> Any:
            return S.Momentum(0.01)

        row = both("resnet50", image, resnet50, 1000, limits, momentum)
        n, maps, *sizes = image
        last = training(lambda h: resnet50(h, last=True), (n, *sizes, maps), 1000, momentum)
        row.nnrs["nnrs channels last"] = last
        return row

    return [
        both("lenet", (batch, 1, 28, 28), lenet, 10, {"torch eager": 0.2, "torch graph": 0.9}, lambda: S.Adam(1e-3)),
        both("mlp", (2 * batch, 784), mlp, 10, {"torch eager": 0.25}, lambda: S.Adam(1e-3)),
        resnet({"torch eager": 1.0, "torch compile": 1.0}),
        Row("chain", {"nnrs": chain(big)}, bytes=2 * big, least_share=0.85),
        Row(
            "adam",
            {"nnrs": adam(weights)},
            {"torch eager": torch_adam(weights)},
            {},
            bytes=7 * weights,
            least_share=1 / 1.1,
        ),
    ]


def wait() -> None:
    cuda.synchronize()
    if torch:
        torch.cuda.synchronize()


def timed(step: Step, repeats: int) -> float:
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    wait()
    return (time.perf_counter() - start) / repeats


def bandwidth() -> float:
    """Bytes a second of one read and one write of a large array, by torch's copy (or 0)."""
    if not torch or not torch.cuda.is_available():
        return 0.0
    x, y = torch.empty(1 << 28, device="cuda"), torch.empty(1 << 28, device="cuda")
    seconds = [timed(lambda: y.copy_(x), 10) for _ in range(3)]
    return 2 * 4 * (1 << 28) / min(seconds)


def prepared(build: Callable[[str], Step], kind: str) -> Step:
    """A step that has its plans, caches and captures."""
    step = build(kind)
    timed(step, 6)
    return step


def rivals(row: Row, kind: str) -> tuple[dict[str, Step], dict[str, str]]:
    """Those of the row that work here, and why others do not: nnrs is measured all the same."""
    steps, missing = {}, {}
    for name, build in row.rivals.items():
        try:
            if not torch or not torch.cuda.is_available():
                raise RuntimeError("no torch with CUDA" if torch else "no torch")
            steps[name] = prepared(build, kind)
        except Exception as e:  # whatever another's code says
            missing[name] = f"{type(e).__name__}: {e}".splitlines()[0]
    return steps, missing


def measure(row: Row, kind: str, rounds: int, peak: float) -> tuple[str, bool]:
    """The row's text, and whether all that it compares with was there."""
    steps = {name: prepared(build, kind) for name, build in row.nnrs.items()}
    others, missing = rivals(row, kind)
    steps |= others
    once = {name: max(1, int(0.05 / max(timed(step, 1), 1e-6))) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(timed(step, min(once[name], 200)))
    best = {name: statistics.median(found) for name, found in times.items()}
    own = min(best[name] for name in row.nnrs)
    text = f"{row.name:9} {kind:9} " + ", ".join(f"{name} {best[name] * 1e6:10.1f} us" for name in row.nnrs)
    for name, seconds in best.items():
        if name not in row.nnrs:
            ratio, limit = own / seconds, row.limits.get(name)
            verdict = "" if limit is None else " ok" if ratio <= limit else f" MISS ({limit})"
            text += f" | {name} {seconds * 1e6:.1f} us, ratio {ratio:.3f}{verdict}"
    if row.bytes and peak:
        size = 4 if kind == "float" or row.name == "adam" else 2
        share = row.bytes * size / own / peak
        text += f" | {share:.2f} of bandwidth{' ok' if share >= row.least_share else f' MISS ({row.least_share:.2f})'}"
    elif row.bytes:
        missing["bandwidth"] = "torch measures it"
    text += "".join(f" | {name} NOT MEASURED ({why})" for name, why in missing.items())
    return text, not missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", help="only this row")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="small sizes, to try the script")
    args = parser.parse_args()
    cuda.set_autotune(True)  # as torch's `cudnn.benchmark`
    peak = bandwidth()
    print(f"{cuda.device_name()}, nnrs {nn.__version__}, torch {torch.__version__ if torch else 'not there'}")
    if peak:
        print(f"copies move {peak / 1e12:.2f} TB/s, read and written")
    failed = 0
    for row in rows(args.small):
        for kind in DTYPES:
            if (args.case and row.name != args.case) or (row.name == "adam" and kind != "float"):
                continue
            try:
                text, whole = measure(row, kind, args.rounds, peak)
                failed += not whole
                print(text, flush=True)
            except Exception as e:  # the other rows are worth having
                failed += 1
                print(f"{row.name:9} {kind:9} failed: {type(e).__name__}: {e}", flush=True)
    print("functions that ran on the host:", ", ".join(cuda.functions_on_host()) or "none")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
