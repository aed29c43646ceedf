"""A training with all that a checkpoint has to keep, which test_checkpoint.py runs at once and in two processes.

    python checkpoint_training.py FOLDER STEPS SAVES...

trains until STEPS, from the newest checkpoint of FOLDER on, saves behind the steps named, and prints a line for each
step: its loss and a checksum of all parameters.
"""

from __future__ import annotations

import sys
import zlib

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.utils.data_iterator import data_iterator_simple
from nnrs.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler

SAMPLES, BATCH = 50, 8


def batches():
    """Samples that are flipped by the generator of nnrs, in an order of their own each epoch."""
    images = np.random.RandomState(5).rand(SAMPLES, 1, 6, 6).astype(np.float32)

    def load(i):
        image = images[i][..., ::-1] if nn.random.prng.rand() < 0.5 else images[i]
        return image + np.float32(np.random.rand() * 0.1), np.array([i % 3])

    return data_iterator_simple(load, SAMPLES, BATCH, shuffle=True)


def network(x):
    x = F.image_augmentation(x, (1, 6, 6), (1, 1), flip_lr=True, noise=0.1)
    h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3), name="conv")))
    h = F.dropout(h, 0.3) + 0.1 * F.randn(shape=h.shape)
    with nn.parameter_scope("head"):
        return PF.affine(F.dropout(h, 0.2, seed=5), 3)


def main(folder: str, steps: int, saves: list[int]) -> None:
    nn.seed(11)
    np.random.seed(12)
    own = np.random.default_rng(13)
    x, t = nn.Variable((BATCH, 1, 6, 6)), nn.Variable((BATCH, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    body, head = S.Adam(0.01), S.Momentum(0.05)
    data = batches()  # last: its thread draws from the generator that the parameters' values are from
    everything = nn.get_parameters()
    body.set_parameters({k: v for k, v in everything.items() if not k.startswith("head/")})
    head.set_parameters({k: v for k, v in everything.items() if k.startswith("head/")})
    rates = LinearWarmupScheduler(CosineScheduler(0.02, 40), 5)
    points = nn.checkpoint.Checkpoints(folder, [body, head], data, generators=own, graphs=loss, keep=None)
    begin, values = points.resume(total=0.0)
    for step in range(begin, steps):
        if step % 4 == 0:  # so that the rate itself is part of the state
            body.set_learning_rate(rates.get_learning_rate(step))
        x.d, t.d = data.next()
        x.d += own.normal(size=x.shape) * 0.01
        loss.forward()
        body.zero_grad()
        head.zero_grad()
        loss.backward(clear_buffer=True)
        body.update()
        head.update()
        values["total"] += float(loss.d)
        print(step, float(loss.d).hex(), checksum(), values["total"].hex(), data.epoch, data.position, flush=True)
        if step + 1 in saves:
            points.save(step + 1, **values)
    data.close()


def checksum() -> int:
    crc = 0
    for name, v in sorted(nn.get_parameters(grad_only=False).items()):
        crc = zlib.crc32(v.d.tobytes(), zlib.crc32(name.encode(), crc))
    return crc


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3:]])
