"""Skip-gram with negative sampling, dynamic graphs (auto_forward) with a solver over sparse embeddings."""

import argparse
import collections

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I  # noqa: E741 - as NNabla's examples call it
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries
from nnabla.utils.data_iterator import data_iterator_simple

WORDS = {"animal": "cat dog cow hen".split(), "food": "bread milk cheese egg".split(), "tool": "saw axe nail".split()}


def sentences(rng, n):
    """Words of one kind stand together."""
    for _ in range(n):
        kind = WORDS[sorted(WORDS)[rng.randint(len(WORDS))]]
        yield [kind[k] for k in rng.randint(len(kind), size=5)]


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--monitor-path", default="tmp.monitor.word2vec")
    parser.add_argument("-i", "--max-iter", type=int, default=150)
    parser.add_argument("-b", "--batch-size", type=int, default=32)
    parser.add_argument("-k", "--negative", type=int, default=4)
    parser.add_argument("-w", "--window", type=int, default=2)
    return parser.parse_args()


def main():
    args = get_args()
    rng = np.random.RandomState(2)
    corpus = list(sentences(rng, 200))
    counts = collections.Counter(w for s in corpus for w in s)
    index = {w: k for k, w in enumerate(sorted(counts))}
    pairs = []
    for s in corpus:
        for p, w in enumerate(s):
            for c in s[max(0, p - args.window) : p] + s[p + 1 : p + 1 + args.window]:
                pairs.append((index[w], index[c]))
    frequency = np.array([counts[w] for w in sorted(counts)]) ** 0.75
    frequency /= frequency.sum()

    def load(i):
        wrong = np.random.RandomState(i).choice(len(index), args.negative, p=frequency)
        return np.array([pairs[i][0]]), np.concatenate([[pairs[i][1]], wrong])

    data = data_iterator_simple(load, len(pairs), args.batch_size, shuffle=True, with_file_cache=False)
    labels = nn.Variable.from_numpy_array(np.tile([1] + [0] * args.negative, (args.batch_size, 1)))

    def embedding(ids, name):
        return PF.embed(ids, len(index), 8, initializer=I.UniformInitializer((-0.5, 0.5)), name=name)

    def similarity():
        w = nn.get_parameters()["word/embed/W"].d
        w = w / np.linalg.norm(w, axis=1, keepdims=True)
        inside = [w[index[a]] @ w[index[b]] for k in WORDS.values() for a in k for b in k if a < b]
        return np.mean(inside) - w.mean(axis=0) @ w.mean(axis=0)

    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=10)
    monitor_similarity = MonitorSeries("Similarity", monitor, interval=1)
    solver = S.Adagrad(0.3)
    for i in range(args.max_iter):
        centre, context = data.next()
        with nn.auto_forward():
            c = embedding(nn.Variable.from_numpy_array(centre), "word")
            o = embedding(nn.Variable.from_numpy_array(context), "context")
            score = F.reshape(F.batch_matmul(c, o, transpose_b=True), labels.shape)
            loss = F.mean(F.sum(F.sigmoid_cross_entropy(score, labels), axis=1))
        if i == 0:
            solver.set_parameters(nn.get_parameters())
        solver.zero_grad()
        loss.backward()
        solver.update()
        monitor_loss.add(i, loss.d)
        if i % 10 == 9:
            monitor_similarity.add(i, similarity())
    logger.info("vocabulary: {}".format(" ".join(index)))
    with nn.parameter_scope("word"):
        nn.save_parameters(args.monitor_path + "/word.h5")


if __name__ == "__main__":
    main()
