"""Classify scikit-learn's digits from csv files: a training graph, an evaluation graph, a checkpoint each epoch."""

import argparse
import csv
import os

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.config import nnabla_config
from nnabla.ext_utils import get_extension_context
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_csv_dataset
from sklearn.datasets import load_digits


def get_args():
    parser = argparse.ArgumentParser(description="Digits from csv files.")
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.classification")
    parser.add_argument("--max-iter", "-i", type=int, default=120)
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    parser.add_argument("--learning-rate", "-l", type=float, default=0.05)
    parser.add_argument("--weight-decay", "-w", type=float, default=1e-4)
    parser.add_argument("--context", "-c", default="cpu")
    parser.add_argument("--type-config", "-t", default="float")
    return parser.parse_args()


def write_csv(path, images, labels):
    with open(path, "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["x__%d:pixel" % i for i in range(64)] + ["y:digit"])
        for image, label in zip(images, labels):
            writer.writerow(["%g" % v for v in image] + [int(label)])


def network(x, test=False):
    h = F.reshape(x, (-1, 1, 8, 8))
    with nn.parameter_scope("conv1"):
        h = PF.convolution(h, 8, (3, 3), pad=(1, 1), with_bias=False)
        h = F.relu(PF.batch_normalization(h, batch_stat=not test))
    h = F.max_pooling(h, (2, 2))
    with nn.parameter_scope("conv2"):
        h = F.relu(PF.convolution(h, 16, (3, 3)))
    h = F.relu(PF.affine(h, 32, name="fc3"))
    return PF.affine(h, 10, name="fc4")


def main():
    args = get_args()
    nn.set_default_context(get_extension_context(args.context, type_config=args.type_config))
    logger.info("cache format: %s", nnabla_config.get("DATA_ITERATOR", "cache_file_format"))
    os.makedirs(args.monitor_path, exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    train_csv, test_csv = (os.path.join(args.monitor_path, name) for name in ("train.csv", "test.csv"))
    write_csv(train_csv, images[:320] / 16, labels[:320])
    write_csv(test_csv, images[320:400] / 16, labels[320:400])
    train = data_iterator_csv_dataset(train_csv, args.batch_size, shuffle=True, with_file_cache=True)
    test = data_iterator_csv_dataset(test_csv, 40, shuffle=False, with_file_cache=False)

    x, t = nn.Variable((args.batch_size, 64)), nn.Variable((args.batch_size, 1))
    pred = network(x)
    pred.persistent = True
    loss = F.mean(F.softmax_cross_entropy(pred, t))
    error = F.mean(F.top_n_error(pred.get_unlinked_variable(), t))
    vx, vt = nn.Variable((40, 64)), nn.Variable((40, 1))
    verror = F.sum(F.top_n_error(network(vx, test=True), vt))

    solver = S.Momentum(args.learning_rate, 0.9)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=5)
    monitor_err = MonitorSeries("Training error", monitor, interval=5)
    monitor_verr = MonitorSeries("Test error", monitor, interval=1)
    monitor_time = MonitorTimeElapsed("Training time", monitor, interval=50)

    epoch = train.epoch
    for i in range(args.max_iter):
        if train.epoch != epoch or i == args.max_iter - 1:
            epoch = train.epoch
            ve = 0.0
            for _ in range(2):
                vx.d, vt.d = test.next()
                verror.forward(clear_buffer=True)
                ve += verror.d / 80
            monitor_verr.add(i, ve)
            nn.save_parameters(os.path.join(args.monitor_path, "params_%06d.h5" % i))
            solver.save_states(os.path.join(args.monitor_path, "states_%06d.h5" % i))
            solver.set_learning_rate(solver.learning_rate() * 0.9)
        x.d, t.d = train.next()
        loss.forward(clear_no_need_grad=True)
        error.forward()
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(args.weight_decay)
        solver.update()
        monitor_loss.add(i, loss.d.copy())
        monitor_err.add(i, error.d.copy())
        monitor_time.add(i)


if __name__ == "__main__":
    main()
