"""Prune a trained network by magnitude, in rounds: parameters are read, cut and put back between two solvers."""

import argparse
import os
from collections import OrderedDict

import numpy as np
from sklearn.datasets import load_iris

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries
from nnabla.parameter import get_parameter, pop_parameter, set_parameter
from nnabla.utils.data_iterator import data_iterator_simple


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.pruning")
    parser.add_argument("--max-iter", "-i", type=int, default=40, help="steps of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.4)
    return parser.parse_args()


def network(x, n_first=24):
    with nn.parameter_scope("classifier"):
        h = F.relu(PF.affine(x, n_first, name="fc1"))
        h = F.relu(PF.affine(h, 24, name="fc2"))
        return PF.affine(h, 3, name="fc3")


def prune(masks, rate):
    """Weights below the quantile of their array are 0 from now on."""
    for key, p in nn.get_parameters(grad_only=False).items():
        if not key.endswith("/W"):
            continue
        alive = np.abs(p.d[masks[key] > 0]) if key in masks else np.abs(p.d)
        masks[key] = (np.abs(p.d) > np.quantile(alive, rate)).astype(np.float32)
        p.d = p.d * masks[key]


def drop_dead_units():
    """Units of the first layer that nothing leaves: the layers around them become smaller."""
    with nn.parameter_scope("classifier"):
        w2 = get_parameter("fc2/affine/W").d
        alive = np.flatnonzero(np.abs(w2).sum(axis=1))
        w1, b1 = pop_parameter("fc1/affine/W"), pop_parameter("fc1/affine/b")
        set_parameter("fc1/affine/W", nn.Variable.from_numpy_array(w1.d[:, alive], need_grad=True))
        set_parameter("fc1/affine/b", nn.Variable.from_numpy_array(b1.d[alive], need_grad=True))
        set_parameter("fc2/affine/W", nn.Variable.from_numpy_array(w2[alive], need_grad=True))
    return len(alive)


def main():
    args = get_args()
    iris = load_iris()
    features = ((iris.data - iris.data.mean(axis=0)) / iris.data.std(axis=0)).astype(np.float32)
    rng = np.random.RandomState(8)
    data = data_iterator_simple(lambda i: (features[i], iris.target[i : i + 1]), 150, 30, True, rng)
    x, t = nn.Variable((30, 4)), nn.Variable((30, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=4)
    monitor_left = MonitorSeries("Weights left", monitor, interval=1)
    solver = S.RMSprop(0.005)
    masks = OrderedDict()
    step = 0
    for k in range(args.rounds):
        solver.set_parameters(nn.get_parameters(), reset=False)  # given again: the states stay
        for _ in range(args.max_iter):
            x.d, t.d = data.next()
            loss.forward()
            solver.zero_grad()
            loss.backward()
            for key, p in solver.get_parameters().items():
                if key in masks:
                    p.g *= masks[key]
            solver.update()
            monitor_loss.add(step, loss.d)
            step += 1
        nn.save_parameters(os.path.join(args.monitor_path, "round_%d.h5" % k))
        prune(masks, args.rate)
        monitor_left.add(step, sum(int((p.d != 0).sum()) for p in nn.get_parameters().values()))

    loss.forward()
    before = float(loss.d)
    alive = drop_dead_units()
    small = F.mean(F.softmax_cross_entropy(network(x, alive), t))
    small.forward(clear_buffer=True)
    logger.info("%d units left, loss %g and %g", alive, before, small.d)
    assert abs(before - small.d) < 1e-5
    solver.set_parameters(nn.get_parameters(), reset=True)
    for _ in range(args.max_iter):
        x.d, t.d = data.next()
        small.forward()
        solver.zero_grad()
        small.backward(clear_buffer=True)
        solver.update()
        monitor_loss.add(step, small.d)
        step += 1
    solver.save_states(os.path.join(args.monitor_path, "states.h5"))


if __name__ == "__main__":
    main()
