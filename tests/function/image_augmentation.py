"""`image_augmentation`: images altered at random. Images of places show where each value comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from distributions import kolmogorov
from function.case import Case, Error
from moved_samples import same


def reference(
    x: np.ndarray, shape: tuple[int, ...] | None = None, pad: tuple[int, int] = (0, 0), **more: Any
) -> np.ndarray:
    """Where nothing is left to chance: the border is repeated as far as the padding goes."""
    size = (shape or x.shape)[-2:]
    if any(s != n + 2 * p for s, n, p in zip(size, x.shape[-2:], pad, strict=True)):
        raise ValueError("places are random")
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in pad], "edge")


def places(n: int, h: int, w: int) -> np.ndarray:
    """Images of two channels: the row and the column of each pixel."""
    return np.tile(np.float64(np.indices((h, w))), (n, 1, 1, 1))


def uniform(v: np.ndarray, low: float, high: float) -> None:
    assert v.min() >= low - 1e-3 and v.max() <= high + 1e-3, (v.min(), v.max())
    kolmogorov(v, lambda x: (x - low) / (high - low))


def turns(y: np.ndarray) -> np.ndarray:
    """In the middle of each image, where no border is: the image's rows and columns by the result's."""
    i, j = y.shape[-2] // 2, y.shape[-1] // 2
    return np.stack([y[:, :, i + 1, j] - y[:, :, i, j], y[:, :, i, j + 1] - y[:, :, i, j]], -1)


def cropped(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    y = outputs[0]
    uniform(y[:, 0, 0, 0], 0, 4)
    uniform(y[:, 1, 0, 0], 0, 2)
    assert abs(np.corrcoef(y[:, 0, 0, 0], y[:, 1, 0, 0])[0, 1]) < 5 / np.sqrt(len(y))
    np.testing.assert_allclose(y - y[:, :, :1, :1], np.broadcast_to(np.indices((4, 4)), y.shape), atol=1e-4)


def scaled(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    scale = 1 / turns(outputs[0])[:, [0, 1], [0, 1]]
    np.testing.assert_allclose(scale[:, 0], scale[:, 1], rtol=1e-3)
    uniform(np.log(scale[:, 0]) / np.log(4), 0, 1)


def stretched(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    t = turns(outputs[0])
    np.testing.assert_allclose(t[:, 0, 0] * t[:, 1, 1], 1, rtol=1e-3)
    uniform(np.log(t[:, 1, 1]) / np.log(2), -0.5, 0.5)


def turned(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    t = turns(outputs[0])
    np.testing.assert_allclose(t @ np.swapaxes(t, 1, 2), np.broadcast_to(np.eye(2), t.shape), atol=1e-3)
    uniform(np.arctan2(t[:, 0, 1], t[:, 1, 1]), -0.5, 0.5)
    middle = outputs[0][:, :, 9:11, 9:11].mean((2, 3))
    np.testing.assert_allclose(middle, 9.5, atol=1e-3)


def distorted(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """(1 + k r^2) / (1 + k) of the distance to (h / 2, w / 2), r = 1 at the borders."""
    y = outputs[0]
    part = (8 - y[:, 1, 6, 4]) / 4  # r = 1/2
    k = (1 - part) / (part - 0.25)
    uniform(np.log1p(k), -0.5, 0.5)
    np.testing.assert_allclose((6 - y[:, 0, 3, 8]) / 3, part, atol=1e-4)


def flipped(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    ways = [[outputs[0][:, 0, 0, 0] == v, outputs[0][:, 1, 0, 0] == u] for v in (0, 3) for u in (0, 4)]
    counts = np.array([np.logical_and(*way).sum() for way in ways])
    assert counts.sum() == len(outputs[0]) and np.all(abs(counts - counts.sum() / 4) < 5 * np.sqrt(counts.sum()))
    for y in outputs[0]:
        rows, columns = np.indices((4, 5))
        np.testing.assert_array_equal(y[0], rows if y[0, 0, 0] == 0 else rows[::-1])
        np.testing.assert_array_equal(y[1], columns if y[1, 0, 0] == 0 else columns[:, ::-1])


def values(low: float, high: float, each: bool, of: Any = lambda v: v) -> Any:
    """A check of images of ones: numbers uniform between these, the same for all pixels."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        y = outputs[0]
        assert np.array_equal(y, np.broadcast_to(y[..., :1, :1], y.shape))
        v = of(y[..., 0, 0])
        assert np.array_equal(v[:, 0], v[:, 1]) != each
        for c in range(2):
            uniform(v[:, c], low, high)
        if each:
            assert abs(np.corrcoef(v.T)[0, 1]) < 5 / np.sqrt(len(v))

    return check


def both(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """(1 + b - 0.5) c + 0.5, b uniform in +-0.5 and the logarithm of c in +-log 2."""
    y = outputs[0][:, 0, 0, 0]
    assert y.min() >= 0.5 - 1e-3 and y.max() <= 2.5 + 1e-3
    c = 2 ** np.linspace(-1, 1, 2001)
    kolmogorov(y, lambda y: np.clip((y[:, None] - 0.5) / c, 0, 1).mean(1))


def noisy(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    noise = outputs[0] - inputs[0]
    sigma = noise.std((1, 2, 3))
    assert 0.5 < sigma.max() < 2.2
    kolmogorov(sigma, lambda v: np.clip(v / 2, 0, 1))
    z = np.sort((noise / sigma.reshape(-1, 1, 1, 1)).ravel())
    assert abs(z.mean()) < 0.02 and abs((z**4).mean() - 3) < 0.3
    assert abs(np.mean(noise[:, 0] * noise[:, 1])) < 0.05


ONES = np.ones((600, 2, 2, 3))
WIDE = ("float", "double")
NO = {"differentiable": False}


def case(name: str, x: np.ndarray, check: Any, **args: Any) -> Case:
    return Case(name=name, inputs=[x], args=args, check=check, types=WIDE, **NO)


CASES = [
    Case(inputs=[(2, 3, 4, 5)], **NO, name="default is x"),
    Case(
        inputs=[(2, 3, 4, 5)],
        **NO,
        name="another shape",
        reshaped=[(1, 1, 3, 2)],
        oracle=False,
        reason="NNabla keeps the shape of its first input",
    ),
    Case(inputs=[(4, 5)], **NO, name="two axes"),
    Case(inputs=[(2, 2, 1, 4, 5)], **NO, name="five axes"),
    Case(inputs=[(2, 3, 4, 5)], args={"shape": (3, 6, 9), "pad": (1, 2)}, **NO, name="padding"),
    case("a part", places(500, 8, 6), cropped, shape=(4, 4)),
    case("scale", places(500, 40, 40), scaled, min_scale=1.0, max_scale=4.0),
    case("aspect ratio", places(500, 40, 40), stretched, aspect_ratio=2.0),
    case("angle", places(500, 20, 20), turned, angle=0.5),
    case("distortion", places(500, 12, 16), distorted, distortion=0.5),
    case("flips", places(500, 4, 5), flipped, flip_lr=True, flip_ud=True),
    case("brightness", ONES, values(0.5, 1.5, False), brightness=0.5),
    case("brightness each", ONES, values(0.5, 1.5, True), brightness=0.5, brightness_each=True),
    case("contrast", ONES, values(-1, 1, False, np.log2), contrast=2.0),
    case("contrast each", ONES, values(-1, 1, True, np.log2), contrast=2.0, contrast_each=True),
    case("contrast and brightness", ONES, both, contrast=2.0, brightness=0.5, contrast_center=0.5),
    case("noise", np.ones((300, 2, 16, 16)), noisy, noise=2.0),
    Case(
        inputs=[(3, 2, 6, 6)],
        call=lambda F, x: [F.image_augmentation(x, shape=(4, 4), angle=0.5, noise=0.1, seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
    case(
        "all as far as it goes",
        places(200, 6, 5),
        lambda y, x: np.testing.assert_array_equal(np.isfinite(y[0]), True),
        min_scale=1e-9,
        max_scale=1e9,
        aspect_ratio=1e9,
        distortion=20.0,
        angle=1e300,
    ),
    Case(inputs=[(0, 1, 4, 4)], args={"angle": 0.5}, check=lambda y, x: None, **NO, name="empty"),
]
X = (2, 1, 6, 6)
LOOSE = {"oracle": False, "reason": "NNabla takes it, or dies"}
ERRORS = [
    Error(inputs=[X], args={name: v}, match=f"argument '{name}'", name=f"{name} = {v}", **LOOSE)
    for name, v in (
        ("min_scale", 0.0),
        ("max_scale", -1.0),
        ("aspect_ratio", 0.0),
        ("contrast", 0.0),
        ("angle", float("nan")),
        ("distortion", float("inf")),
        ("distortion", 1e10),
        ("distortion", -21.0),
        ("min_scale", 1e-10),
        ("max_scale", 1e10),
        ("aspect_ratio", 1e10),
        ("noise", float("inf")),
        ("brightness", float("nan")),
        ("contrast_center", float("inf")),
        ("pad", (1,)),
        ("pad", (-1, 0)),
        ("shape", (3,)),
        ("shape", (2, 4, 4)),
        ("shape", (-1, 4)),
        ("shape", (1, 2, 1, 4, 4)),
    )
]
ERRORS += [
    Error(inputs=[(4,)], match="argument 'x'", name="one axis", **LOOSE),
    Error(inputs=[(2, 1, 0, 4)], args={"shape": (4, 4)}, match="argument 'x'", name="no pixel", **LOOSE),
]
