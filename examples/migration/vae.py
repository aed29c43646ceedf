"""A variational auto-encoder of the digits, with an evaluation graph that decodes from the prior."""

from argparse import ArgumentParser
from os.path import join

import numpy as np
from nnabla import functions as F
from nnabla import parametric_functions as PF
from nnabla import solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorImage, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple
from sklearn.datasets import load_digits

import nnabla as nn


def get_args():
    p = ArgumentParser(description="VAE")
    p.add_argument("--monitor-path", "-o", type=str, default="tmp.monitor.vae")
    p.add_argument("--max-iter", "-i", type=int, default=100)
    p.add_argument("--batch-size", "-b", type=int, default=32)
    p.add_argument("--shape-z", "-z", type=int, nargs="+", default=[4])
    return p.parse_args()


@PF.parametric_function_api("centring", [("offset", "subtracted from each pixel", "(1, n)", True)])
def centring(x, fix_parameters=False):
    """A parametric function of the script's own."""
    from nnabla.initializer import ConstantInitializer
    from nnabla.parameter import get_parameter_or_create

    b = get_parameter_or_create("offset", (1, x.shape[1]), ConstantInitializer(0.5), True, not fix_parameters)
    return x - b


def encode(x, dim):
    with nn.parameter_scope("Encoder"):
        h = F.softplus(PF.affine(centring(x), 48, name="fc1"))
        return PF.affine(h, dim, name="mu"), PF.affine(h, dim, name="logvar")


def decode(z):
    with nn.parameter_scope("Decoder"):
        h = F.softplus(PF.affine(z, 48, name="fc1"))
        return PF.affine(h, 64, name="logits")


def vae(x, noise, dim):
    mu, logvar = encode(x, dim)
    logits = decode(mu + F.exp(0.5 * logvar) * noise)
    recon = F.sum(F.sigmoid_cross_entropy(logits, x), axis=1)
    kl = 0.5 * F.sum(mu**2 + F.exp(logvar) - 1 - logvar, axis=1)
    kl.persistent = True
    return F.mean(recon + kl), kl


def main():
    args = get_args()
    (dim,) = args.shape_z
    images = (load_digits().data[:400] > 7).astype(np.float32)
    train = data_iterator_simple(lambda i: (images[i],), 320, args.batch_size, shuffle=True, with_file_cache=False)
    test = data_iterator_simple(lambda i: (images[320 + i],), 80, 40, shuffle=False, with_file_cache=False)
    x, noise = nn.Variable((args.batch_size, 64)), nn.Variable((args.batch_size, dim))
    loss, kl = vae(x, noise, dim)
    vx, vnoise = nn.Variable((40, 64)), nn.Variable((40, dim))
    vloss, _ = vae(vx, vnoise, dim)
    z = nn.Variable((9, dim))
    sample = F.reshape(F.sigmoid(decode(z)), (9, 1, 8, 8))

    solver = S.Adam(3e-3)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    losses = MonitorSeries("Training loss", monitor, interval=5)
    kls = MonitorSeries("KL", monitor, interval=5)
    vlosses = MonitorSeries("Test loss", monitor, interval=1)
    pictures = MonitorImage("Samples", monitor, interval=1, num_images=2)
    times = MonitorTimeElapsed("Training time", monitor, interval=50)
    rng = np.random.RandomState(11)
    z.d = rng.randn(9, dim)
    for i in range(args.max_iter):
        x.d = train.next()[0]
        noise.d = rng.randn(args.batch_size, dim)
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.clip_grad_by_norm(10.0)
        solver.update()
        losses.add(i, loss.d)
        kls.add(i, np.mean(kl.d))
        times.add(i)
        if i % 50 == 4:
            vx.d, vnoise.d = test.next()[0], 0
            vloss.forward(clear_buffer=True)
            vlosses.add(i, vloss.d)
            sample.forward(clear_buffer=True)
            pictures.add(i, sample)
            nn.save_parameters(join(args.monitor_path, "params_%06d.h5" % i))
    logger.info("offset: %f" % nn.get_parameters()["Encoder/centring/offset"].d.mean())


if __name__ == "__main__":
    main()
