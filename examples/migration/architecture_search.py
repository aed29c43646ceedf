"""Differentiable architecture search: weights and choices learn in turn, then the best network is trained."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries
from nnabla.parameter import get_parameter_or_create
from nnabla.utils.data_iterator import data_iterator_simple

OPERATIONS = {
    "conv3": lambda x: PF.convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False),
    "conv1": lambda x: PF.convolution(x, 8, (1, 1), with_bias=False),
    "pool": lambda x: F.average_pooling(x, (3, 3), stride=(1, 1), pad=(1, 1)),
    "skip": lambda x: F.identity(x),
}


def mixed(x, name, choice=None, test=False):
    """All operations, weighted; or the one that was chosen."""
    with nn.parameter_scope(name):
        alpha = get_parameter_or_create("alpha", (1, len(OPERATIONS)), initializer=np.zeros((1, len(OPERATIONS))))
        parts = []
        for key in OPERATIONS if choice is None else [choice]:
            with nn.parameter_scope(key):
                parts.append(PF.batch_normalization(F.relu(OPERATIONS[key](x)), batch_stat=not test))
    if choice is not None:
        return parts[0]
    weights = F.split(F.softmax(alpha, axis=1), axis=1)
    return sum(F.reshape(w, (1, 1, 1, 1)) * p for w, p in zip(weights, parts))


def network(x, choices=(None, None), test=False):
    h = PF.convolution(x, 8, (3, 3), stride=(2, 2), pad=(1, 1), name="stem")
    for k, choice in enumerate(choices):
        h = mixed(h, "cell%d" % k, choice, test)
    return PF.affine(F.mean(h, axis=(2, 3)), 10, name="head")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.nas")
    parser.add_argument("--max-iter", "-i", type=int, default=40)
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    args = parser.parse_args()
    images, labels = load_digits().images[:400, None] / 16.0, load_digits().target[:400, None]

    def iterator(first, n, seed):
        load = lambda i: (images[first + i].astype(np.float32), labels[first + i])  # noqa: E731
        return data_iterator_simple(load, n, args.batch_size, shuffle=True, rng=np.random.RandomState(seed))

    train, valid = iterator(0, 200, 1), iterator(200, 200, 2)
    x, t = nn.Variable((args.batch_size, 1, 8, 8)), nn.Variable((args.batch_size, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))

    everything = nn.get_parameters()
    alphas = {k: v for k, v in everything.items() if "alpha" in k}
    solver_w, solver_a = S.Momentum(0.02), S.Adam(0.02, beta1=0.5)
    solver_w.set_parameters({k: v for k, v in everything.items() if k not in alphas})
    solver_a.set_parameters(alphas)
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Search loss", monitor, interval=2)
    monitor_alpha = MonitorSeries("Largest alpha", monitor, interval=2)
    monitor_final = MonitorSeries("Final loss", monitor, interval=2)
    for i in range(args.max_iter):
        for data, solver in ((valid, solver_a), (train, solver_w)):
            x.d, t.d = data.next()
            solver.zero_grad()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
            solver.update()
        monitor_loss.add(i, loss.d)
        monitor_alpha.add(i, max(a.d.max() for a in alphas.values()))

    choices = [list(OPERATIONS)[int(a.d.argmax())] for a in alphas.values()]
    logger.info("chosen: %s", choices)
    with nn.parameter_scope("final"):
        for key in ("stem/conv/W", "stem/conv/b", "head/affine/W", "head/affine/b"):
            nn.parameter.set_parameter(key, everything[key].get_unlinked_variable(need_grad=True))
        final = F.mean(F.softmax_cross_entropy(network(x, choices), t))
        solver = S.Sgd(0.05)
        solver.set_parameters({k: v for k, v in nn.get_parameters().items() if "alpha" not in k})
        for i in range(args.max_iter):
            x.d, t.d = train.next()
            final.forward(clear_no_need_grad=True)
            solver.zero_grad()
            final.backward(clear_buffer=True)
            solver.update()
            monitor_final.add(i, final.d)
        nn.save_parameters(os.path.join(args.monitor_path, "final.h5"))
    logger.info("%d arrays in all", len(nn.get_parameters(grad_only=False)))


if __name__ == "__main__":
    main()
