"""Compress a trained network by singular values: layers become pairs of thin ones, then the network is tuned again."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.svd")
    parser.add_argument("--max-iter", "-i", type=int, default=50)
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    parser.add_argument("--rank", "-r", type=int, default=12)
    return parser.parse_args()


def reference(x, test=False):
    with nn.parameter_scope("reference"):
        h = F.relu(PF.convolution(x, 8, (3, 3), pad=(1, 1), stride=(2, 2), name="conv"))
        h = F.relu(PF.affine(h, 48, name="fc1"))
        h = F.relu(PF.affine(h, 32, name="fc2"))
        return PF.affine(h, 10, name="fc3")


def compressed(x, rank, weights):
    """Begins with the best approximation of that rank of each layer of the reference."""
    with nn.parameter_scope("compressed"):
        h = PF.svd_convolution(x, 8, (3, 3), 5, pad=(1, 1), stride=(2, 2), uv_init=weights["conv/conv/W"], name="conv")
        h = F.relu(h)
        for name, n in (("fc1", 48), ("fc2", 32)):
            w, b = weights[name + "/affine/W"], weights[name + "/affine/b"]
            h = F.relu(PF.svd_affine(h, n, rank, uv_init=w, b_init=b, name=name))
        return PF.affine(h, 10, name="fc3")


def count(scope):
    with nn.parameter_scope(scope):
        return sum(p.size for p in nn.get_parameters().values())


def train(loss, scope, data, x, t, args, monitor, name):
    solver = S.Nesterov(0.02, 0.9)
    with nn.parameter_scope(scope):
        solver.set_parameters(nn.get_parameters())
    monitor_loss = MonitorSeries(name, monitor, interval=5)
    monitor_time = MonitorTimeElapsed(name + " time", monitor, interval=25)
    for i in range(args.max_iter):
        x.d, t.d = data.next()
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-4)
        solver.update()
        monitor_loss.add(i, loss.d)
        monitor_time.add(i)


def main():
    args = get_args()
    images, labels = load_digits().images[:320, None].astype(np.float32) / 16, load_digits().target[:320, None]
    data = data_iterator_simple(lambda i: (images[i], labels[i]), 320, args.batch_size, shuffle=True)
    x, t = nn.Variable((args.batch_size, 1, 8, 8)), nn.Variable((args.batch_size, 1))
    monitor = Monitor(args.monitor_path)
    loss = F.mean(F.softmax_cross_entropy(reference(x), t))
    train(loss, "reference", data, x, t, args, monitor, "Reference loss")
    path = os.path.join(args.monitor_path, "reference.h5")
    nn.save_parameters(path)
    nn.clear_parameters()
    nn.load_parameters(path)
    with nn.parameter_scope("reference"):
        weights = {key: p.d.copy() for key, p in nn.get_parameters().items()}

    small = F.mean(F.softmax_cross_entropy(compressed(x, args.rank, weights), t))
    with nn.parameter_scope("compressed/fc3/affine"):
        for key, p in nn.get_parameters().items():
            p.d = weights["fc3/affine/" + key]
    before = MonitorSeries("Loss before tuning", monitor, interval=1)
    for i in range(2):
        x.d, t.d = data.next()
        small.forward()
        before.add(i, small.d)
    train(small, "compressed", data, x, t, args, monitor, "Compressed loss")
    sizes = MonitorSeries("Parameters", monitor, interval=1)
    for i, scope in enumerate(("reference", "compressed")):
        sizes.add(i, count(scope))
    logger.info("compressed to %.0f%%", 100.0 * count("compressed") / count("reference"))
    nn.save_parameters(os.path.join(args.monitor_path, "compressed.protobuf"))


if __name__ == "__main__":
    main()
