"""More shapes of some functions, at which a kernel for the usual one may be slow: by function and what is special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .function_calls import Call, uniform, whole

MAPS = (8, 64, 56, 56)
DIGITS = (64, 1, 28, 28)
NARROW = (30_000, 32)
CUBE = (100, 100, 100)


def pooled(of_torch: str, x: tuple[int, ...], size: int, stride: int, pad: int = 0) -> Call:
    args = {"kernel": (size, size), "stride": (stride, stride), "pad": (pad, pad)}
    return Call((x,), args, torch=lambda torch, x: getattr(torch.nn.functional, of_torch)(x, size, stride, pad))


def along_last(x: Any, torch: Callable[..., Any]) -> Call:
    return Call((x,), {"axis": -1}, torch=torch)


def normalized(x: tuple[int, ...]) -> Call:
    return Call(
        (x,),
        call=lambda F, x: F.layer_normalization(x, None, None),
        torch=lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:]),
    )


def nearest(x: tuple[int, ...], scale: float) -> Call:
    return Call(
        (x,),
        {"scale": (scale, scale), "mode": "nearest"},
        torch=lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=scale, mode="nearest"),
    )


def resized(x: tuple[int, ...], size: tuple[int, ...], mode: str, of_torch: str) -> Call:
    return Call(
        (x,),
        {"output_size": size, "mode": mode},
        torch=lambda torch, x: torch.nn.functional.interpolate(x, size=size, mode=of_torch),
    )


SHAPES: dict[str, dict[str, Call]] = {
    "max_pooling": {
        "3x3 stride 2": pooled("max_pool2d", MAPS, 3, 2, 1),
        "3x3": pooled("max_pool2d", DIGITS, 3, 3),
        "5x5": pooled("max_pool2d", DIGITS, 5, 5),
        "2x2 of 7x7": pooled("max_pool2d", (512, 64, 7, 7), 2, 2),
    },
    "average_pooling": {"3x3 stride 2": pooled("avg_pool2d", MAPS, 3, 2, 1), "5x5": pooled("avg_pool2d", DIGITS, 5, 5)},
    "cumprod": {
        "one line": along_last(uniform(0.999, 1.001, 1, 1_000_000), lambda torch, x: torch.cumprod(x, -1)),
    },
    "layer_normalization": {"rows of 1": normalized((200_000, 1)), "rows of 32": normalized(NARROW)},
    "weight_standardization": {"rows of 1": Call(((200_000, 1),))},
    "group_normalization": {
        "2x2 maps": Call(
            ((1000, 8, 2, 2),),
            call=lambda F, x: F.group_normalization(x, None, None, 4),
            torch=lambda torch, x: torch.nn.functional.group_norm(x, 4),
        ),
    },
    "softmax": {"rows of 32": along_last(NARROW, lambda torch, x: torch.softmax(x, -1))},
    "interpolate": {
        "half": nearest(MAPS, 0.5),
        "twice 3x3": nearest((2000, 4, 3, 3), 2),
        "64x64 to 37x41": resized((16, 16, 64, 64), (37, 41), "linear", "bilinear"),
        "64x64 to 96x96": resized((16, 16, 64, 64), (96, 96), "linear", "bilinear"),
        "64x64 to 77x91, nearest": resized((16, 16, 64, 64), (77, 91), "nearest", "nearest"),
        "1000 to 1500": resized((16, 64, 1000), (1500,), "linear", "linear"),
        "cubes of 16, nearest": resized((4, 8, 16, 16, 16), (20, 21, 22), "nearest", "nearest"),
    },
    "gather_nd": {
        "rows of 4": Call(((300, 300, 4), whole(300, 2, 200_000)), torch=lambda torch, x, i: x[i[0], i[1]]),
    },
    "trilu": {"3x3": Call(((100_000, 3, 3),), torch=lambda torch, x: torch.triu(x))},
    "concatenate": {
        "rows of 5": Call(
            ((20_000, 5),) * 8,
            call=lambda F, *x: F.concatenate(*x, axis=1),
            torch=lambda torch, *x: torch.cat(x, 1),
        ),
    },
    "max": {"rows of 2": along_last((200_000, 2), lambda torch, x: torch.max(x, -1)[0])},
    "prod": {"rows of 100": along_last(CUBE, lambda torch, x: torch.prod(x, -1))},
    "affine": {
        "4 columns": Call(((10_000, 4), (4, 4), (4,)), torch=lambda torch, x, w, b: torch.addmm(b, x, w)),
    },
    "deconvolution": {
        "small maps": Call(
            ((1, 512, 4, 4), (512, 3, 3, 3)),
            torch=lambda torch, x, w: torch.nn.functional.conv_transpose2d(x, w),
        ),
    },
    "einsum": {
        "outer product": Call(
            ((256, 64), (256, 64)),
            call=lambda F, a, b: F.einsum(a, b, equation="bi,bj->bij"),
            torch=lambda torch, a, b: torch.einsum("bi,bj->bij", a, b),
        ),
    },
}
