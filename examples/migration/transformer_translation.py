"""Translate strings of letters into mirrored digits with a transformer: warm-up, label smoothing, greedy decoding."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple
from nnabla.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler

LENGTH, LETTERS, START = 6, 8, 8
WIDTH, HEADS = 16, 2


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.transformer")
    parser.add_argument("--max-iter", "-i", type=int, default=40)
    parser.add_argument("--batch-size", "-b", type=int, default=16)
    parser.add_argument("--smoothing", type=float, default=0.1)
    parser.add_argument("--accum-grad", type=int, default=2)
    return parser.parse_args()


def position(length):
    p, k = np.arange(length)[:, None], np.arange(WIDTH)[None]
    angle = p / 100 ** (2 * (k // 2) / WIDTH)
    return nn.Variable.from_numpy_array(np.where(k % 2, np.cos(angle), np.sin(angle))[:, None])


def embed(ids, name):
    """(batch, length) to (length, batch, width)."""
    h = PF.embed(ids, LETTERS + 1, WIDTH, name=name) * WIDTH**0.5
    return F.transpose(h, (1, 0, 2)) + position(ids.shape[1])


def causal_mask(length):
    return nn.Variable.from_numpy_array(np.triu(np.full((length, length), -1e9), 1))


def feed_forward(x, name):
    with nn.parameter_scope(name):
        return PF.affine(F.gelu(PF.affine(x, 2 * WIDTH, base_axis=2, name="a")), WIDTH, base_axis=2, name="b")


def norm(x, name):
    return PF.layer_normalization(x, batch_axis=(0, 1), name=name)


def attend(query, memory, name, mask=None):
    h, _ = PF.multi_head_attention(query, memory, memory, HEADS, dropout=0.0, additive_mask=mask, name=name)
    return h


def encoder(x):
    with nn.parameter_scope("encoder"):
        h = embed(x, "letters")
        h = norm(h + attend(h, h, "self"), "norm1")
        return norm(h + feed_forward(h, "ff"), "norm2")


def decoder(y, memory):
    with nn.parameter_scope("decoder"):
        h = embed(y, "digits")
        h = norm(h + attend(h, h, "self", causal_mask(y.shape[1])), "norm1")
        h = norm(h + attend(h, memory, "source"), "norm2")
        h = norm(h + feed_forward(h, "ff"), "norm3")
        return PF.affine(F.transpose(h, (1, 0, 2)), LETTERS, base_axis=2, name="out")


def smoothed_loss(logits, target, smoothing):
    one_hot = F.one_hot(F.reshape(target, target.shape + (1,)), (LETTERS,))
    wanted = one_hot * (1 - smoothing) + smoothing / LETTERS
    return -F.mean(F.sum(wanted * F.log_softmax(logits, axis=2), axis=2))


def greedy(x, y, logits, source):
    """Digits one after the other; `y` and `logits` belong to one graph that is run for each."""
    x.d = source
    digits = np.full(y.shape, START)
    for k in range(LENGTH):
        y.d = digits
        logits.forward(clear_buffer=True)
        if k + 1 < LENGTH:
            digits[:, k + 1] = logits.d[:, k].argmax(axis=1)
    return np.concatenate([digits[:, 1:], logits.d[:, -1:].argmax(axis=2)], axis=1)


def main():
    args = get_args()
    source = np.random.RandomState(6).randint(LETTERS, size=(300, LENGTH))
    target = source[:, ::-1]
    data = data_iterator_simple(lambda i: (source[i], target[i]), 256, args.batch_size, shuffle=True)
    x, y, t = (nn.Variable((args.batch_size, LENGTH)) for _ in range(3))
    loss = smoothed_loss(decoder(y, encoder(x)), t, args.smoothing)
    vx, vy = nn.Variable((44, LENGTH)), nn.Variable((44, LENGTH))

    logits = decoder(vy, encoder(vx))

    solver = S.Adam(beta2=0.98)
    solver.set_parameters(nn.get_parameters())
    scheduler = LinearWarmupScheduler(CosineScheduler(0.01, args.max_iter + 10), warmup_iter=10)
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=2)
    monitor_right = MonitorSeries("Right digits", monitor, interval=1)
    monitor_rate = MonitorSeries("Learning rate", monitor, interval=2)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=10)
    for i in range(args.max_iter):
        solver.zero_grad()
        total = 0.0
        for _ in range(args.accum_grad):
            x.d, t.d = data.next()
            y.d = np.concatenate([np.full((args.batch_size, 1), START), t.d[:, :-1]], axis=1)
            loss.forward(clear_no_need_grad=True)
            loss.backward(1.0 / args.accum_grad, clear_buffer=True)
            total += loss.d / args.accum_grad
        solver.set_learning_rate(scheduler.get_learning_rate(i))
        solver.update()
        monitor_loss.add(i, total)
        monitor_rate.add(i, solver.learning_rate())
        monitor_time.add(i)
        if i % 20 == 5:
            monitor_right.add(i, (greedy(vx, vy, logits, source[256:]) == target[256:]).mean())
            nn.save_parameters(os.path.join(args.monitor_path, "params_%05d.h5" % i))
    logger.info("%s", " ".join(sorted(nn.get_parameters())[:3]))


if __name__ == "__main__":
    main()
