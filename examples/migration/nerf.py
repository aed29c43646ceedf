"""A radiance field of a coloured ball: rays are marched through dynamic graphs, coarse samples and then fine ones."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorImage, MonitorSeries, MonitorTimeElapsed

NEAR, FAR = 1.0, 3.0


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.nerf")
    parser.add_argument("--max-iter", "-i", type=int, default=40)
    parser.add_argument("--rays", type=int, default=32)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--frequencies", type=int, default=3)
    return parser.parse_args()


def camera(rng, n):
    """Rays from a circle around the ball: origins, directions."""
    angle = rng.uniform(0, 2 * np.pi, n)
    origin = 2 * np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    target = rng.uniform(-0.6, 0.6, (n, 3))
    direction = target - origin
    return origin, direction / np.linalg.norm(direction, axis=1, keepdims=True)


def truth(origin, direction):
    """What the ray sees: a ball of radius 0.5, coloured by the place where it is hit; black beside it."""
    b = (origin * direction).sum(axis=1)
    inside = b**2 - (origin**2).sum(axis=1) + 0.25
    hit = origin + (-b - np.sqrt(np.maximum(inside, 0)))[:, None] * direction
    return np.where(inside[:, None] > 0, hit + 0.5, 0)


def encode(x, frequencies):
    parts = [x]
    for k in range(frequencies):
        parts += [F.sin(2.0**k * x), F.cos(2.0**k * x)]
    return F.concatenate(*parts, axis=-1)


def field(points, frequencies):
    h0 = encode(points, frequencies)
    h = h0
    for k in range(3):
        h = F.concatenate(h, h0, axis=-1) if k == 2 else h
        h = F.relu(PF.affine(h, 32, base_axis=2, name="fc%d" % k))
    out = PF.affine(h, 4, base_axis=2, name="out")
    return F.sigmoid(out[..., :3]), F.softplus(out[..., 3:])


def render(origin, direction, depth, frequencies):
    """Colours (rays, 3) and the weights of the samples."""
    points = F.reshape(origin, (-1, 1, 3)) + F.reshape(direction, (-1, 1, 3)) * F.reshape(depth, depth.shape + (1,))
    colour, density = field(points, frequencies)
    far = F.constant(FAR, (depth.shape[0], 1))
    distance = F.concatenate(depth[:, 1:], far, axis=1) - depth
    alpha = 1 - F.exp(-F.reshape(density, depth.shape) * distance)
    through = F.cumprod(1 - alpha + 1e-6, axis=1, exclusive=True)
    weights = alpha * through
    return F.sum(F.reshape(weights, weights.shape + (1,)) * colour, axis=1), weights


def finer(depth, weights, rng):
    """Depths drawn where the weights are large, together with the coarse ones, in order."""
    p = weights + 1e-3
    cdf = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
    u = rng.rand(*depth.shape)
    picked = np.take_along_axis(depth, (u[:, :, None] > cdf[:, None]).sum(axis=2).clip(0, depth.shape[1] - 1), axis=1)
    return np.sort(np.concatenate([depth, picked + 0.01 * rng.rand(*depth.shape)], axis=1), axis=1)


def main():
    args = get_args()
    rng = np.random.RandomState(17)
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=2)
    monitor_psnr = MonitorSeries("PSNR", monitor, interval=2)
    monitor_image = MonitorImage("View", monitor, interval=1, num_images=1)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=10)
    solver = S.Adam(5e-3)
    nn.set_auto_forward(True)
    for i in range(args.max_iter):
        origin, direction = camera(rng, args.rays)
        depth = np.linspace(NEAR, FAR, args.samples, endpoint=False) + rng.rand(args.rays, args.samples) / args.samples
        o, d, colour = (nn.Variable.from_numpy_array(a) for a in (origin, direction, truth(origin, direction)))
        with nn.parameter_scope("coarse"):
            coarse, weights = render(o, d, nn.Variable.from_numpy_array(depth), args.frequencies)
        with nn.parameter_scope("fine"):
            depth = finer(depth, weights.d, rng)
            fine, _ = render(o, d, nn.Variable.from_numpy_array(depth), args.frequencies)
        loss_fine = F.mean(F.squared_error(fine, colour))
        loss_fine.persistent = True
        loss = loss_fine + F.mean(F.squared_error(coarse, colour))
        solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.set_learning_rate(5e-3 * 0.1 ** (i / 200.0))
        solver.update()
        monitor_loss.add(i, loss.d)
        monitor_psnr.add(i, -10 * np.log10(loss_fine.d))
        monitor_time.add(i)
    nn.set_auto_forward(False)
    y, z = np.mgrid[-0.7:0.7:12j, -0.7:0.7:12j].reshape(2, -1)
    direction = np.stack([0 * y - 1, y / 2, -z / 2], axis=1)
    o, d = nn.Variable.from_numpy_array(0 * direction + [2, 0, 0]), nn.Variable.from_numpy_array(direction)
    depth = nn.Variable.from_numpy_array(np.tile(np.linspace(NEAR, FAR, 16, endpoint=False), (144, 1)))
    with nn.parameter_scope("fine"):
        view, _ = render(o, d, depth, args.frequencies)
    view.forward(clear_buffer=True)
    monitor_image.add(0, view.d.T.reshape(1, 3, 12, 12))
    MonitorSeries("Brightness of the view", monitor, interval=1).add(0, view.d.mean())
    nn.save_parameters(os.path.join(args.monitor_path, "params.h5"))
    logger.info("%d parameters", sum(p.size for p in nn.get_parameters().values()))


if __name__ == "__main__":
    main()
