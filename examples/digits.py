"""Train a LeNet-size network on the handwritten digits that scikit-learn ships, and look at the result.

    python examples/digits.py                              # train; pictures and parameters go to out/
    python examples/digits.py --evaluate out/parameters.h5

An ordinary training script with static graphs: one graph to learn, one to evaluate, both over the same parameters.
It also runs on NNabla: write `nnabla` for `nnrs` in the imports.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import nnrs as nn
import nnrs.experimental.viewers as V
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.ext_utils import get_extension_context

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 - after the choice of backend

TEST_IMAGES = 360
SPLIT_SEED = 0


def load_data():
    """The 1,797 images as (train x, train y, test x, test y); the split never changes."""
    digits = load_digits()
    x = (digits.images / 16).astype(np.float32)[:, None]
    y = digits.target[:, None]
    parts = train_test_split(x, y, test_size=TEST_IMAGES, random_state=SPLIT_SEED, stratify=y)
    return parts[0], parts[2], parts[1], parts[3]


def shift(images, rng):
    """Moves half of the images by up to one pixel each way, so that the network sees more than 1,437 of them."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = np.where(rng.random(len(images)) < 0.5, rng.integers(0, 3, (2, len(images))), 1)
    moved = [p[:, r : r + 8, c : c + 8] for p, r, c in zip(padded, rows, columns, strict=True)]
    return np.stack(moved)


def conv_block(x, maps, name, train):
    """Convolution, batch normalization, ReLU, and a pooling that halves the image."""
    with nn.parameter_scope(name):
        h = PF.convolution(x, maps, (3, 3), pad=(1, 1), with_bias=False)
        h = F.relu(PF.batch_normalization(h, batch_stat=train))
    return F.max_pooling(h, (2, 2))


def lenet(x, train):
    """Scores of the ten digits, (batch, 10), of images (batch, 1, 8, 8)."""
    h = conv_block(x, 32, "conv1", train)
    h = conv_block(h, 64, "conv2", train)
    h = F.relu(PF.affine(h, 128, name="affine1"))
    if train:
        h = F.dropout(h, 0.3)
    return PF.affine(h, 10, name="affine2")


class Network:
    """A static graph: inputs `x` and `t`, and what is computed from them."""

    def __init__(self, batch_size, train):
        self.x = nn.Variable((batch_size, 1, 8, 8))
        self.t = nn.Variable((batch_size, 1))
        self.y = lenet(self.x, train)
        self.y.persistent = True  # read after a forward that clears buffers
        self.loss = F.mean(F.softmax_cross_entropy(self.y, self.t))
        self.loss.persistent = True

    def hits(self):
        return int((self.y.d.argmax(axis=1) == self.t.d.ravel()).sum())


def evaluate(network, x, t):
    """Loss, accuracy and predictions on held-out images: all of them in one batch."""
    network.x.d, network.t.d = x, t
    network.loss.forward(clear_no_need_grad=True)
    return float(network.loss.d), network.hits() / len(x), network.y.d.argmax(axis=1)


def train_epoch(network, solver, x, t, rng):
    """One pass over the training images in random order; returns mean loss and accuracy."""
    batch = network.x.shape[0]
    order = rng.permutation(len(x))
    steps = len(x) // batch
    loss, hits = 0.0, 0
    for step in range(steps):
        chosen = order[step * batch : (step + 1) * batch]
        network.x.d, network.t.d = shift(x[chosen], rng), t[chosen]
        network.loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        network.loss.backward(clear_buffer=True)
        solver.weight_decay(1e-4)
        solver.update()
        loss += float(network.loss.d)
        hits += network.hits()
    return loss / steps, hits / (steps * batch)


def train(args, data):
    """Trains and returns the held-out network and the history: a list of (loss, accuracy, held-out loss, accuracy)."""
    x, t, test_x, test_t = data
    rng = np.random.default_rng(args.seed)
    network, held_out = Network(args.batch_size, train=True), Network(len(test_x), train=False)
    solver = S.Adam(args.learning_rate)
    solver.set_parameters(nn.get_parameters())
    history = []
    with tqdm(range(args.epochs), unit="epoch") as progress:
        for epoch in progress:
            solver.set_learning_rate(args.learning_rate * (1 + math.cos(math.pi * epoch / args.epochs)) / 2)
            loss, accuracy = train_epoch(network, solver, x, t, rng)
            test_loss, test_accuracy, _ = evaluate(held_out, test_x, test_t)
            history.append((loss, accuracy, test_loss, test_accuracy))
            progress.set_postfix_str(f"loss {loss:.4f}, accuracy {accuracy:.2%}, held-out {test_accuracy:.2%}")
    return held_out, history


def draw_learning_curve(history, path):
    """Loss (log scale) and error rate against epochs, training and held-out."""
    columns = np.array(history).T
    epochs = np.arange(1, len(history) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.semilogy(epochs, columns[0], label="training")
    left.semilogy(epochs, columns[2], label="held-out")
    left.set(title="Loss", xlabel="epoch", ylabel="cross entropy")
    right.plot(epochs, 100 * columns[1], label="training")
    right.plot(epochs, 100 * columns[3], label="held-out")
    right.axhline(98, color="gray", linestyle=":", linewidth=1)
    right.set(title="Accuracy", xlabel="epoch", ylabel="%", ylim=(90, 100.2))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_confusion(truth, guess, path):
    """How many images of each digit were taken for each digit."""
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (truth, guess), 1)
    figure, axes = plt.subplots(figsize=(6, 5.4), layout="constrained")
    axes.imshow(counts, cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        if count:
            color = "white" if count > counts.max() / 2 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=color)
    right = np.trace(counts)
    axes.set(title=f"{right} of {counts.sum()} held-out images right", xlabel="prediction", ylabel="truth")
    axes.set(xticks=range(10), yticks=range(10))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_network(variable, folder):
    """The graph as network.svg. NNabla draws through Graphviz, which may be absent; that loses no training."""
    try:
        V.SimpleGraph(format="svg").save(variable, str(folder / "network"), cleanup=True)
    except Exception as error:
        print(f"no network.svg: {type(error).__name__}: {error}", file=sys.stderr)


def peak_memory():
    """Peak of the whole process and, where the framework counts them, of its arrays."""
    try:
        import resource
    except ImportError:  # Windows
        process = "unknown"
    else:
        unit = 1 if sys.platform == "darwin" else 1024
        process = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20:.0f} MiB"
    text = f"process {process}"
    if hasattr(nn, "memory"):
        text += f", arrays {nn.memory.stats().peak / 2**20:.1f} MiB"
    return text


def result_line(loss, accuracy):
    """All digits of both numbers, as JSON, so that another process's line can be compared with it."""
    return json.dumps({"accuracy": accuracy, "loss": loss})


def check_in_new_process(args, path, expected):
    """Runs this script on the saved parameters and fails unless it finds the very same numbers."""
    command = [sys.executable, __file__, "--evaluate", str(path), "--context", args.context]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = printed.strip().splitlines()[-1]
    print(f"a new process, {path.name} loaded: {found}")
    if found != expected:
        sys.exit(f"the new process differs: {expected} was expected")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--context", default="cpu", choices=("cpu", "cudnn"), help="where functions run")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1, help="of weights, order of images and dropout; not of the split")
    parser.add_argument("--output-dir", type=Path, default=Path("out"))
    parser.add_argument("--at-least", type=float, default=0.0, help="fail if held-out accuracy is lower, as 0.98")
    parser.add_argument("--evaluate", type=Path, metavar="FILE", help="load these parameters and evaluate only")
    return parser.parse_args()


def evaluate_file(path, data):
    nn.load_parameters(str(path))
    loss, accuracy, _ = evaluate(Network(len(data[2]), train=False), *data[2:])
    print(result_line(loss, accuracy))


def main():
    args = parse_arguments()
    nn.set_default_context(get_extension_context(args.context))
    nn.seed(args.seed)
    data = load_data()
    if args.evaluate:
        return evaluate_file(args.evaluate, data)

    folder = args.output_dir
    folder.mkdir(parents=True, exist_ok=True)
    network, history = train(args, data)
    loss, accuracy, guess = evaluate(network, *data[2:])

    nn.save_parameters(str(folder / "parameters.h5"))
    draw_learning_curve(history, folder / "learning_curve.png")
    draw_confusion(data[3].ravel(), guess, folder / "confusion_matrix.png")
    draw_network(network.y, folder)
    print(f"held-out accuracy: {accuracy:.2%} of {len(guess)} images")
    print(f"peak memory: {peak_memory()}")
    print(f"this process: {result_line(loss, accuracy)}")
    check_in_new_process(args, folder / "parameters.h5", result_line(loss, accuracy))
    print("written: " + ", ".join(sorted(str(path) for path in folder.iterdir())))
    if accuracy < args.at_least:
        sys.exit(f"held-out accuracy {accuracy:.2%} is below {args.at_least:.2%}")


if __name__ == "__main__":
    main()
