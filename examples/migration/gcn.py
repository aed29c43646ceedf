"""A graph convolutional network finds the groups of a random graph from a few labelled nodes."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.solvers as S
from nnabla.initializer import ConstantInitializer, UniformInitializer, calc_uniform_lim_glorot
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries
from nnabla.parameter import get_parameter_or_create
from nnabla.parametric_functions import parametric_function_api

GROUPS = 3


def random_graph(rng, nodes):
    """Adjacency with self-loops, normalized on both sides; the nodes' groups."""
    group = rng.randint(GROUPS, size=nodes)
    near = rng.rand(nodes, nodes) < np.where(group[:, None] == group, 0.2, 0.02)
    a = (near | near.T | np.eye(nodes, dtype=bool)).astype(np.float32)
    d = a.sum(axis=1) ** -0.5
    return d[:, None] * a * d, group


@parametric_function_api("gcn")
def gcn(a, x, n_outmaps, with_bias=True, fix_parameters=False):
    """Multiply by the adjacency what an affine layer makes of the nodes."""
    w_init = UniformInitializer(calc_uniform_lim_glorot(x.shape[1], n_outmaps))
    w = get_parameter_or_create("W", (x.shape[1], n_outmaps), w_init, True, not fix_parameters)
    h = F.affine(a, F.affine(x, w))
    if with_bias:
        h = h + get_parameter_or_create("b", (1, n_outmaps), ConstantInitializer(0), True, not fix_parameters)
    return h


def network(a, x, mask=None):
    with nn.parameter_scope("net"):
        h = F.relu(gcn(a, x, 16, name="gcn1"))
        if mask is not None:
            h = h * mask
        return gcn(a, h, GROUPS, name="gcn2")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.gcn")
    parser.add_argument("--max-iter", "-i", type=int, default=80)
    parser.add_argument("--nodes", type=int, default=120)
    parser.add_argument("--dropout", type=float, default=0.3)
    args = parser.parse_args()
    n = args.nodes
    rng = np.random.RandomState(0)
    adjacency, group = random_graph(rng, n)
    a, x, t = nn.Variable((n, n)), nn.Variable((n, n)), nn.Variable((n, 1))
    a.d, x.d, t.d = adjacency, np.eye(n), group[:, None]
    known = nn.Variable((n, 1))
    known.d = (rng.rand(n, 1) < 0.2).astype(np.float32)
    mask = nn.Variable((n, 16))

    loss = F.sum(F.softmax_cross_entropy(network(a, x, mask), t) * known) / float(known.d.sum())
    pred = network(a, x)
    accuracy = 1 - F.mean(F.top_n_error(pred, t))

    weights = {k: v for k, v in nn.get_parameters().items() if k.endswith("W")}
    rest = {k: v for k, v in nn.get_parameters().items() if k not in weights}
    solver, solver_bias = S.AdamW(0.02, wd=5e-3), S.Sgd(0.05)
    solver.set_parameters(weights)
    solver_bias.set_parameters(rest)
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=4)
    monitor_accuracy = MonitorSeries("Accuracy", monitor, interval=4)
    monitor_weight = MonitorSeries("Largest weight", monitor, interval=1)
    for i in range(args.max_iter):
        mask.d = (rng.rand(n, 16) >= args.dropout) / (1 - args.dropout)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        solver_bias.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(5e-3)
        solver.update()
        solver_bias.update()
        accuracy.forward(clear_buffer=True)
        monitor_loss.add(i, loss.d)
        monitor_accuracy.add(i, accuracy.d)
        if i % 10 == 5:
            monitor_weight.add(i, max(float(np.abs(p.d).max()) for p in weights.values()))
            nn.save_parameters(os.path.join(args.monitor_path, "params_%04d.h5" % i))
    logger.info("{} of {} nodes are labelled".format(int(known.d.sum()), n))


if __name__ == "__main__":
    main()
