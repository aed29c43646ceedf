"""`random_erase`: rectangles of images replaced by random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error
from moved_samples import same


def reference(x: np.ndarray, prob: float = 0.5, **more: Any) -> np.ndarray:
    if prob:
        raise ValueError("only prob = 0 is not random")
    return x


def box(erased: np.ndarray) -> tuple[int, int]:
    """Height and width of what is erased of an image, which is a rectangle."""
    rows, columns = np.flatnonzero(erased.any(1)), np.flatnonzero(erased.any(0))
    assert (
        erased.sum() == rows.size * columns.size == np.prod([np.ptp(v) + 1 if v.size else 0 for v in (rows, columns)])
    )
    return rows.size, columns.size


def patches(heights: set[int], widths: set[int], share: bool = True, channel_last: bool = False):
    """A check of images of zeros: rectangles of these sizes, other numbers in each element."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        y = np.moveaxis(outputs[0], -1, -3) if channel_last else outputs[0]
        for image in y.reshape(-1, *y.shape[-3:]):
            sizes = {box(channel != 0) for channel in image}
            assert all(h in heights and w in widths for h, w in sizes), sizes
            assert not share or all(np.array_equal(channel != 0, image[0] != 0) for channel in image)
        values = y[y != 0]
        assert values.min() >= 1 and values.max() <= 2 and len(np.unique(values)) > 10
        assert len({(c != 0).tobytes() for c in y.reshape(-1, *y.shape[-2:])}) > 1, "all erased alike"

    return check


def often(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    share = (outputs[0] != 0).any((1, 2, 3)).mean()
    assert abs(share - (1 - 0.7**2)) < 5 * np.sqrt(0.25 / 2000), share


def ones(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert set(np.unique(outputs[0])) == {0.0, 5.0}


# Height sqrt(80 ratio), width sqrt(80 / ratio); a row and a column more, or one less at the border.
SQUARE = {"prob": 1.0, "area_ratios": (0.2, 0.2), "aspect_ratios": (1.0, 1.0), "replacements": (1.0, 2.0)}
FLAT = {**SQUARE, "aspect_ratios": (0.2, 0.2)}
ZEROS = np.zeros((40, 2, 20, 20))
NO = {"differentiable": False}
CASES = [
    Case(
        inputs=[(2, 3, 4, 5)],
        args={"prob": 0.0},
        name="never",
        oracle=False,
        reason="NNabla dies in the second backward",
    ),
    Case(inputs=[ZEROS], args=SQUARE, check=patches({8, 9}, {8, 9}), **NO, name="squares"),
    Case(inputs=[ZEROS], args=FLAT, check=patches({4, 5}, {20}), **NO, name="all of a row"),
    Case(inputs=[ZEROS], args={**SQUARE, "share": False}, check=patches({8, 9}, {8, 9}, False), **NO, name="channels"),
    Case(
        inputs=[np.zeros((40, 20, 20, 3))],
        args={**SQUARE, "channel_last": True},
        check=patches({8, 9}, {8, 9}, True, True),
        **NO,
        oracle=False,
        reason="NNabla has it on GPUs only",
        name="channel_last",
    ),
    Case(
        inputs=[np.zeros((40, 20, 20, 3))],
        args={**SQUARE, "channel_last": True, "share": False},
        check=patches({8, 9}, {8, 9}, False, True),
        **NO,
        oracle=False,
        reason="NNabla has it on GPUs only",
        name="channels, channel_last",
    ),
    Case(
        inputs=[np.zeros((5, 4, 2, 20, 20))],
        args={**SQUARE, "base_axis": -3},
        check=patches({8, 9}, {8, 9}),
        **NO,
        name="two axes of samples",
    ),
    Case(
        inputs=[np.zeros((2000, 1, 6, 6))],
        args={"prob": 0.3, "n": 2, "replacements": (1.0, 2.0)},
        check=often,
        **NO,
        name="how often",
    ),
    Case(inputs=[ZEROS], args={**SQUARE, "replacements": (5.0, 5.0)}, check=ones, **NO, name="one replacement"),
    Case(
        inputs=[ZEROS],
        call=lambda F, x: [F.random_erase(x, 1.0, seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
    Case(inputs=[(0, 3, 4, 4)], check=lambda y, x: None, **NO, name="no sample"),
    Case(inputs=[(2, 3, 0, 4)], args={"prob": 1.0}, check=lambda y, x: None, **NO, name="no pixel"),
]
X = (2, 3, 4, 4)
LOOSE = {"oracle": False, "reason": "NNabla takes it"}
ERRORS = [
    Error(inputs=[X], args={"prob": 1.5}, match="argument 'prob'", name="prob"),
    Error(inputs=[X], args={"prob": -1.0}, match="argument 'prob'", name="negative prob"),
    Error(inputs=[X], args={"area_ratios": (0.5,)}, match="argument 'area_ratios'", name="one ratio"),
    Error(
        inputs=[X], args={"area_ratios": (-1.0, 0.5)}, match="argument 'area_ratios'", name="a negative area", **LOOSE
    ),
    Error(inputs=[X], args={"aspect_ratios": (1.0,)}, match="argument 'aspect_ratios'", name="one aspect ratio"),
    Error(inputs=[X], args={"aspect_ratios": (-1.0, 1.0)}, match="argument 'aspect_ratios'", name="negative", **LOOSE),
    Error(inputs=[X], args={"replacements": (3.0,)}, match="argument 'replacements'", name="one replacement"),
    Error(inputs=[X], args={"replacements": (0.0, np.nan)}, match="argument 'replacements'", name="NaN", **LOOSE),
    Error(inputs=[X], args={"n": 0}, match="argument 'n'", name="n"),
    Error(inputs=[X], args={"base_axis": 2}, match="argument 'base_axis'", name="two axes of an image"),
    Error(inputs=[X], args={"base_axis": 4}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[()], match="argument 'base_axis'", name="0-d"),
]
