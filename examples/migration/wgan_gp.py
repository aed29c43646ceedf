"""WGAN with gradient penalty on a ring of Gaussians: nn.grad in the loss, need_grad switched between two solvers."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.initializer import NormalInitializer, calc_normal_std_he_forward
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries


def affine(h, n, name):
    w = NormalInitializer(calc_normal_std_he_forward(h.shape[1], n), rng=np.random.RandomState(n + h.shape[1]))
    return PF.affine(h, n, name=name, w_init=w)


def generator(z):
    with nn.parameter_scope("generator"):
        h = F.relu(affine(z, 32, "fc1"))
        h = F.relu(affine(h, 32, "fc2"))
        return affine(h, 2, "out")


def critic(x):
    with nn.parameter_scope("critic"):
        h = F.softplus(affine(x, 32, "fc1"))
        h = F.softplus(affine(h, 32, "fc2"))
        return affine(h, 1, "out")


def scope(name):
    with nn.parameter_scope(name):
        return nn.get_parameters(grad_only=False)


def need_grad(parameters, value):
    for p in parameters.values():
        p.need_grad = value


def real_batch(rng, n):
    angle = 2 * np.pi * rng.randint(8, size=n) / 8
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.05 * rng.randn(n, 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--monitor-path", default="tmp.monitor.wgan_gp")
    parser.add_argument("-i", "--max-iter", type=int, default=40)
    parser.add_argument("-b", "--batch-size", type=int, default=64)
    parser.add_argument("--n-critic", type=int, default=3)
    parser.add_argument("--lambda_", type=float, default=10.0)
    args = parser.parse_args()
    b = args.batch_size

    z, x, eps = nn.Variable((b, 4)), nn.Variable((b, 2)), nn.Variable((b, 1))
    fake = generator(z)
    loss_gen = -F.mean(critic(fake))
    fake_unlinked = fake.get_unlinked_variable(need_grad=False)
    x_mix = eps * x + (1 - eps) * fake_unlinked
    p_mix = critic(x_mix.apply(need_grad=True))
    grads = nn.grad([p_mix], [x_mix])
    norms = [F.sum(g**2.0, axis=1) ** 0.5 for g in grads]
    penalty = sum([F.mean((l2 - 1.0) ** 2.0) for l2 in norms])
    distance = F.mean(critic(x)) - F.mean(critic(fake_unlinked))
    loss_critic = -distance + args.lambda_ * penalty
    distance.persistent = True

    solver_gen, solver_critic = S.Adam(1e-3, 0.5, 0.9), S.Adam(1e-3, 0.5, 0.9)
    solver_gen.set_parameters(scope("generator"))
    solver_critic.set_parameters(scope("critic"))
    monitor = Monitor(args.monitor_path)
    monitors = [MonitorSeries(n, monitor, interval=2) for n in ("Generator loss", "Critic loss", "Distance")]
    rng = np.random.RandomState(3)
    for i in range(args.max_iter):
        need_grad(scope("generator"), False)
        for _ in range(args.n_critic):
            z.d, x.d, eps.d = rng.randn(b, 4), real_batch(rng, b), rng.rand(b, 1)
            fake.forward(clear_no_need_grad=True)
            loss_critic.forward(clear_no_need_grad=True)
            solver_critic.zero_grad()
            loss_critic.backward(clear_buffer=True)
            solver_critic.update()
        need_grad(scope("generator"), True)
        need_grad(scope("critic"), False)
        z.d = rng.randn(b, 4)
        loss_gen.forward(clear_no_need_grad=True)
        solver_gen.zero_grad()
        loss_gen.backward(clear_buffer=True)
        solver_gen.update()
        need_grad(scope("critic"), True)
        for m, v in zip(monitors, (loss_gen, loss_critic, distance)):
            m.add(i, v.d)
        if i % 20 == 0:
            nn.save_parameters(os.path.join(args.monitor_path, "params_%05d.h5" % i))
    logger.info("%d parameters" % len(nn.get_parameters(grad_only=False)))


if __name__ == "__main__":
    main()
