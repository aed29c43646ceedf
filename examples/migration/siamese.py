"""Embed noisy patterns in two dimensions: two branches share their weights, pairs are near or far."""

import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
import nnabla.logger as logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple
from nnabla.utils.data_source import DataSource
from nnabla.utils.data_iterator import data_iterator


def get_args(monitor_path="tmp.monitor.siamese", max_iter=100, batch_size=32):
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", type=str, default=monitor_path)
    parser.add_argument("--max-iter", "-i", type=int, default=max_iter)
    parser.add_argument("--batch-size", "-b", type=int, default=batch_size)
    args = parser.parse_args()
    if not os.path.isdir(args.monitor_path):
        os.makedirs(args.monitor_path)
    return args


class PairSource(DataSource):
    """Pairs of samples, half of them of one class."""

    def __init__(self, x, y, shuffle=True, rng=None):
        super(PairSource, self).__init__(shuffle=shuffle, rng=rng)
        self._x, self._y = x, y
        self._size = len(x)
        self._variables = ("x0", "x1", "label")
        self.reset()

    def reset(self):
        self._order = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super(PairSource, self).reset()

    def _get_data(self, position):
        i, j = self._order[position], position
        return self._x[i], self._x[j], np.array([self._y[i] == self._y[j]], np.float32)


def embed(x, test=False):
    with nn.parameter_scope("embed"):
        h = F.elu(PF.affine(x, 32, name="fc1"))
        h = F.elu(PF.affine(h, 16, name="fc2"))
        return PF.affine(h, 2, name="out")


def contrastive_loss(sd, l, margin=1.0, eps=1e-4):
    sim_cost = l * sd
    dissim_cost = (1 - l) * (F.maximum_scalar(margin - (sd + eps) ** 0.5, 0) ** 2)
    return sim_cost + dissim_cost


def main():
    args = get_args()
    rng = np.random.RandomState(7)
    centres = rng.randn(4, 16).astype(np.float32)
    y = rng.randint(4, size=256)
    x = (centres[y] + 0.5 * rng.randn(256, 16)).astype(np.float32)
    pairs = data_iterator(PairSource(x, y, rng=np.random.RandomState(1)), args.batch_size, with_memory_cache=False)
    single = data_iterator_simple(lambda i: (x[i], y[i : i + 1]), 256, 64)

    x0, x1 = nn.Variable((args.batch_size, 16)), nn.Variable((args.batch_size, 16))
    label = nn.Variable((args.batch_size, 1))
    e0, e1 = embed(x0), embed(x1)
    sd = F.sum((e0 - e1) ** 2, axis=1, keepdims=True)
    loss = F.mean(contrastive_loss(sd, label))
    vx = nn.Variable((64, 16))
    feature = embed(vx, test=True)

    solver = S.Adam(0.01)
    with nn.parameter_scope("embed"):
        solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=5)
    monitor_spread = MonitorSeries("Spread of a class", monitor, interval=1)
    monitor_time = MonitorTimeElapsed("Training time", monitor, interval=50)
    for i in range(args.max_iter):
        x0.d, x1.d, label.d = pairs.next()
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
        monitor_loss.add(i, loss.d)
        monitor_time.add(i)
        if i % 20 == 4:
            vx.d, vy = single.next()
            feature.forward(clear_buffer=True)
            f, vy = feature.d, vy.ravel()
            monitor_spread.add(i, np.mean([f[vy == k].std(axis=0).mean() for k in range(4)]))
            nn.save_parameters(os.path.join(args.monitor_path, "params_%06d.h5" % i))
    logger.info("parameters: %s" % sorted(nn.get_parameters()))


if __name__ == "__main__":
    main()
