"""One rank of a measurement of benches/distributed.py; rank 0 prints what it measured as a line of JSON.

    python distributed_worker.py ENGINE CASE HOW STEPS ROUNDS [--quick] [--timeline FOLDER]

ENGINE is nnrs (by MPI, or alone) or torch (by gloo, or alone: RANK and WORLD_SIZE say). CASE is `mlp`, `resnet` or a
number of bytes to all-reduce. HOW says when gradients are summed: `never`, `behind` backward or `during` it. `parts`
and `parts, never` measure the parts of a step instead, with and without sums behind backward.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import networks, resnet
from cases.case import Kit

PACK = 1 << 21  # numbers of a pack of gradients
SIZES = {"mlp": (128,), "resnet": (16, 112)}
QUICK = {"mlp": (32,), "resnet": (2, 32)}

Step = Callable[[], Any]
Wait = Callable[[], Any]


def pin(rank: int) -> None:
    """A core of its own for each rank, where there are enough of them."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if rank < len(cores):
        os.sched_setaffinity(0, {cores[rank]})


# --- nnrs -------------------------------------------------------------------------------------------------------------


def nnrs_network(case: str, quick: bool) -> tuple[Any, Any]:
    """The loss and the solver, as in benches/cases."""
    kit, size = Kit("nnrs"), (QUICK if quick else SIZES)[case]
    kit.nn.seed(1)
    values, labels = networks.batch((size[0], 784)) if case == "mlp" else resnet.images(*size)
    x, t = kit.nn.Variable(values.shape), kit.nn.Variable(labels.shape)
    x.d, t.d = values, labels
    scores = networks.nabla_mlp_scores(kit, x) if case == "mlp" else resnet.nabla_scores(kit, x, True)
    solver = kit.S.Adam(1e-3) if case == "mlp" else kit.S.Momentum(1e-3)
    solver.set_parameters(kit.nn.get_parameters())
    return kit.F.mean(kit.F.softmax_cross_entropy(scores, t)), solver


def nnrs_rank(args: argparse.Namespace) -> tuple[Step, Wait, int]:
    import nnrs as nn
    import nnrs.communicators as C

    comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context(), deterministic=args.how != "by transport")
    comm.init()
    pin(comm.rank)
    nn.set_num_threads(1)
    if args.case.isdigit():
        array = nn.NdArray.from_numpy_array(np.ones(int(args.case) // 4, np.float32))
        return lambda: comm.all_reduce([array], division=True, inplace=True), comm.barrier, comm.rank
    loss, solver = nnrs_network(args.case, args.quick)
    gradients = [p.grad for p in solver.get_parameters().values()]
    during = comm.all_reduce_callback(gradients, PACK, division=True)
    if args.how.startswith("parts"):
        reduce = (lambda: comm.all_reduce(gradients, division=True)) if args.how == "parts" else (lambda: None)
        return nnrs_parts(loss, solver, comm.barrier, reduce), comm.barrier, comm.rank
    step = nnrs_step(args.how, loss, solver, lambda: comm.all_reduce(gradients, division=True), during)
    return step, comm.barrier, comm.rank


def nnrs_step(how: str, loss: Any, solver: Any, reduce: Step, callback: Any) -> Step:
    callbacks = {"communicator_callbacks": callback} if how == "during" else {}

    def step() -> None:
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True, **callbacks)
        if how == "behind":
            reduce()
        solver.update()

    return step


def nnrs_parts(loss: Any, solver: Any, wait: Wait, reduce: Step) -> Step:
    """Seconds of forward and backward, of the wait for the other ranks, of the sum and of the update."""

    def passes() -> None:
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    def step() -> list[float]:
        at = [time.perf_counter()]
        for part in (passes, wait, reduce, solver.update):
            part()
            at.append(time.perf_counter())
        return [end - begin for begin, end in itertools.pairwise(at)]

    return step


# --- torch ------------------------------------------------------------------------------------------------------------


def torch_network(case: str, quick: bool) -> tuple[Any, Any, Any, Callable[[Any], Any]]:
    """The network, its inputs and what makes its solver."""
    import torch

    torch.manual_seed(1)
    size = (QUICK if quick else SIZES)[case]
    if case == "mlp":
        values, labels = networks.batch((size[0], 784))
        network, x = networks.torch_mlp_layers(), torch.from_numpy(values)
        return network, x, torch.from_numpy(labels[:, 0]), lambda p: torch.optim.Adam(p, lr=1e-3, fused=True)
    values, labels = resnet.images(*size)
    x = torch.from_numpy(values).to(memory_format=torch.channels_last)
    momentum = {"lr": 1e-3, "momentum": 0.9, "fused": True}
    return resnet.torch_network(), x, torch.from_numpy(labels[:, 0]), lambda p: torch.optim.SGD(p, **momentum)


def torch_rank(args: argparse.Namespace) -> tuple[Step, Wait, int]:
    import torch
    import torch.distributed as dist

    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    pin(rank)
    torch.set_num_threads(1)
    if size > 1:
        dist.init_process_group("gloo", rank=rank, world_size=size)
    wait = dist.barrier if size > 1 else lambda: None
    if args.case.isdigit():
        array = torch.ones(int(args.case) // 4)
        return lambda: (dist.all_reduce(array), array.div_(size)), wait, rank
    return torch_step(args, size), wait, rank


def torch_step(args: argparse.Namespace, size: int) -> Step:
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    network, x, t, solver_of = torch_network(args.case, args.quick)
    if size > 1 and args.how != "never":
        network = DistributedDataParallel(network, gradient_as_bucket_view=True)
    solver = solver_of(network.parameters())

    def step() -> None:
        solver.zero_grad()
        cross_entropy(network(x), t).backward()
        solver.step()

    return step


def end_torch() -> None:
    """Threads of gloo abort a process at times that ends as others do, also after `destroy_process_group`."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.barrier()
        os._exit(0)


# --- times ------------------------------------------------------------------------------------------------------------


def times(step: Step, wait: Wait, steps: int, rounds: int) -> list[float]:
    """Seconds of a step in each round of some; the ranks begin and end a round together."""
    for _ in range(3):
        step()
    found = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        found.append((time.perf_counter() - start) / steps)
    return found


def parts(step: Step, steps: int, rounds: int) -> list[float]:
    """The median of each part of a step."""
    found = [step() for _ in range(steps * rounds + 3)][3:]
    return [statistics.median(part) for part in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=("nnrs", "torch"))
    parser.add_argument("case")
    parser.add_argument("how", choices=("never", "behind", "during", "by transport", "parts", "parts, never"))
    parser.add_argument("steps", type=int)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--timeline", type=Path)
    args = parser.parse_args()
    if args.timeline:
        from distributed_timeline import record

        record(args.case, args.quick, args.timeline)
        return
    step, wait, rank = (nnrs_rank if args.engine == "nnrs" else torch_rank)(args)
    is_of_parts = args.how.startswith("parts")
    found = parts(step, args.steps, args.rounds) if is_of_parts else times(step, wait, args.steps, args.rounds)
    if rank == 0:
        print("measured " + json.dumps(found), flush=True)
    if args.engine == "torch":
        end_torch()


if __name__ == "__main__":
    main()
