"""MAML on sines: the loss behind a step of gradient descent, differentiated through that step by nn.grad."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed


def get_args():
    parser = argparse.ArgumentParser(description="MAML")
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.maml")
    parser.add_argument("--max-iter", "-i", type=int, default=40)
    parser.add_argument("--num-tasks", type=int, default=4)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--inner-steps", type=int, default=2)
    parser.add_argument("--train-lr", type=float, default=0.02)
    parser.add_argument("--first-order", action="store_true")
    return parser.parse_args()


def forward(x, weights):
    h = x
    for k in range(3):
        h = F.affine(h, weights["fc%d/affine/W" % k], weights["fc%d/affine/b" % k])
        h = F.tanh(h) if k < 2 else h
    return h


def make_weights():
    """The layers are called once so that their parameters are there; then only those are used."""
    h = nn.Variable((1, 1))
    for k, n in enumerate((16, 16, 1)):
        h = PF.affine(h, n, name="fc%d" % k)
    return nn.get_parameters()


def inner_loop(x, y, weights, args):
    losses = []
    for _ in range(args.inner_steps):
        loss = F.mean(F.squared_error(forward(x, weights), y))
        grads = nn.grad([loss], list(weights.values()))
        if args.first_order:
            for g in grads:
                g.need_grad = False
        weights = {k: w - args.train_lr * g for (k, w), g in zip(weights.items(), grads)}
        losses.append(loss)
    return weights, losses


def main():
    args = get_args()
    weights = make_weights()
    variables, before, after = [], [], []
    for _ in range(args.num_tasks):
        xa, ya, xb, yb = (nn.Variable((args.shots, 1)) for _ in range(4))
        fast, losses = inner_loop(xa, ya, weights, args)
        after.append(F.mean(F.squared_error(forward(xb, fast), yb)))
        before.append(losses[0])
        variables.append((xa, ya, xb, yb))
    loss = sum(after) / args.num_tasks
    first = sum(before) / args.num_tasks
    first.persistent = True
    both = F.sink(loss, first)

    solver = S.Adam(3e-3)
    solver.set_parameters(weights)
    monitor = Monitor(args.monitor_path)
    monitor_before = MonitorSeries("Loss before adaptation", monitor, interval=2)
    monitor_after = MonitorSeries("Loss after adaptation", monitor, interval=2)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=10)
    rng = np.random.RandomState(9)
    for i in range(args.max_iter):
        for xa, ya, xb, yb in variables:
            amplitude, phase = rng.uniform(0.5, 2), rng.uniform(0, np.pi)
            xa.d, xb.d = rng.uniform(-3, 3, xa.shape), rng.uniform(-3, 3, xb.shape)
            ya.d, yb.d = amplitude * np.sin(xa.d + phase), amplitude * np.sin(xb.d + phase)
        both.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        if solver.check_inf_or_nan_grad():
            logger.warning("step %d is left out", i)
            continue
        solver.update()
        monitor_before.add(i, first.d)
        monitor_after.add(i, loss.d)
        monitor_time.add(i)
    nn.save_parameters(os.path.join(args.monitor_path, "params.h5"))


if __name__ == "__main__":
    main()
