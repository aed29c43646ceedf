"""A denoising diffusion model of small pictures: blocks are recomputed in backward, weights averaged."""

import argparse
import math
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.initializer import ConstantInitializer
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorImageTile, MonitorSeries, MonitorTimeElapsed
from nnabla.parameter import get_parameter_or_create

SIZE, STEPS = 8, 20
BETAS = np.linspace(1e-3, 0.25, STEPS).astype(np.float32)
ALPHA_BAR = np.cumprod(1 - BETAS)


def pictures(rng, n):
    """One bright bar each, across or down."""
    x = -np.ones((n, 1, SIZE, SIZE), np.float32)
    for k, (place, down) in enumerate(zip(rng.randint(SIZE - 1, size=n), rng.randint(2, size=n))):
        x[(k, 0, slice(None), slice(place, place + 2)) if down else (k, 0, slice(place, place + 2))] = 1
    return x


def to_unit(x):
    return np.clip((x + 1) / 2, 0, 1)


def embed_time(t, dim):
    frequency = nn.Variable.from_numpy_array(np.exp(-math.log(100) * np.arange(dim // 2) / (dim // 2))[None])
    angle = F.reshape(t, (-1, 1)) * frequency
    return F.concatenate(F.sin(angle), F.cos(angle), axis=1)


def block(x, emb, name):
    c = x.shape[1]
    with nn.parameter_scope(name):
        h = F.swish(PF.group_normalization(x, 4, name="norm1"))
        h = PF.convolution(h, c, (3, 3), pad=(1, 1), name="conv1")
        h = h + F.reshape(PF.affine(emb, c, name="emb"), (-1, c, 1, 1))
        h = F.swish(PF.layer_normalization(h, batch_axis=0, name="norm2"))
        return x + PF.convolution(h, c, (3, 3), pad=(1, 1), w_init=ConstantInitializer(0.0), name="conv2")


def denoiser(x, t, recompute=True):
    with nn.parameter_scope("unet"):
        emb = F.swish(PF.affine(embed_time(t, 16), 32, name="time"))
        h = PF.convolution(x, 16, (3, 3), pad=(1, 1), name="in")
        for k in range(3):
            with nn.recompute(recompute):
                h = block(h, emb, "block%d" % k)
        return PF.convolution(F.swish(h), 1, (3, 3), pad=(1, 1), name="out")


def sample(n, rng):
    """Ancestral sampling, a graph that is run again for each step."""
    x, t = nn.Variable((n, 1, SIZE, SIZE)), nn.Variable((n,))
    with nn.no_grad():
        noise = denoiser(x, t, recompute=False)
    x.d = rng.randn(*x.shape)
    for s in reversed(range(STEPS)):
        t.d = s
        noise.forward(clear_buffer=True)
        mean = (x.d - BETAS[s] / np.sqrt(1 - ALPHA_BAR[s]) * noise.d) / np.sqrt(1 - BETAS[s])
        x.d = mean + (np.sqrt(BETAS[s]) * rng.randn(*x.shape) if s else 0)
    return x


def average(decay):
    """Moves the copies in scope `ema` towards the parameters."""
    for key, p in nn.get_parameters().items():
        if key.startswith("ema/"):
            continue
        copy = get_parameter_or_create("ema/" + key, p.shape, lambda shape, p=p: p.d.copy(), need_grad=False)
        copy.d = decay * copy.d + (1 - decay) * p.d
    return sum(np.abs(v.d).sum() for k, v in nn.get_parameters(grad_only=False).items() if k.startswith("ema/"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.diffusion")
    parser.add_argument("--max-iter", "-i", type=int, default=40)
    parser.add_argument("--batch-size", "-b", type=int, default=16)
    args = parser.parse_args()
    rng = np.random.RandomState(0)
    shape = (args.batch_size, 1, SIZE, SIZE)
    x, noise, t, scale = nn.Variable(shape), nn.Variable(shape), nn.Variable(shape[:1]), nn.Variable((shape[0], 2))
    signal, spread = F.split(F.reshape(scale, (shape[0], 2, 1, 1, 1)), axis=1)
    loss = F.mean(F.squared_error(denoiser(signal * x + spread * noise, t), noise))
    solver = S.AdamW(2e-3, wd=0.0)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=2)
    monitor_ema = MonitorSeries("Size of the average", monitor, interval=2)
    monitor_sample = MonitorSeries("Mean of the samples", monitor, interval=1)
    monitor_image = MonitorImageTile("Samples", monitor, interval=1, normalize_method=to_unit)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=10)
    for i in range(args.max_iter):
        s = rng.randint(STEPS, size=shape[0])
        x.d, noise.d, t.d = pictures(rng, shape[0]), rng.randn(*shape), s
        scale.d = np.stack([np.sqrt(ALPHA_BAR[s]), np.sqrt(1 - ALPHA_BAR[s])], axis=1)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.clip_grad_by_norm(1.0)
        solver.update()
        monitor_loss.add(i, loss.d)
        monitor_ema.add(i, average(0.9))
        monitor_time.add(i)
        if i % 20 == 3:
            made = sample(9, np.random.RandomState(1))
            monitor_sample.add(i, np.abs(made.d).mean())
            monitor_image.add(i, made)
            nn.save_parameters(os.path.join(args.monitor_path, "params_%05d.h5" % i))
    logger.info("{} arrays".format(len(nn.get_parameters(grad_only=False))))


if __name__ == "__main__":
    main()
