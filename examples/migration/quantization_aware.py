"""Train in float, go on with weights and activations in 8 bits and then with binary weights, from one .h5 file."""

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
from nnabla.utils.data_iterator import data_iterator_simple


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.quantization")
    parser.add_argument("--max-iter", "-i", type=int, default=40, help="steps of each phase")
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    parser.add_argument("--delta", type=float, default=2**-6)
    return parser.parse_args()


def float_network(x, args, test=False):
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False, name="conv")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=not test, name="bn")), (2, 2))
    h = F.relu(PF.affine(h, 32, name="fc1"))
    return PF.affine(h, 10, name="fc2")


def fixed_point_network(x, args, test=False):
    """The same names of parameters, so that the float network's are where these begin."""
    q = dict(n_w=8, delta_w=args.delta, n_b=8, delta_b=args.delta)
    h = PF.fixed_point_quantized_convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False, name="conv", **q)
    h = PF.batch_normalization(h, batch_stat=not test, name="bn")
    h = F.max_pooling(F.fixed_point_quantize(F.relu(h), sign=False, n=8, delta=2**-4), (2, 2))
    h = PF.fixed_point_quantized_affine(h, 32, name="fc1", **q)
    h = PF.min_max_quantize(F.relu(h), decay=0.9, name="activation", x_min_max=not test)
    return PF.fixed_point_quantized_affine(h, 10, name="fc2", **q)


def binary_network(x, args, test=False):
    h = PF.binary_weight_convolution(x, 8, (3, 3), pad=(1, 1), with_bias=False, name="bin_conv")
    h = F.max_pooling(F.binary_tanh(PF.batch_normalization(h, batch_stat=not test, name="bin_bn")), (2, 2))
    h = F.relu(PF.binary_connect_affine(h, 32, name="bin_fc1"))
    return PF.pow2_quantized_affine(h, 10, name="bin_fc2", n_w=4)


def train(name, network, data, args, monitor, test_images, test_labels):
    x, t = nn.Variable((args.batch_size, 1, 8, 8)), nn.Variable((args.batch_size, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x, args), t))
    vx = nn.Variable(test_images.shape)
    vpred = network(vx, args, test=True)
    vx.d = test_images
    solver = S.Adam(3e-3)
    solver.set_parameters(nn.get_parameters(), reset=True)
    monitor_loss = MonitorSeries(name + " loss", monitor, interval=2)
    monitor_error = MonitorSeries(name + " error", monitor, interval=1)
    for i in range(args.max_iter):
        x.d, t.d = data.next()
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        monitor_loss.add(i, loss.d)
        if i % 10 == 3:
            vpred.forward(clear_buffer=True)
            monitor_error.add(i, (vpred.d.argmax(axis=1) != test_labels[:, 0]).mean())


def main():
    args = get_args()
    images = load_digits().images[:400, None].astype(np.float32) / 16
    labels = load_digits().target[:400, None]
    data = data_iterator_simple(lambda i: (images[i], labels[i]), 320, args.batch_size, shuffle=True)
    monitor = Monitor(args.monitor_path)
    rest = images[320:], labels[320:]
    train("Float", float_network, data, args, monitor, *rest)
    path = os.path.join(args.monitor_path, "float.h5")
    nn.save_parameters(path)
    nn.clear_parameters()
    nn.load_parameters(path)
    train("Fixed point", fixed_point_network, data, args, monitor, *rest)
    for key, p in nn.get_parameters(grad_only=False).items():
        if key.endswith("W_q"):
            logger.info("%s: %d values", key, len(np.unique(p.d)))
            assert np.allclose(p.d / args.delta, np.round(p.d / args.delta))
    nn.clear_parameters()
    train("Binary", binary_network, data, args, monitor, *rest)


if __name__ == "__main__":
    main()
