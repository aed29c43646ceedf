"""`stft`: spectra of windowed frames, and the gradient of `istft`, as sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def window(kind: str | None, width: int, size: int) -> np.ndarray:
    """The window in the middle of a frame."""
    angle = 2 * np.pi * np.arange(width) / width
    shapes = {"hanning": 0.5 - 0.5 * np.cos(angle), "hamming": 0.54 - 0.46 * np.cos(angle)}
    before = (size - width) // 2
    return np.pad(shapes.get(kind or "", np.ones(width)), (before, size - width - before))


def roots(size: int) -> np.ndarray:
    """Rows of bins, columns of samples."""
    return np.exp(-2j * np.pi * (np.outer(np.arange(size // 2 + 1), np.arange(size)) % size) / size)


def inverse_weights(size: int) -> np.ndarray:
    """What each bin counts in the inverse: those in the middle stand for two."""
    bins = np.arange(size // 2 + 1)
    return np.where((bins == 0) | (2 * bins == size), 1, 2) / size


def squares(w: np.ndarray, stride: int, frames: int) -> np.ndarray:
    """Sums of the squares of the windows at each sample."""
    total = np.zeros(stride * (frames - 1) + len(w))
    for f in range(frames):
        total[f * stride : f * stride + len(w)] += w**2
    return total


def reference(
    x: np.ndarray,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str | None = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_istft_backward: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    w, border = window(window_type, window_size, fft_size), fft_size // 2 if center else 0
    mode: Any = "constant" if as_istft_backward or pad_mode == "constant" else "reflect"
    frames = (x.shape[-1] + 2 * border - fft_size) // stride + 1
    scale = inverse_weights(fft_size) if as_istft_backward else np.ones(fft_size // 2 + 1)
    if as_istft_backward:
        total = squares(w, stride, frames)[border:]
        x = x / total[: x.shape[-1]]
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(border, border)], mode)
    pieces = np.stack([x[..., f * stride : f * stride + fft_size] * w for f in range(frames)], -1)
    y = np.einsum("kn,...nf->...kf", roots(fft_size), pieces) * scale[:, None]
    return y.real, y.imag


SPEC = {"window_size": 8, "stride": 4, "fft_size": 8}
WIDE = {"half": 2e-2, "bfloat16": 1e-1}


def in_one_frame(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """NaN or an infinity in the second of three frames is in all of its bins, also where an imaginary part is 0."""
    for y in outputs:
        assert y.shape == (1, 5, 3)
        np.testing.assert_array_equal(np.isfinite(y), np.broadcast_to([True, False, True], y.shape))
        if np.isnan(inputs[0]).any():
            assert np.isnan(y[..., 1]).all()


CASES = [
    Case(inputs=[(2, 16)], args=SPEC, tolerance=WIDE, reshaped=[(1, 20)]),
    Case(
        inputs=[(1, 12)], args={**SPEC, "window_type": "hamming", "pad_mode": "constant"}, name="zeros", tolerance=WIDE
    ),
    Case(inputs=[(1, 12)], args={**SPEC, "window_type": None, "center": False}, name="no border", tolerance=WIDE),
    Case(
        inputs=[(1, 15)],
        args={"window_size": 5, "stride": 2, "fft_size": 9},
        name="odd sizes",
        tolerance=WIDE,
        oracle_grad=False,
        reason="NNabla refuses strides that do not divide",
    ),
    Case(
        inputs=[(1, 14)],
        args={"window_size": 6, "stride": 3, "fft_size": 6, "center": False},
        name="samples left over",
        tolerance=WIDE,
        oracle_grad=False,
        reason="NNabla's gradient has another size",
    ),
    Case(
        inputs=[(1, 12)],
        args={**SPEC, "as_istft_backward": True, "pad_mode": "constant"},
        name="gradient of the inverse",
        tolerance=WIDE,
    ),
    Case(
        inputs=[(3,)],
        args={"window_size": 4, "stride": 1, "fft_size": 4},
        name="one signal",
        tolerance=WIDE,
        oracle=False,
        reason="NNabla wants two axes",
    ),
    Case(
        inputs=[(1, 2)],
        args=SPEC,
        name="reflected back and forth",
        tolerance=WIDE,
        oracle=False,
        reason="NNabla refuses",
    ),
    Case(
        inputs=[(3, 300)],
        args={"window_size": 30, "stride": 7, "fft_size": 32},
        name="many frames",
        types=("float", "double"),
        differentiable=False,
    ),
    *(
        Case(
            inputs=[[[1.0] * 11 + [value] + [1.0] * 12]],
            args={"window_size": 8, "stride": 8, "fft_size": 8, "window_type": "rectangular", "center": False},
            name=f"{value}",
            differentiable=False,
            check=in_one_frame,
        )
        for value in (np.nan, np.inf)
    ),
    Case(inputs=[(0, 16)], args=SPEC, name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(1, 16)], args={**SPEC, "window_size": 9}, match="argument 'window_size'"),
    Error(
        inputs=[(1, 16)], args={**SPEC, "window_size": 0}, match="argument 'window_size'", oracle=False, reason="dies"
    ),
    Error(inputs=[(1, 16)], args={**SPEC, "stride": 0}, match="argument 'stride'", oracle=False, reason="dies"),
    Error(inputs=[(1, 16)], args={**SPEC, "fft_size": 0}, match="argument 'fft_size'", oracle=False, reason="dies"),
    Error(inputs=[(1, 16)], args={**SPEC, "window_type": "kaiser"}, match="argument 'window_type'"),
    Error(inputs=[(1, 16)], args={**SPEC, "pad_mode": "wrap"}, match="argument 'pad_mode'"),
    Error(inputs=[(1, 7)], args={**SPEC, "center": False}, match="argument 'x'", oracle=False, reason="dies"),
    Error(inputs=[(1, 0)], args=SPEC, match="argument 'x'", oracle=False, reason="dies"),
    Error(inputs=[()], args=SPEC, match="argument 'x'", name="0-d", oracle=False, reason="dies"),
]
