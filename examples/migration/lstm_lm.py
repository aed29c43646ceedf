"""A character language model by an LSTM: its graph is built anew for each stretch of text, the state goes on."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.initializer import UniformInitializer
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.learning_rate_scheduler import ExponentialScheduler

TEXT = "the cat sat on the mat; the dog sat on the log; a cat and a dog are not on a mat or a log. " * 20


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.lstm")
    parser.add_argument("--max-iter", "-i", type=int, default=60)
    parser.add_argument("--batch-size", "-b", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=24)
    parser.add_argument("--layers", type=int, default=2)
    return parser.parse_args()


def get_loss(xs, ts, states, vocabulary, hidden, w_init):
    """The loss of a stretch, and the states behind it."""
    embedded = PF.embed(xs, vocabulary, hidden, name="embed", initializer=w_init)
    states, losses = list(states), []
    for h, t in zip(F.split(embedded, axis=1), F.split(ts, axis=1)):
        for k, (hidden_state, cell) in enumerate(states):
            with nn.parameter_scope("lstm%d" % k):
                states[k] = PF.lstm_cell(h, hidden_state, cell, hidden, w_init=w_init)
            h = states[k][0]
        y = PF.affine(h, vocabulary, name="pred")
        losses.append(F.mean(F.softmax_cross_entropy(y, F.reshape(t, (-1, 1)))))
    return sum(losses) / len(losses), states


def detach(states):
    """The states' values, as inputs of the next graph."""
    return [tuple(v.get_unlinked_variable(need_grad=False) for v in pair) for pair in states]


def zeros(args):
    state = [[nn.Variable((args.batch_size, args.hidden)) for _ in range(2)] for _ in range(args.layers)]
    for pair in state:
        for v in pair:
            v.data.zero()
    return state


def main():
    args = get_args()
    letters = sorted(set(TEXT))
    ids = np.array([letters.index(c) for c in TEXT])
    rows = ids[: len(ids) // args.batch_size * args.batch_size].reshape(args.batch_size, -1)
    monitor = Monitor(args.monitor_path)
    monitor_perplexity = MonitorSeries("Training perplexity", monitor, interval=5)
    monitor_vperplexity = MonitorSeries("Validation perplexity", monitor, interval=1)
    monitor_norm = MonitorSeries("Gradient norm", monitor, interval=5)
    monitor_time = MonitorTimeElapsed("Training time", monitor, interval=20)
    solver = S.Adam()
    scheduler = ExponentialScheduler(0.02, 0.98, iter_interval=5)
    w_init = UniformInitializer((-0.1, 0.1), rng=np.random.RandomState(5))

    states, position = zeros(args), 0
    for i in range(args.max_iter):
        if position + args.bptt + 1 > rows.shape[1]:
            states, position = zeros(args), 0
        piece = rows[:, position : position + args.bptt + 1]
        x, t = nn.Variable((args.batch_size, args.bptt)), nn.Variable((args.batch_size, args.bptt))
        x.d, t.d = piece[:, :-1], piece[:, 1:]
        position += args.bptt
        loss, states = get_loss(x, t, states, len(letters), args.hidden, w_init)
        for h, c in states:
            h.persistent = c.persistent = True
        solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
        solver.set_learning_rate(scheduler.get_learning_rate(i))
        loss.forward()
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        norm = np.sqrt(sum((p.g**2).sum() for p in nn.get_parameters().values()))
        solver.clip_grad_by_norm(0.25)
        solver.update()
        states = detach(states)
        monitor_perplexity.add(i, np.exp(loss.d))
        monitor_norm.add(i, norm)
        monitor_time.add(i)
        if i % 20 == 9:
            with nn.auto_forward():
                x, t = nn.Variable.from_numpy_array(rows[:, :20]), nn.Variable.from_numpy_array(rows[:, 1:21])
                vloss, _ = get_loss(x, t, zeros(args), len(letters), args.hidden, w_init)
                monitor_vperplexity.add(i, np.exp(vloss.d))
            nn.save_parameters(os.path.join(args.monitor_path, "params_%05d.h5" % i))
    logger.info("learning rate %g", solver.learning_rate())


if __name__ == "__main__":
    main()
