"""`istft`: frames of spectra added up, and the gradient of `stft`, as sums."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error
from function.stft import WIDE, inverse_weights, roots, squares, window


def reference(
    y_r: np.ndarray,
    y_i: np.ndarray,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str | None = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_stft_backward: bool = False,
) -> np.ndarray:
    w, border = window(window_type, window_size, fft_size), fft_size // 2 if center else 0
    frames = y_r.shape[-1]
    scale = np.ones(fft_size // 2 + 1) if as_stft_backward else inverse_weights(fft_size)
    z = (y_r + 1j * y_i) * scale[:, None]
    pieces = np.einsum("kn,...kf->...nf", roots(fft_size).conj(), z).real * w[:, None]
    total = np.zeros((*y_r.shape[:-2], stride * (frames - 1) + fft_size))
    for f in range(frames):
        total[..., f * stride : f * stride + fft_size] += pieces[..., f]
    samples = total.shape[-1] - 2 * border
    if not as_stft_backward:
        with np.errstate(all="ignore"):
            total = total / squares(w, stride, frames)
    x = total[..., border : border + samples].copy()
    if as_stft_backward and pad_mode == "reflect":
        places = np.pad(np.arange(samples), border, "reflect")
        for p in (*range(border), *range(border + samples, total.shape[-1])):
            x[..., places[p]] += total[..., p]
    return x


SPEC = {"window_size": 8, "stride": 4, "fft_size": 8}
NO_DEFAULT = "NNabla wants pad_mode='constant'"


def in_one_frame(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """What is NaN in one bin of the second of three frames is in all samples of this frame."""
    np.testing.assert_array_equal(np.isnan(outputs[0]), [[False] * 8 + [True] * 8 + [False] * 8])


def second(value: float) -> list[list[list[float]]]:
    """Five bins of three frames."""
    return [[[1.0, value if k == 2 else 1.0, 1.0] for k in range(5)]]


CASES = [
    Case(inputs=[(2, 5, 4), (2, 5, 4)], args=SPEC, tolerance=WIDE, oracle=False, reason=NO_DEFAULT),
    Case(inputs=[(2, 5, 4), (2, 5, 4)], args={**SPEC, "pad_mode": "constant"}, name="constant", tolerance=WIDE),
    Case(
        inputs=[(1, 5, 3), (1, 5, 3)],
        args={**SPEC, "window_type": "hamming", "center": False, "pad_mode": "constant"},
        name="no border",
        tolerance=WIDE,
    ),
    Case(
        inputs=[(1, 5, 4), (1, 5, 4)],
        args={"window_size": 7, "stride": 3, "fft_size": 9, "pad_mode": "constant", "window_type": None},
        name="odd sizes",
        tolerance=WIDE,
        oracle=False,
        reason="NNabla counts the last bin once",
    ),
    Case(
        inputs=[(4, 5), (4, 5)],
        args={"window_size": 6, "stride": 4, "fft_size": 6, "window_type": "hamming"},
        name="a stride that does not divide",
        tolerance=WIDE,
        oracle=False,
        reason="NNabla refuses",
    ),
    *(
        Case(
            inputs=[(1, 5, 4), (1, 5, 4)],
            args={**SPEC, "as_stft_backward": True, "pad_mode": mode},
            name=f"gradient of the transform, {mode}",
            tolerance=WIDE,
        )
        for mode in ("reflect", "constant")
    ),
    Case(
        inputs=[(2, 17, 40), (2, 17, 40)],
        args={"window_size": 30, "stride": 8, "fft_size": 32},
        name="many frames",
        types=("float", "double"),
        differentiable=False,
        oracle=False,
        reason=NO_DEFAULT,
    ),
    *(
        Case(
            inputs=[second(real), second(imaginary)],
            args={"window_size": 8, "stride": 8, "fft_size": 8, "window_type": "rectangular", "center": False}
            | {"pad_mode": "constant"},
            name=f"NaN in one bin, {real}, {imaginary}",
            differentiable=False,
            check=in_one_frame,
        )
        for real, imaginary in ((np.nan, 1.0), (1.0, np.nan))
    ),
]
ERRORS = [
    Error(inputs=[(1, 4, 3), (1, 4, 3)], args=SPEC, match="argument 'y_r'", name="bins"),
    Error(inputs=[(1, 5, 3), (1, 5, 4)], args=SPEC, match="argument 'y_i'", name="frames"),
    Error(
        inputs=[(1, 5, 3), (1, 5, 3)], args={**SPEC, "center": False}, match="argument 'stride'", name="windows of 0"
    ),
    Error(inputs=[(1, 5, 3), (1, 5, 3)], args={**SPEC, "stride": 9}, match="argument 'stride'", name="gaps"),
    Error(
        inputs=[(1, 5, 1), (1, 5, 1)], args=SPEC, match="argument 'y_r'", name="no samples", oracle=False, reason="dies"
    ),
]
