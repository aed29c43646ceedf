"""`onnx_resize`: all axes resampled as ONNX's Resize does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from function.case import Case, Error
from resampling import apply, matrix


def place(mode: str, n: int, m: int, factor: float, first: float, end: float) -> Callable[[int], float]:
    if mode == "align_corners":
        return lambda j: j * (n - 1) / (m - 1) if m > 1 else 0.0
    if mode == "asymmetric":
        return lambda j: j / factor
    if mode == "tf_half_pixel_for_nn":
        return lambda j: (j + 0.5) / factor if factor != 1 else j
    if mode == "tf_crop_and_resize":
        f = np.float32  # in which NNabla decides what is at an element, or beyond the ends
        begin, size, last, middle = f(first), f(end) - f(first), f(n - 1), f(0.5) * (f(first) + f(end))
        return lambda j: float(begin * last + f(j) * size * last / f(m - 1) if m > 1 else middle * last)
    if mode == "pytorch_half_pixel" and m == 1:
        return lambda j: 0.0
    return lambda j: (j + 0.5) / factor - 0.5


def reference(
    x: np.ndarray,
    roi: Sequence[float] = (),
    scales: Sequence[float] = (),
    sizes: Sequence[int] = (),
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float | None = None,
    exclude_outside: int | None = None,
    extrapolation_value: float | None = None,
    nearest_mode: str = "round_prefer_floor",
) -> np.ndarray:
    crop = coordinate_transformation_mode == "tf_crop_and_resize"
    outside = []
    for a, n in enumerate(x.shape):
        m = sizes[a] if len(sizes) else int(np.floor(scales[a] * n))
        factor = m / n if len(sizes) else scales[a]
        first, end = (roi[a], roi[x.ndim + a]) if crop else (0, 1)
        at = place(coordinate_transformation_mode, n, m, factor, first, end)
        way = nearest_mode if mode == "nearest" else mode
        inside = mode == "cubic" and bool(exclude_outside)
        a_cubic = -0.75 if cubic_coeff_a is None else cubic_coeff_a
        x = apply(x, a, matrix(n, m, at, way, a_cubic, inside, crop))
        outside.append([j for j in range(m) if crop and not 0 <= at(j) <= n - 1])
    for a, places in enumerate(outside):
        np.moveaxis(x, a, 0)[places] = extrapolation_value or 0
    return x


WAYS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn")
MODES = ("nearest", "linear", "cubic")
CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}


def forward(name: str, x: tuple[int, ...] = (1, 1, 5), **args: object) -> Case:
    return Case(inputs=[x], args=args, name=name, differentiable=False)


def gradient(name: str, x: tuple[int, ...], **args: object) -> Case:
    return Case(inputs=[x], args=args, name=f"gradient, {name}", oracle=False, reason="NNabla has no gradient")


CASES = [
    *(
        forward(f"{mode} {way}", sizes=(1, 1, 8), mode=mode, coordinate_transformation_mode=way)
        for mode in MODES
        for way in WAYS
    ),
    *(
        forward(
            f"{mode} {way} by scales", (2, 3, 4), scales=(1, 1.5, 1.7), mode=mode, coordinate_transformation_mode=way
        )
        for mode in MODES
        for way in WAYS
    ),
    *(
        forward(f"nearest {way}", sizes=(1, 1, 10), coordinate_transformation_mode="asymmetric", nearest_mode=way)
        for way in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ),
    *(
        forward(
            f"{mode} kept axes",
            (3, 4, 3),
            scales=scales,
            mode=mode,
            coordinate_transformation_mode="tf_half_pixel_for_nn",
        )
        for mode in ("nearest", "linear")
        for scales in ((2, 1, 2), (1, 1.3, 1))
    ),
    *(
        Case(
            inputs=[(2, 3, 4)],
            args={"sizes": (3, 4, 7), "mode": mode, "roi": (-0.2, 0, -0.1, 1, 1.3, 1.2), "extrapolation_value": -1.0}
            | CROP,
            name=f"{mode}, a crop that begins before the array",
            differentiable=mode != "nearest",
            oracle=False,
            reason="golden values would say no more",
        )
        for mode in MODES
    ),
    forward("coefficient", sizes=(1, 1, 8), mode="cubic", cubic_coeff_a=-0.5),
    forward("outside excluded", sizes=(1, 1, 8), mode="cubic", exclude_outside=1),
    *(
        forward(
            f"crop {mode}", roi=(0, 0, 0.2, 1, 1, 1.4), sizes=(1, 1, 8), mode=mode, extrapolation_value=-7.0, **CROP
        )
        for mode in MODES
    ),
    *(
        forward(f"crop at elements, {way}", (1, 1, n), roi=(0, 0, *roi), nearest_mode=way, **size, **CROP)
        for way in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for n, roi, size in (
            (6, (0.2, 1, 1, 0.8), {"scales": (1, 1, 0.7)}),
            (11, (0.6, 1, 1, 0.7), {"sizes": (1, 1, 8)}),
            (8, (0.6, 1, 1, 0.4), {"sizes": (1, 1, 17)}),
            (11, (0.1, 1, 1, 0.3), {"sizes": (1, 1, 1)}),
        )
    ),
    forward("to one element", sizes=(1, 1, 1), mode="linear"),
    forward(
        "to one element, the first", sizes=(1, 1, 1), mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    ),
    *(gradient(mode, (2, 3), sizes=(3, 5), mode=mode) for mode in MODES),
    gradient(
        "middles as they are", (2, 5), sizes=(2, 9), mode="cubic", coordinate_transformation_mode="tf_half_pixel_for_nn"
    ),
    gradient("excluded", (1, 5), sizes=(2, 8), mode="cubic", exclude_outside=1),
    gradient("smaller", (6, 7), sizes=(3, 3), mode="cubic"),
    gradient("crop", (2, 5), roi=(0, 0.2, 1, 1.4), sizes=(2, 8), mode="linear", extrapolation_value=-7.0, **CROP),
    gradient("crop, turned round", (3, 5), roi=(0.2, 0.9, 1.1, 0), sizes=(3, 4), mode="linear", **CROP),
    gradient("four axes", (2, 2, 2, 2), sizes=(3, 1, 3, 4), mode="linear"),
]
ERRORS = [
    Error(inputs=[(2, 3)], match="argument 'sizes'", name="neither"),
    Error(inputs=[(2, 3)], args={"sizes": (2, 3), "scales": (1, 1)}, match="argument 'sizes'", name="both"),
    Error(inputs=[(2, 3)], args={"sizes": (5,)}, match="argument 'sizes'", name="short sizes"),
    Error(inputs=[(2, 3)], args={"scales": (2,)}, match="argument 'scales'", name="short scales"),
    Error(inputs=[(2, 3)], args={"scales": (1, 0.1)}, match="argument 'scales'", oracle=False, reason="no error"),
    Error(inputs=[(2, 3)], args={"sizes": (2, 0)}, match="argument 'sizes'", oracle=False, reason="no error"),
    Error(inputs=[(2, 3)], args={"sizes": (2, 5), "mode": "area"}, match="argument 'mode'"),
    Error(inputs=[(2, 3)], args={"sizes": (2, 5), "nearest_mode": "up"}, match="argument 'nearest_mode'"),
    Error(
        inputs=[(2, 3)],
        args={"sizes": (2, 5), "coordinate_transformation_mode": "centre"},
        match="argument 'coordinate_transformation_mode'",
    ),
    Error(inputs=[(2, 3)], args={"sizes": (2, 5), **CROP}, match="argument 'roi'", name="no roi"),
    Error(inputs=[(0, 3)], args={"sizes": (2, 5)}, match="argument 'x'", oracle=False, reason="dies"),
]
