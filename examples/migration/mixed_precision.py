"""Train in half precision with a loss scale that follows overflows, and beside it by DynamicLossScalingUpdater."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.experimental.mixed_precision_training import DynamicLossScalingUpdater
from nnabla.ext_utils import get_extension_context
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.mixed_precision")
    parser.add_argument("--max-iter", "-i", type=int, default=30, help="steps of each phase")
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    parser.add_argument("--type-config", "-t", default="half")
    parser.add_argument("--loss-scale", type=float, default=2.0**20)
    parser.add_argument("--scaling-interval", type=int, default=8)
    return parser.parse_args()


def network(x, test=False):
    with nn.parameter_scope("net"):
        h = PF.convolution(x, 8, (3, 3), stride=(2, 2), pad=(1, 1), with_bias=False, name="conv")
        h = F.relu(PF.batch_normalization(h, batch_stat=not test))
        h = F.tanh(PF.affine(h, 32, name="fc1"))
        return PF.affine(h, 10, name="fc2")


class Scaler(object):
    """Makes the scale smaller where a gradient overflows, larger after some steps without."""

    def __init__(self, solver, scale, interval, factor=2.0**12):
        self.solver, self.scale, self.interval, self.factor = solver, scale, interval, factor
        self.good = 0

    def update(self, loss):
        self.solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(self.scale, clear_buffer=True)
        if self.solver.check_inf_or_nan_grad():
            self.scale /= self.factor
            self.good = 0
            return False
        self.solver.scale_grad(1.0 / self.scale)
        self.solver.update()
        self.good += 1
        if self.good > self.interval:
            self.scale *= self.factor
            self.good = 0
        return True


def main():
    args = get_args()
    ctx = get_extension_context("cpu", type_config=args.type_config)
    nn.set_default_context(ctx)
    logger.info("context: {}".format(ctx.backend))
    images, labels = load_digits().images[:320, None] / 16.0, load_digits().target[:320, None]
    data = data_iterator_simple(lambda i: (images[i].astype(np.float32), labels[i]), 320, args.batch_size, shuffle=True)
    x, t = nn.Variable((args.batch_size, 1, 8, 8)), nn.Variable((args.batch_size, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    solver = S.Momentum(0.05, 0.9)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=2)
    monitor_scale = MonitorSeries("Loss scale", monitor, interval=1)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=10)
    scaler = Scaler(solver, args.loss_scale, args.scaling_interval)
    for i in range(args.max_iter):
        x.d, t.d = data.next()
        done = scaler.update(loss)
        monitor_scale.add(i, np.log2(scaler.scale))
        if done:
            monitor_loss.add(i, float(loss.d))
        monitor_time.add(i)

    def feed():
        x.d, t.d = data.next()

    monitor_loss = MonitorSeries("Training loss of the updater", monitor, interval=2)
    updater = DynamicLossScalingUpdater(solver, loss, feed, scale=8.0, scaling_factor=2.0, N=args.scaling_interval)
    for i in range(args.max_iter):
        updater.update()
        monitor_loss.add(i, float(loss.d))
        monitor_scale.add(args.max_iter + i, np.log2(updater.scale))
    nn.save_parameters(os.path.join(args.monitor_path, "params.h5"))
    logger.info("weights are {}".format(nn.get_parameters()["net/fc1/affine/W"].data.dtype))


if __name__ == "__main__":
    main()
