"""One-stage detection of bright boxes on a grid (as YOLO does it), non-maximum suppression in the evaluation graph."""

import argparse
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorSeries, MonitorTimeElapsed

GRID, CELL = 4, 6
SIZE = GRID * CELL


def scenes(rng, n):
    """Images with one or two boxes, and for each cell: is there a centre, where in the cell, how large, which kind."""
    x = 0.1 * rng.randn(n, 1, SIZE, SIZE)
    target = np.zeros((n, 6, GRID, GRID), np.float32)
    for k in range(n):
        for _ in range(rng.randint(1, 3)):
            h, w = rng.randint(4, 9, size=2)
            top, left = rng.randint(0, SIZE - h), rng.randint(0, SIZE - w)
            kind = rng.randint(2)
            x[k, 0, top : top + h, left : left + w] = 1.0 if kind else -1.0
            cy, cx = (top + h / 2) / CELL, (left + w / 2) / CELL
            i, j = int(cy), int(cx)
            target[k, :, i, j] = 1, cx - j, cy - i, np.log(w / CELL), np.log(h / CELL), kind
    return x.astype(np.float32), target


def network(x, test=False):
    h = x
    for k, (maps, stride) in enumerate(((8, 3), (16, 2), (16, 1))):
        with nn.parameter_scope("conv%d" % k):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), stride=(stride, stride), with_bias=False)
            h = F.leaky_relu(PF.batch_normalization(h, batch_stat=not test), 0.1)
    return PF.convolution(h, 7, (1, 1), name="head")


def losses(out, target):
    there, xy, wh = target[:, 0:1], target[:, 1:3], target[:, 3:5]
    kind = F.reshape(target[:, 5:6], (-1, 1, GRID, GRID))
    objectness = F.sigmoid_cross_entropy(out[:, 0:1], there)
    weight = F.where(F.greater_scalar(there, 0.5), F.constant(5.0, there.shape), F.constant(1.0, there.shape))
    place = F.sum(F.squared_error(F.sigmoid(out[:, 1:3]), xy), axis=1, keepdims=True)
    size = F.sum(F.huber_loss(out[:, 3:5], wh, delta=0.5), axis=1, keepdims=True)
    classes = F.softmax_cross_entropy(out[:, 5:7], kind, axis=1)
    n = F.maximum_scalar(F.sum(there), 1.0)
    n.need_grad = False
    return F.mean(objectness * weight), F.sum((place + size + 0.5 * classes) * there) / n


def boxes(out):
    """Rows of centre, size, objectness and class scores, after suppression."""
    grid = np.stack(np.meshgrid(np.arange(GRID), np.arange(GRID)))[None].astype(np.float32)
    xy = (F.sigmoid(out[:, 1:3]) + nn.Variable.from_numpy_array(grid)) / GRID
    wh = F.exp(F.clip_by_value(out[:, 3:5], -4, 1)) / GRID
    rows = F.concatenate(xy, wh, F.sigmoid(out[:, 0:1]), F.softmax(out[:, 5:7], axis=1), axis=1)
    rows = F.transpose(F.reshape(rows, (rows.shape[0], 7, -1)), (0, 2, 1))
    return F.nms_detection2d(rows, thresh=0.3, nms=0.45)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.detection")
    parser.add_argument("--max-iter", "-i", type=int, default=60)
    parser.add_argument("--batch-size", "-b", type=int, default=16)
    args = parser.parse_args()
    rng = np.random.RandomState(4)
    x, target = nn.Variable((args.batch_size, 1, SIZE, SIZE)), nn.Variable((args.batch_size, 6, GRID, GRID))
    loss_there, loss_box = losses(network(x), target)
    loss_there.persistent = loss_box.persistent = True
    loss = loss_there + loss_box
    vx = nn.Variable((8, 1, SIZE, SIZE))
    vboxes = boxes(network(vx, test=True))
    vx.d, vtarget = scenes(np.random.RandomState(5), 8)

    solver = S.Momentum(lr=0.05, momentum=0.9)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_there = MonitorSeries("Objectness loss", monitor, interval=3)
    monitor_box = MonitorSeries("Box loss", monitor, interval=3)
    monitor_found = MonitorSeries("Score of kept boxes", monitor, interval=1)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=20)
    for i in range(args.max_iter):
        if i == args.max_iter * 2 // 3:
            solver.set_learning_rate(solver.learning_rate() * 0.1)
        x.d, target.d = scenes(rng, args.batch_size)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(5e-4)
        solver.update()
        monitor_there.add(i, loss_there.d)
        monitor_box.add(i, loss_box.d)
        monitor_time.add(i)
        if i % 20 == 7:
            vboxes.forward(clear_buffer=True)
            monitor_found.add(i, vboxes.d[..., 5:].sum())
            nn.save_parameters(os.path.join(args.monitor_path, "params_%04d.h5" % i))
    logger.info("boxes in the test images: %d" % vtarget[:, 0].sum())


if __name__ == "__main__":
    main()
