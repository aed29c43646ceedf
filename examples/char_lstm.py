"""Trains an LSTM to write on, letter by letter, and lets it write: the text is one of this repository's own.

One graph learns: pieces of the text side by side, a sequence each, every letter to be told from those before it. A
second one, over the same parameters, goes a letter at a time and hands its states on.

    python examples/char_lstm.py [--steps 300] [--text DESIGN.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

LENGTH, BATCH, HIDDEN, LAYERS = 32, 32, 128, 2


def network(letters: nn.Variable, h: nn.Variable, c: nn.Variable, kinds: int) -> tuple[nn.Variable, ...]:
    """Scores of the next letter after each one of `letters`, of shape (steps, batch), and the states after the last."""
    x = PF.embed(letters, kinds, 32)
    y, h_n, c_n = PF.lstm(x, h, c, num_layers=LAYERS, dropout=0.1)
    return PF.affine(y, kinds, base_axis=2, name="scores"), h_n, c_n


def states(batch: int) -> list[nn.Variable]:
    """Zeros for h and c."""
    return [nn.Variable.from_numpy_array(np.zeros((LAYERS, 1, batch, HIDDEN), np.float32)) for _ in range(2)]


def train(text: np.ndarray, kinds: int, steps: int) -> list[float]:
    """Trains on random pieces of the text; the losses, in bits for a letter."""
    rng = np.random.RandomState(313)
    x, t = nn.Variable((LENGTH, BATCH)), nn.Variable((LENGTH, BATCH, 1))
    scores, _, _ = network(x, *states(BATCH), kinds)
    loss = F.mean(F.softmax_cross_entropy(scores, t, axis=2)) / float(np.log(2))
    solver = S.Adam(4e-3)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for i in range(steps):
        pieces = text[rng.randint(0, len(text) - LENGTH, BATCH) + np.arange(LENGTH + 1)[:, None]]
        x.d, t.d = pieces[:-1], pieces[1:, :, None]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.clip_grad_by_norm(1.0)
        solver.update()
        losses.append(float(loss.d))
        if i % 50 == 0 or i == steps - 1:
            print(f"step {i:4}: {losses[-1]:.2f} bits for a letter")
    return losses


def write(begin: str, letters: str, length: int) -> str:
    """Goes on from `begin`, each letter drawn by its probability."""
    rng = np.random.RandomState(313)
    x = nn.Variable((1, 1))
    h, c = states(1)
    scores, h_n, c_n = network(x, h, c, len(letters))
    probabilities = F.softmax(scores, axis=2)
    text = begin
    for i in range(len(begin) - 1 + length):
        x.d = letters.index(text[i])
        nn.forward_all([probabilities, h_n, c_n])
        h.d, c.d = h_n.d, c_n.d
        if i >= len(begin) - 1:
            p = probabilities.d.ravel().astype(np.float64)
            text += letters[rng.choice(len(letters), p=p / p.sum())]
    return text


def run(steps: int = 300, text: str = "DESIGN.md") -> list[float]:
    """Trains, and shows what the network writes."""
    words = (Path(__file__).parent.parent / text).read_text(encoding="utf-8")
    letters = "".join(sorted(set(words)))
    numbers = np.array([letters.index(a) for a in words], np.int32)
    nn.clear_parameters()
    nn.seed(313)
    losses = train(numbers, len(letters), steps)
    share = np.bincount(numbers) / len(numbers)
    alone = float(-(share * np.log2(np.maximum(share, 1e-9))).sum())
    print(f"{alone:.2f} bits for a letter would be right by how often each stands in the text.")
    print("It writes:", repr(write("The ", letters, 80)))
    if steps >= 40 and np.mean(losses[-10:]) > alone:
        raise SystemExit("the network has learned nothing of the letters before")
    nn.clear_parameters()
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--text", default="DESIGN.md")
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
