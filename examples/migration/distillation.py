"""A large network teaches a small one: the teacher comes from a file, in a scope of its own, and is not trained on."""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.ext_utils import get_extension_context
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.distillation")
    parser.add_argument("--max-iter", "-i", type=int, default=50)
    parser.add_argument("--batch-size", "-b", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=3.0)
    parser.add_argument("--model-load-path", default=None)
    return parser.parse_args()


def res_unit(x, name, test):
    c = x.shape[1]
    with nn.parameter_scope(name):
        h = PF.convolution(x, c, (3, 3), pad=(1, 1), with_bias=False, name="a")
        h = F.relu(PF.batch_normalization(h, batch_stat=not test, name="a"), inplace=True)
        h = PF.convolution(h, c, (3, 3), pad=(1, 1), with_bias=False, name="b")
        h = PF.batch_normalization(h, batch_stat=not test, name="b")
        return F.relu(F.add2(h, x, inplace=True))


def teacher_net(x, test=False):
    h = F.relu(PF.convolution(x, 12, (3, 3), stride=(2, 2), pad=(1, 1), name="stem"))
    for k in range(2):
        h = res_unit(h, "res%d" % k, test)
    return PF.affine(F.average_pooling(h, (2, 2)), 10, name="head")


def student_net(x):
    h = F.relu(PF.depthwise_convolution(PF.convolution(x, 6, (1, 1), name="expand"), (3, 3), name="dw", stride=(2, 2)))
    return PF.affine(F.swish(h), 10, name="head")


def fit(loss, parameters, data, variables, max_iter, monitor_loss, lr=0.005):
    solver = S.Adam(lr)
    solver.set_parameters(parameters)
    for i in range(max_iter):
        for v, d in zip(variables, data.next()):
            v.d = d
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        monitor_loss.add(i, loss.d)


def main():
    args = get_args()
    nn.set_default_context(get_extension_context("cpu"))
    images, labels = load_digits().images[:320, None].astype(np.float32) / 16, load_digits().target[:320, None]
    data = data_iterator_simple(lambda i: (images[i], labels[i]), 320, args.batch_size, shuffle=True)
    monitor = Monitor(args.monitor_path)
    x, t = nn.Variable((args.batch_size, 1, 8, 8)), nn.Variable((args.batch_size, 1))

    path = args.model_load_path
    if path is None:
        path = os.path.join(args.monitor_path, "teacher.h5")
        loss = F.mean(F.softmax_cross_entropy(teacher_net(x), t))
        fit(loss, nn.get_parameters(), data, (x, t), args.max_iter, MonitorSeries("Teacher loss", monitor, interval=5))
        nn.save_parameters(path)
        nn.clear_parameters()

    with nn.parameter_scope("teacher"):
        nn.load_parameters(path)
        for p in nn.get_parameters(grad_only=False).values():
            p.need_grad = False
        soft = F.softmax(teacher_net(x, test=True) / args.temperature)
        soft.need_grad = False
    with nn.parameter_scope("student"):
        logits = student_net(x)
        student = nn.get_parameters()
    hard_loss = F.mean(F.softmax_cross_entropy(logits, t))
    soft_loss = F.mean(F.kl_multinomial(soft, F.softmax(logits / args.temperature), base_axis=1))
    error = F.mean(F.top_n_error(logits.get_unlinked_variable(), t, n=3))
    logits.persistent = True
    loss = 0.3 * hard_loss + 0.7 * args.temperature**2 * soft_loss
    fit(loss, student, data, (x, t), args.max_iter, MonitorSeries("Student loss", monitor, interval=5))
    error.forward()
    MonitorSeries("Top 3 error", monitor, interval=1).add(0, error.d)
    elapsed = MonitorTimeElapsed("Time", monitor, interval=1)
    elapsed.add(0)
    unchanged = all(not p.need_grad for k, p in nn.get_parameters(grad_only=False).items() if k.startswith("teacher"))
    logger.info("the teacher is as it was: {}".format(unchanged))
    nn.save_parameters(os.path.join(args.monitor_path, "student.h5"), student)


if __name__ == "__main__":
    main()
