"""Trains a small transformer to say rows of digits backwards, and lets it say some that it has not seen.

The encoder reads the row. The decoder is shown what it should have said so far, and tells the next digit: a mask hides
from each place what comes behind it. After training it goes on from its own digits, one by one.

    python examples/transformer.py [--steps 400] [--length 8]
"""

from __future__ import annotations

import argparse

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

DIGITS, BEGIN, BATCH, SIZE, HEADS = 10, 10, 64, 32, 4


def places(length: int) -> nn.Variable:
    """Waves that tell each place of a row from the others, of shape (length, 1, SIZE)."""
    angles = np.arange(length)[:, None] / 100.0 ** (np.arange(SIZE // 2) * 2 / SIZE)
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return nn.Variable.from_numpy_array(waves[:, None].astype(np.float32))


def network(rows: nn.Variable, said: nn.Variable, dropout: float) -> nn.Variable:
    """Scores of the digit after each one of `said`; both have shape (length, batch)."""
    length = rows.shape[0]
    later = nn.Variable.from_numpy_array(np.triu(np.full((length, length), -np.inf, np.float32), 1))
    src, tgt = (F.add2(PF.embed(x, DIGITS + 1, SIZE, name="digits"), places(length)) for x in (rows, said))
    y = PF.transformer(src, tgt, SIZE, HEADS, 1, 1, 4 * SIZE, dropout, tgt_additive_mask=later)
    return PF.affine(y, DIGITS, base_axis=2, name="scores")


def shown(rows: np.ndarray) -> np.ndarray:
    """What the decoder is shown: the row backwards, a place later."""
    return np.concatenate([np.full_like(rows[:1], BEGIN), rows[::-1][:-1]])


def train(steps: int, length: int) -> list[float]:
    """Trains on random rows; the losses."""
    rng = np.random.RandomState(313)
    rows, said, t = nn.Variable((length, BATCH)), nn.Variable((length, BATCH)), nn.Variable((length, BATCH, 1))
    loss = F.mean(F.softmax_cross_entropy(network(rows, said, 0.05), t, axis=2))
    solver = S.Adam(3e-3)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for i in range(steps):
        given = rng.randint(0, DIGITS, (length, BATCH))
        rows.d, said.d, t.d = given, shown(given), given[::-1, :, None]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
        if i % 50 == 0 or i == steps - 1:
            print(f"step {i:4}: loss {losses[-1]:.3f}")
    return losses


def backwards(given: np.ndarray) -> np.ndarray:
    """What the network says of rows, digit by digit."""
    rows, said = nn.Variable(given.shape), nn.Variable(given.shape)
    scores = network(rows, said, 0.0)
    told = np.full_like(given, BEGIN)
    rows.d = given
    for i in range(len(given)):
        said.d = np.concatenate([np.full_like(given[:1], BEGIN), told[:-1]])
        scores.forward(clear_buffer=True)
        told[i] = scores.d[i].argmax(axis=-1)
    return told


def run(steps: int = 400, length: int = 8) -> float:
    """Trains; the share of digits of new rows that are right."""
    nn.clear_parameters()
    nn.seed(313)
    losses = train(steps, length)
    given = np.random.RandomState(1).randint(0, DIGITS, (length, 100))
    told = backwards(given)
    right = float((told == given[::-1]).mean())
    for row, said in zip(given.T[:3], told.T[:3], strict=True):
        print("".join(map(str, row)), "backwards is", "".join(map(str, said)))
    print(f"{right:.1%} of the digits of 100 new rows are right.")
    if steps >= 40 and losses[-1] > losses[0] or steps >= 400 and right < 0.9:
        raise SystemExit("the network has not learned to say rows backwards")
    nn.clear_parameters()
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--length", type=int, default=8)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
