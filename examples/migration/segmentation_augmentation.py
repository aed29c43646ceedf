"""A small U-Net finds shapes in pictures: files by image_utils, augmentation in NumPy, mean IoU."""

import argparse
import glob
import os

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.logger import logger
from nnabla.monitor import Monitor, MonitorImageTile, MonitorSeries, MonitorTimeElapsed
from nnabla.utils.data_iterator import data_iterator_simple
from nnabla.utils.image_utils import imread, imresize, imsave, set_backend
from nnabla.utils.learning_rate_scheduler import PolynomialScheduler

SIZE = 16


def write_pictures(folder, n, rng):
    """A disc and a square each, with noise; the mask says which pixel is of what."""
    os.makedirs(folder, exist_ok=True)
    yy, xx = np.mgrid[: 2 * SIZE, : 2 * SIZE]
    for k in range(n):
        cy, cx, by, bx = rng.randint(6, 26, size=4)
        mask = np.zeros((2 * SIZE, 2 * SIZE), np.uint8)
        mask[(yy - cy) ** 2 + (xx - cx) ** 2 < 36] = 1
        mask[by - 4 : by + 4, bx - 4 : bx + 4] = 2
        image = np.stack([60 + 60 * mask, 180 - 50 * mask, 90 + 0 * mask], axis=2) + rng.randint(0, 40, (32, 32, 3))
        imsave(os.path.join(folder, "image_%03d.png" % k), image.astype(np.uint8))
        imsave(os.path.join(folder, "mask_%03d.png" % k), mask)


def load_pairs(folder):
    for path in sorted(glob.glob(os.path.join(folder, "image_*.png"))):
        image = imresize(imread(path), (SIZE, SIZE), interpolate="bilinear", channel_first=False)
        mask = imread(path.replace("image_", "mask_"), grayscale=True)[::2, ::2]
        yield image.transpose(2, 0, 1).astype(np.float32) / 255, mask[None].astype(np.int32)


def augment(x, t, rng):
    if rng.rand() < 0.5:
        x, t = x[..., ::-1], t[..., ::-1]
    turns = rng.randint(4)
    return np.rot90(x, turns, (1, 2)), np.rot90(t, turns, (1, 2))


def mean_iou(p, t):
    return np.mean([((p == k) & (t == k)).sum() / max(1, ((p == k) | (t == k)).sum()) for k in range(3)])


def block(x, maps, name, test):
    with nn.parameter_scope(name):
        h = PF.convolution(x, maps, (3, 3), pad=(1, 1), with_bias=False)
        return F.leaky_relu(PF.batch_normalization(h, batch_stat=not test, decay_rate=0.8))


def unet(x, test=False):
    c1 = block(x, 8, "down1", test)
    c2 = block(F.max_pooling(c1, (2, 2)), 16, "down2", test)
    c3 = block(F.max_pooling(c2, (2, 2)), 16, "bottom", test)
    u2 = PF.deconvolution(c3, 16, (2, 2), stride=(2, 2), name="up2")
    h = block(F.concatenate(u2, c2, axis=1), 16, "join2", test)
    u1 = F.interpolate(h, scale=(2, 2), mode="linear", align_corners=False)
    return PF.convolution(block(F.concatenate(u1, c1, axis=1), 8, "join1", test), 3, (1, 1), name="out")


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--monitor-path", "-o", default="tmp.monitor.segmentation")
    parser.add_argument("--max-iter", "-i", type=int, default=50)
    parser.add_argument("--batch-size", "-b", type=int, default=8)
    return parser.parse_args()


def main():
    args = get_args()
    set_backend("PilBackend")
    rng = np.random.RandomState(21)
    folder = os.path.join(args.monitor_path, "pictures")
    write_pictures(folder, 40, rng)
    pairs = list(load_pairs(folder))
    order = np.random.RandomState(22)
    train = data_iterator_simple(
        lambda i: augment(*pairs[i], rng), 32, args.batch_size, True, rng=order, use_thread=False
    )
    x, t = nn.Variable((args.batch_size, 3, SIZE, SIZE)), nn.Variable((args.batch_size, 1, SIZE, SIZE))
    loss = F.mean(F.softmax_cross_entropy(unet(x), t, axis=1))
    vx = nn.Variable((8, 3, SIZE, SIZE))
    vpred = F.max(unet(vx, test=True), axis=1, only_index=True)
    vx.d, vt = np.stack([p[0] for p in pairs[32:]]), np.stack([p[1] for p in pairs[32:]])[:, 0]

    solver, scheduler = S.Nesterov(0.05, 0.9), PolynomialScheduler(0.05, args.max_iter, power=0.9)
    solver.set_parameters(nn.get_parameters())
    monitor = Monitor(args.monitor_path)
    monitor_loss = MonitorSeries("Training loss", monitor, interval=2)
    monitor_iou = MonitorSeries("mIoU", monitor, interval=1)
    monitor_mean = MonitorSeries("Running mean", monitor, interval=2)
    monitor_image = MonitorImageTile("Prediction", monitor, interval=1, num_images=8)
    monitor_time = MonitorTimeElapsed("Time", monitor, interval=20)
    for i in range(args.max_iter):
        x.d, t.d = train.next()
        solver.set_learning_rate(scheduler.get_learning_rate(i))
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-4)
        solver.update()
        monitor_loss.add(i, loss.d)
        monitor_mean.add(i, nn.get_parameters(grad_only=False)["bottom/bn/mean"].d.sum())
        monitor_time.add(i)
        if i % 10 == 3:
            vpred.forward(clear_buffer=True)
            p = vpred.d.astype(int)
            monitor_iou.add(i, mean_iou(p, vt))
            monitor_image.add(i, p[:, None] / 2.0)
            nn.save_parameters(os.path.join(args.monitor_path, "param_%04d.h5" % i))
    logger.info("{} pictures".format(len(pairs)))


if __name__ == "__main__":
    main()
