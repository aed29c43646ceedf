"""A small DCGAN on the digits: the discriminator sees an unlinked copy of what the generator made."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

import nnabla as nn
import nnabla.functions as F
import nnabla.monitor as M
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.ext_utils import get_extension_context
from nnabla.utils.data_iterator import data_iterator_simple


def generator(z, maxh=32, test=False, output_hidden=False):
    with nn.parameter_scope("gen"):
        with nn.parameter_scope("deconv1"):
            d1 = F.elu(PF.batch_normalization(PF.deconvolution(z, maxh, (4, 4), with_bias=False), batch_stat=not test))
        with nn.parameter_scope("deconv2"):
            x = F.tanh(PF.deconvolution(d1, 1, (4, 4), pad=(1, 1), stride=(2, 2)))
    return (x, [d1]) if output_hidden else x


def discriminator(x, maxh=32, test=False):
    with nn.parameter_scope("dis"):
        with nn.parameter_scope("conv1"):
            c1 = F.elu(PF.convolution(x, maxh // 2, (4, 4), pad=(1, 1), stride=(2, 2), with_bias=False))
        with nn.parameter_scope("conv2"):
            c2 = PF.convolution(c1, maxh, (4, 4), pad=(1, 1), stride=(2, 2), with_bias=False)
            c2 = F.elu(PF.batch_normalization(c2, batch_stat=not test))
        with nn.parameter_scope("fc"):
            return PF.affine(c2, 1)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.gan")
    parser.add_argument("--max-iter", "-i", type=int, default=60)
    parser.add_argument("--batch-size", "-b", type=int, default=16)
    parser.add_argument("--learning-rate", "-l", type=float, default=0.0002)
    parser.add_argument("--model-save-interval", "-s", type=int, default=20)
    parser.add_argument("--context", "-c", default="cpu")
    return parser.parse_args()


def train(args):
    nn.set_default_context(get_extension_context(args.context, device_id="0"))
    z = nn.Variable([args.batch_size, 16, 1, 1])
    fake = generator(z)
    fake.persistent = True  # not to clear at backward
    pred_fake = discriminator(fake)
    loss_gen = F.mean(F.sigmoid_cross_entropy(pred_fake, F.constant(1, pred_fake.shape)))
    fake_dis = fake.get_unlinked_variable(need_grad=True)
    fake_dis.need_grad = True
    pred_fake_dis = discriminator(fake_dis)
    loss_dis = F.mean(F.sigmoid_cross_entropy(pred_fake_dis, F.constant(0, pred_fake_dis.shape)))
    x = nn.Variable([args.batch_size, 1, 8, 8])
    pred_real = discriminator(x)
    loss_dis += F.mean(F.sigmoid_cross_entropy(pred_real, F.constant(1, pred_real.shape)))

    solver_gen, solver_dis = S.Adam(args.learning_rate, beta1=0.5), S.Adam(args.learning_rate, beta1=0.5)
    with nn.parameter_scope("gen"):
        solver_gen.set_parameters(nn.get_parameters())
    with nn.parameter_scope("dis"):
        solver_dis.set_parameters(nn.get_parameters())

    monitor = M.Monitor(args.monitor_path)
    monitor_loss_gen = M.MonitorSeries("Generator loss", monitor, interval=5)
    monitor_loss_dis = M.MonitorSeries("Discriminator loss", monitor, interval=5)
    monitor_mean = M.MonitorSeries("Fake mean", monitor, interval=5)
    monitor_time = M.MonitorTimeElapsed("Time", monitor, interval=20)
    monitor_fake = M.MonitorImageTile("Fake images", monitor, interval=20, normalize_method=lambda x: (x + 1) / 2.0)

    images = load_digits().images[:320, None].astype(np.float32)
    data = data_iterator_simple(lambda i: (images[i],), 320, args.batch_size, True, rng=np.random.RandomState(412))
    rng = np.random.RandomState(412)
    for i in range(args.max_iter):
        if i % args.model_save_interval == 0:
            with nn.parameter_scope("gen"):
                nn.save_parameters(os.path.join(args.monitor_path, "generator_param_%06d.h5" % i))
            with nn.parameter_scope("dis"):
                nn.save_parameters(os.path.join(args.monitor_path, "discriminator_param_%06d.h5" % i))
        x.d = data.next()[0] / 8.0 - 1.0
        z.d = rng.randn(*z.shape)

        solver_gen.zero_grad()
        loss_gen.forward(clear_no_need_grad=True)
        loss_gen.backward(clear_buffer=True)
        solver_gen.weight_decay(0.0001)
        solver_gen.update()
        monitor_fake.add(i, fake)
        monitor_loss_gen.add(i, loss_gen.d.copy())
        monitor_mean.add(i, fake.d.mean())

        solver_dis.zero_grad()
        loss_dis.forward(clear_no_need_grad=True)
        loss_dis.backward(clear_buffer=True)
        solver_dis.weight_decay(0.0001)
        solver_dis.update()
        monitor_loss_dis.add(i, loss_dis.d.copy())
        monitor_time.add(i)


if __name__ == "__main__":
    train(get_args())
