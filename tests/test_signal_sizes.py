"""Resampling and transforms at sizes of several lines, blocks and tasks of their kernels, forward and backward, against
matrices and NumPy. (The cases of every function are small; with NNRS_TEST_BACKEND=cudnn these run on a GPU.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from backend import BACKEND
from nnrs.ext_utils import get_extension_context
from resampling import apply, matrix

Array = np.ndarray


@pytest.fixture(autouse=True, params=["float", "double"])
def _type(request: pytest.FixtureRequest) -> Iterator[None]:
    if BACKEND == "cpu" and request.param == "double":
        with nn.context_scope(nn.Context(["cpu:double"])):
            yield
    else:
        with nn.context_scope(get_extension_context(BACKEND, type_config="float")):
            yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-8, 9, shape) / 8.0


def check(y: nn.Variable, want: Array, x: nn.Variable, gy: Array, gx: Array) -> None:
    """Compares y, and the gradient of x: written, and added to what is there."""
    y.forward()
    np.testing.assert_allclose(y.d, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
    for start in (0.0, 0.5):
        x.g = start
        if not start:
            x.grad.zero()
        y.backward(nn.NdArray.from_numpy_array(gy))
        np.testing.assert_allclose(x.g, gx + start, rtol=1e-5, atol=1e-5 * np.abs(gx).max())


RESIZED = [
    ((3, 7, 64, 64), (37, 41)),
    ((2, 5, 30, 50), (77, 91)),
    ((2, 3, 33, 20), (99, 60)),
    ((4, 3, 64, 70), (32, 35)),
    ((40, 500), (750,)),
    ((40, 300), (200,)),
    ((3, 900), (1000,)),
    ((2, 3, 9, 10, 11), (13, 7, 20)),
    ((2, 17, 5, 60), (5, 61)),
    ((130, 6, 7), (9, 5)),
]


@pytest.mark.parametrize(("shape", "size"), RESIZED)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_interpolate(shape: tuple[int, ...], size: tuple[int, ...], mode: str) -> None:
    xd = numbers(*shape)
    x = nn.Variable.from_numpy_array(xd, need_grad=True)
    y = F.interpolate(x, output_size=size, mode=mode)
    gy = numbers(*y.shape, seed=1)
    want, gx = xd, gy
    for axis, m in enumerate(size, len(shape) - len(size)):
        n = shape[axis]
        by = matrix(n, m, lambda j, n=n, m=m: j * n / m, "linear" if mode == "linear" else "floor")
        want, gx = apply(want, axis, by), apply(gx, axis, by.T)
    check(y, want, x, gy, gx)


@pytest.mark.skipif(BACKEND != "cpu", reason="cuFFT is not everywhere")
@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 20, 37), 2), ((2, 9, 16, 24), 3), ((3, 33, 17), 2), ((3, 64, 100), 2), ((1, 8, 8), 2)]
)
@pytest.mark.parametrize("inverse", [False, True])
def test_fft(shape: tuple[int, ...], axes: int, inverse: bool) -> None:
    xd, last = numbers(*shape, 2), tuple(range(len(shape) - axes, len(shape)))
    x = nn.Variable.from_numpy_array(xd, need_grad=True)
    y = (F.ifft if inverse else F.fft)(x, axes)
    gy = numbers(*y.shape, seed=1)

    def transformed(a: Array, backward: bool) -> Array:
        there = np.fft.fftn if inverse == backward else np.fft.ifftn
        # The transpose of a transform is the other one, without its factor or with it.
        norm = "forward" if backward else "backward"
        made = there(a[..., 0] + 1j * a[..., 1], axes=last, norm=norm)
        return np.stack([made.real, made.imag], -1)

    check(y, transformed(xd, False), x, gy, transformed(gy, True))


@pytest.mark.skipif(BACKEND != "cpu", reason="cuFFT is not everywhere")
@pytest.mark.parametrize(("samples", "size", "stride"), [(1000, 64, 16), (700, 48, 11)])
def test_stft(samples: int, size: int, stride: int) -> None:
    """Spectra; their gradient, by a product with what another signal's spectra are; and the way back."""
    xd, other = numbers(3, samples), numbers(3, samples, seed=1)
    x = nn.Variable.from_numpy_array(xd, need_grad=True)
    parts = F.stft(x, size, stride, size)
    nn.forward_all(parts)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)

    def spectra(signal: Array) -> list[Array]:
        padded = np.pad(signal, [(0, 0), (size // 2, size // 2)], mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, size, 1)[:, ::stride]
        made = np.fft.rfft(frames * window).transpose(0, 2, 1)
        return [made.real, made.imag]

    for part, want in zip(parts, spectra(xd), strict=True):
        np.testing.assert_allclose(part.d, want, rtol=1e-4, atol=1e-4)
    g = [numbers(*part.shape, seed=2 + k) for k, part in enumerate(parts)]
    slope = sum((a * b).sum() for a, b in zip(g, spectra(other), strict=True))
    total = F.add_n(*(F.sum(part * nn.Variable.from_numpy_array(a)) for part, a in zip(parts, g, strict=True)))
    for start in (0.0, 0.5):
        x.g = start
        if not start:
            x.grad.zero()
        total.forward()
        total.backward()
        np.testing.assert_allclose(((x.g - start) * other).sum(), slope, rtol=1e-4)
    back = F.istft(*parts, size, stride, size)
    back.forward()
    np.testing.assert_allclose(back.d, xd[:, : back.shape[1]], rtol=1e-4, atol=1e-4)
