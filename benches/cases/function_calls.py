"""A call of every function of the library, large enough that its kernel is what takes the time.

Sizes are those of small networks: a million elements where nothing else asks for less. `torch` says the same in torch's
words, where it has a function for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]
FLAT = (1000, 1000)
IMAGES = (16, 32, 56, 56)
ROWS = (4096, 256)


@dataclass(frozen=True)
class Call:
    """`F.name(*inputs, **args)`; a tuple is a shape of standard normal numbers."""

    inputs: Sequence[Any] = (FLAT,)
    args: dict[str, Any] = field(default_factory=dict)
    # torch(torch, *inputs)
    torch: Callable[..., Any] | None = None
    # call(F, *inputs), where F.name(*inputs, **args) is not the way.
    call: Callable[..., Any] | None = None
    # Whether the derivative is measured too.
    backward: bool = True
    # Inputs that have a gradient; by default all that are not whole numbers.
    need_grad: Sequence[bool] | None = None


def uniform(low: float, high: float, *shape: int) -> Maker:
    return lambda rng: rng.uniform(low, high, shape)


def whole(high: int, *shape: int) -> Maker:
    return lambda rng: rng.integers(0, high, shape)


def bytes_below(high: int, *shape: int) -> Maker:
    return lambda rng: rng.integers(0, high, shape).astype(np.uint8)


def bits(*shape: int) -> Maker:
    """0 or 1, as floating-point numbers."""
    return lambda rng: rng.integers(0, 2, shape).astype(np.float32)


def values(v: Any) -> Maker:
    return lambda rng: np.asarray(v)


def definite(*shape: int) -> Maker:
    """Positive definite matrices."""

    def make(rng: np.random.Generator) -> np.ndarray:
        a = rng.normal(size=shape)
        return a @ a.swapaxes(-1, -2) + 4 * np.eye(shape[-1])

    return make


def one(name: str, **more: Any) -> Call:
    """A function of one array that torch has under this name."""
    return Call(torch=lambda torch, x: getattr(torch, name)(x), **more)


def nonlinear(name: str, **args: Any) -> Call:
    return Call(torch=lambda torch, x: getattr(torch.nn.functional, name)(x, **args))


def two(name: str, **more: Any) -> Call:
    return Call(inputs=(FLAT, FLAT), torch=lambda torch, a, b: getattr(torch, name)(a, b), **more)


def scalar(call: Callable[..., Any], **more: Any) -> Call:
    return Call(torch=lambda torch, x: call(torch, x), **more)


def compared(name: str) -> Call:
    return two(name, backward=False)


def compared_to_number(name: str) -> Call:
    return Call(args={"val": 0.5}, torch=lambda torch, x: getattr(torch, name)(x, 0.5), backward=False)


def loss(torch: Callable[..., Any] | None = None) -> Call:
    return Call(inputs=(FLAT, FLAT), torch=torch)


def pooled(torch: Callable[..., Any] | None) -> Call:
    return Call(inputs=(IMAGES,), args={"kernel": (2, 2)}, torch=torch)


def moved(torch: Callable[..., Any] | None = None, **args: Any) -> Call:
    return Call(inputs=(IMAGES,), args=args, torch=torch)


def channels(*more: Any) -> tuple[Any, ...]:
    return (IMAGES, *more)


PER_CHANNEL = (1, 32, 1, 1)
STATISTICS = (uniform(-1, 1, *PER_CHANNEL), uniform(0.5, 2, *PER_CHANNEL))

LAYERS = {
    "affine": Call(inputs=((256, 512), (512, 512), (512,)), torch=lambda torch, x, w, b: torch.addmm(b, x, w)),
    "rnn": Call(
        inputs=((32, 16, 128), (1, 1, 16, 128), (1, 128, 256), None, (1, 1, 128)),
        args={"training": True},
    ),
    "lstm": Call(
        inputs=((32, 16, 128), (1, 1, 16, 128), (1, 1, 16, 128), (1, 4, 128, 256), None, (1, 1, 4, 128)),
        args={"training": True},
    ),
    "gru": Call(
        inputs=((32, 16, 128), (1, 1, 16, 128), (1, 3, 128, 256), None, (1, 1, 4, 128)),
        args={"training": True},
    ),
    "convolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        torch=lambda torch, x, w, b: torch.nn.functional.conv2d(x, w, b, padding=1),
    ),
    "fused_convolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        torch=lambda torch, x, w, b: torch.relu(torch.nn.functional.conv2d(x, w, b, padding=1)),
    ),
    "depthwise_convolution": Call(
        inputs=(IMAGES, (32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        torch=lambda torch, x, w, b: torch.nn.functional.conv2d(x, w[:, None], b, padding=1, groups=32),
    ),
    "deconvolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        torch=lambda torch, x, w, b: torch.nn.functional.conv_transpose2d(x, w, b, padding=1),
    ),
    "depthwise_deconvolution": Call(
        inputs=(IMAGES, (32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        torch=lambda torch, x, w, b: torch.nn.functional.conv_transpose2d(x, w[:, None], b, padding=1, groups=32),
    ),
    "deformable_convolution": Call(
        inputs=((4, 16, 28, 28), (16, 16, 3, 3), (4, 18, 28, 28), uniform(0, 1, 4, 9, 28, 28), (16,)),
        args={"pad": (1, 1)},
    ),
    "adaptive_separable_convolution": Call(inputs=((2, 3, 68, 68), (2, 5, 64, 64), (2, 5, 64, 64))),
    "max_pooling": pooled(lambda torch, x: torch.nn.functional.max_pool2d(x, 2)),
    "average_pooling": pooled(lambda torch, x: torch.nn.functional.avg_pool2d(x, 2)),
    "sum_pooling": pooled(lambda torch, x: torch.nn.functional.avg_pool2d(x, 2, divisor_override=1)),
    "global_average_pooling": moved(lambda torch, x: torch.nn.functional.adaptive_avg_pool2d(x, 1)),
    "unpooling": Call(inputs=((16, 32, 28, 28),), args={"kernel": (2, 2)}),
    "embed": Call(
        inputs=(whole(10_000, 64, 64), (10_000, 256)),
        torch=lambda torch, x, w: torch.nn.functional.embedding(x.long(), w),
    ),
    "roi_align": Call(
        inputs=(
            (2, 32, 56, 56),
            lambda rng: np.concatenate(
                [rng.integers(0, 2, (64, 1)), rng.uniform(0, 20, (64, 2)), rng.uniform(25, 55, (64, 2))], 1
            ),
        ),
        args={"output_size": (7, 7), "spatial_scale": (1.0, 1.0), "sampling_ratio": 2},
        need_grad=(True, False),
    ),
    "max_pooling_backward": Call(inputs=((16, 32, 28, 28), IMAGES), args={"kernel": (2, 2)}, backward=False),
    "patch_correlation": Call(
        inputs=((2, 32, 32, 16), (2, 32, 32, 16)), args={"patch": (3, 3), "shift": (2, 2), "padding": (2, 2, 2, 2)}
    ),
    "batch_matmul": Call(inputs=((32, 128, 64), (32, 64, 128)), torch=lambda torch, a, b: torch.bmm(a, b)),
}

ACTIVATIONS = {
    "sigmoid": one("sigmoid"),
    "swish": nonlinear("silu"),
    "tanh": one("tanh"),
    "relu": one("relu"),
    "leaky_relu": nonlinear("leaky_relu", negative_slope=0.1),
    "softmax": Call(inputs=(ROWS,), args={"axis": 1}, torch=lambda torch, x: torch.softmax(x, 1)),
    "log_softmax": Call(inputs=(ROWS,), args={"axis": 1}, torch=lambda torch, x: torch.log_softmax(x, 1)),
    "elu": nonlinear("elu"),
    "selu": nonlinear("selu"),
    "crelu": Call(torch=lambda torch, x: torch.relu(torch.cat([x, -x], 1))),
    "celu": Call(torch=lambda torch, x: torch.nn.functional.elu(torch.cat([x, -x], 1))),
    "prelu": Call(inputs=(IMAGES, (32,)), torch=lambda torch, x, w: torch.nn.functional.prelu(x, w)),
    "gelu": nonlinear("gelu", approximate="tanh"),
    "mish": nonlinear("mish"),
    "relu6": nonlinear("relu6"),
    "hard_sigmoid": nonlinear("hardsigmoid"),
    "hard_tanh": nonlinear("hardtanh"),
    "log_sigmoid": nonlinear("logsigmoid"),
    "softplus": nonlinear("softplus"),
    "softsign": nonlinear("softsign"),
    "tanh_shrink": nonlinear("tanhshrink"),
    "sinc": one("sinc"),
    "dropout": Call(args={"p": 0.5}, torch=lambda torch, x: torch.nn.functional.dropout(x, 0.5, True)),
}

NORMALIZATIONS = {
    "batch_normalization": Call(
        inputs=channels(PER_CHANNEL, PER_CHANNEL, *STATISTICS),
        need_grad=(True, True, True, False, False),
        torch=lambda torch, x, b, g, m, v: torch.nn.functional.batch_norm(
            x, m.flatten(), v.flatten(), g.flatten(), b.flatten(), True, 0.1
        ),
    ),
    "fused_batch_normalization": Call(
        inputs=channels(PER_CHANNEL, PER_CHANNEL, *STATISTICS), need_grad=(True, True, True, False, False)
    ),
    "sync_batch_normalization": Call(
        inputs=channels(PER_CHANNEL, PER_CHANNEL, *STATISTICS),
        need_grad=(True, True, True, False, False),
        call=lambda F, *x: F.batch_normalization(*x),
    ),
    "group_normalization": Call(
        inputs=channels(PER_CHANNEL, PER_CHANNEL),
        args={"num_groups": 8},
        torch=lambda torch, x, b, g: torch.nn.functional.group_norm(x, 8, g.flatten(), b.flatten()),
    ),
    "instance_normalization": Call(
        inputs=channels(PER_CHANNEL, PER_CHANNEL),
        torch=lambda torch, x, b, g: torch.nn.functional.instance_norm(x, None, None, g.flatten(), b.flatten()),
    ),
    "layer_normalization": Call(
        inputs=(ROWS, (1, 256), (1, 256)),
        torch=lambda torch, x, b, g: torch.nn.functional.layer_norm(x, (256,), g[0], b[0]),
    ),
    "norm_normalization": Call(inputs=(ROWS,), args={"axes": (1,)}),
    "tensor_normalization": Call(
        inputs=(ROWS, (1, 256), (1, 256)), call=lambda F, x, b, g: F.tensor_normalization(x, 1, b, g)
    ),
    "weight_normalization": Call(inputs=((256, 128, 3, 3), (256,))),
    "weight_standardization": Call(inputs=((256, 128, 3, 3),)),
    "spectral_norm": Call(inputs=((256, 1152), (256,)), need_grad=(True, False)),
    "mean_subtraction": Call(
        inputs=((256, 4096), uniform(0, 0.1, 4096), values(np.zeros(()))), need_grad=(True, False, False)
    ),
    "clip_grad_by_value": Call(
        inputs=(FLAT, uniform(-2, -1, *FLAT), uniform(1, 2, *FLAT)), need_grad=(True, False, False)
    ),
    "clip_grad_by_norm": Call(args={"clip_norm": 1.0}),
}

REDUCTIONS = {
    "sum": Call(args={"axis": 1}, torch=lambda torch, x: torch.sum(x, 1)),
    "mean": Call(args={"axis": 1}, torch=lambda torch, x: torch.mean(x, 1)),
    "max": Call(args={"axis": 1}, torch=lambda torch, x: torch.max(x, 1)[0]),
    "min": Call(args={"axis": 1}, torch=lambda torch, x: torch.min(x, 1)[0]),
    "prod": Call(args={"axis": 1}, torch=lambda torch, x: torch.prod(x, 1)),
    "norm": Call(args={"axis": 1}, torch=lambda torch, x: torch.linalg.vector_norm(x, 2, 1)),
    "cumsum": Call(args={"axis": 1}, torch=lambda torch, x: torch.cumsum(x, 1)),
    "cumprod": Call(inputs=(uniform(0.9, 1.1, *FLAT),), args={"axis": 1}, torch=lambda torch, x: torch.cumprod(x, 1)),
    "reduce_sum": one("sum"),
    "reduce_mean": one("mean"),
}

ARITHMETIC = {
    "add2": two("add"),
    "bc_add2": Call(inputs=(FLAT, (1, 1000)), torch=lambda torch, a, b: a + b),
    "sub2": two("sub"),
    "mul2": two("mul"),
    "div2": two("div"),
    "pow2": Call(inputs=(uniform(0.5, 2, *FLAT), FLAT), torch=lambda torch, a, b: torch.pow(a, b)),
    "add_n": Call(inputs=(FLAT, FLAT, FLAT), torch=lambda torch, a, b, c: a + b + c),
    "mul_n": Call(inputs=(FLAT, FLAT, FLAT), torch=lambda torch, a, b, c: a * b * c),
    "add_scalar": scalar(lambda torch, x: x + 0.5, args={"val": 0.5}),
    "mul_scalar": scalar(lambda torch, x: x * 0.5, args={"val": 0.5}),
    "pow_scalar": Call(inputs=(uniform(0.5, 2, *FLAT),), args={"val": 1.5}, torch=lambda torch, x: torch.pow(x, 1.5)),
    "r_sub_scalar": scalar(lambda torch, x: 0.5 - x, args={"val": 0.5}),
    "r_div_scalar": scalar(lambda torch, x: 0.5 / x, args={"val": 0.5}),
    "r_pow_scalar": scalar(lambda torch, x: torch.pow(0.5, x), args={"val": 0.5}),
    "minimum2": two("minimum"),
    "maximum2": two("maximum"),
    "minimum_scalar": scalar(lambda torch, x: torch.clamp(x, max=0.5), args={"val": 0.5}),
    "maximum_scalar": scalar(lambda torch, x: torch.clamp(x, min=0.5), args={"val": 0.5}),
    "mod2": Call(inputs=(FLAT, uniform(0.5, 2, *FLAT)), torch=lambda torch, a, b: torch.remainder(a, b)),
    "bit_shift": Call(
        inputs=(bytes_below(100, *FLAT), bytes_below(4, *FLAT)), backward=False, torch=lambda torch, a, b: a << b
    ),
}

LOGIC = {
    **{n: two(n, backward=False) for n in ("logical_and", "logical_or", "logical_xor")},
    "equal": compared("eq"),
    "not_equal": compared("ne"),
    "greater_equal": compared("ge"),
    "greater": compared("gt"),
    "less_equal": compared("le"),
    "less": compared("lt"),
    **{f"logical_{n}_scalar": Call(args={"val": True}, backward=False) for n in ("and", "or", "xor")},
    "equal_scalar": compared_to_number("eq"),
    "not_equal_scalar": compared_to_number("ne"),
    "greater_equal_scalar": compared_to_number("ge"),
    "greater_scalar": compared_to_number("gt"),
    "less_equal_scalar": compared_to_number("le"),
    "less_scalar": compared_to_number("lt"),
    "logical_not": one("logical_not", backward=False),
    "isnan": one("isnan", backward=False),
    "isinf": one("isinf", backward=False),
    "reset_nan": scalar(lambda torch, x: torch.nan_to_num(x, 0.0, None, None)),
    "reset_inf": Call(),
    "where": Call(
        inputs=(bits(*FLAT), FLAT, FLAT),
        need_grad=(False, True, True),
        torch=lambda torch, c, a, b: torch.where(c > 0, a, b),
    ),
    "searchsorted": Call(
        inputs=(lambda rng: np.sort(rng.normal(size=(64, 1000)), -1), (64, 1000)),
        backward=False,
        torch=lambda torch, a, b: torch.searchsorted(a, b),
    ),
}

MATH = {
    **{n: one(n) for n in ("abs", "exp", "sin", "cos", "tan", "sinh", "cosh", "atan", "asinh", "erf")},
    **{n: one(n) for n in ("round", "ceil", "floor", "sign")},
    "log": Call(inputs=(uniform(0.1, 3, *FLAT),), torch=lambda torch, x: torch.log(x)),
    "asin": Call(inputs=(uniform(-0.9, 0.9, *FLAT),), torch=lambda torch, x: torch.asin(x)),
    "acos": Call(inputs=(uniform(-0.9, 0.9, *FLAT),), torch=lambda torch, x: torch.acos(x)),
    "acosh": Call(inputs=(uniform(1.1, 3, *FLAT),), torch=lambda torch, x: torch.acosh(x)),
    "atanh": Call(inputs=(uniform(-0.9, 0.9, *FLAT),), torch=lambda torch, x: torch.atanh(x)),
    "atan2": two("atan2"),
    "batch_det": Call(inputs=(definite(64, 32, 32),), torch=lambda torch, x: torch.linalg.det(x)),
    "batch_logdet": Call(inputs=(definite(64, 32, 32),), torch=lambda torch, x: torch.logdet(x)),
    "batch_inv": Call(inputs=(definite(64, 32, 32),), torch=lambda torch, x: torch.linalg.inv(x)),
    "batch_cholesky": Call(inputs=(definite(64, 32, 32),), torch=lambda torch, x: torch.linalg.cholesky(x)),
    "einsum": Call(
        inputs=((32, 64, 128), (32, 128, 64)),
        call=lambda F, a, b: F.einsum(a, b, equation="bij,bjk->bik"),
        torch=lambda torch, a, b: torch.einsum("bij,bjk->bik", a, b),
    ),
}

ARRAYS = {
    "constant": Call(
        inputs=(), backward=False, args={"val": 1.5, "shape": FLAT}, torch=lambda torch: torch.full(FLAT, 1.5)
    ),
    "arange": Call(
        inputs=(), backward=False, args={"start": 0, "stop": 1_000_000}, torch=lambda torch: torch.arange(1e6)
    ),
    "linspace": Call(
        inputs=(),
        backward=False,
        args={"start": 0, "stop": 1, "num": 1_000_000},
        torch=lambda torch: torch.linspace(0, 1, 1_000_000),
    ),
    "identity": scalar(lambda torch, x: x.clone()),
    "unlink": Call(backward=False),
    "sink": Call(inputs=(FLAT, FLAT), backward=False),
    "assign": Call(inputs=(FLAT, FLAT), backward=False, torch=lambda torch, a, b: a.copy_(b)),
    "concatenate": Call(inputs=(FLAT, FLAT), args={"axis": 1}, torch=lambda torch, a, b: torch.cat([a, b], 1)),
    "split": Call(inputs=((8, 125_000),), args={"axis": 0}, torch=lambda torch, x: [v.clone() for v in x.unbind(0)]),
    "stack": Call(inputs=(FLAT, FLAT), args={"axis": 1}, torch=lambda torch, a, b: torch.stack([a, b], 1)),
    "slice": moved(
        lambda torch, x: x[:, :, 1:55, 2:54].contiguous(), start=(0, 0, 1, 2), stop=(16, 32, 55, 54), step=(1, 1, 1, 1)
    ),
    "pad": moved(lambda torch, x: torch.nn.functional.pad(x, (1, 1, 1, 1)), pad_width=(1, 1, 1, 1)),
    "transpose": moved(lambda torch, x: x.permute(0, 2, 3, 1).contiguous(), axes=(0, 2, 3, 1)),
    "broadcast": Call(
        inputs=((1, 1000),), args={"shape": FLAT}, torch=lambda torch, x: x.expand(1000, 1000).contiguous()
    ),
    "broadcast_to": Call(inputs=(IMAGES, (32, 56)), args={"axis": 1}, need_grad=(False, True)),
    "tile": Call(inputs=((100, 1000),), args={"reps": (10, 1)}, torch=lambda torch, x: x.tile(10, 1)),
    "one_hot": Call(
        inputs=(whole(1000, 1000, 1),),
        args={"shape": (1000,)},
        backward=False,
        torch=lambda torch, x: torch.nn.functional.one_hot(x[:, 0].long(), 1000).float(),
    ),
    "flip": moved(lambda torch, x: x.flip(3), axes=(3,)),
    "shift": moved(None, shifts=(2, 3), border_mode="nearest"),
    "sort": Call(args={"axis": 1}, torch=lambda torch, x: torch.sort(x, 1)[0]),
    "reshape": scalar(lambda torch, x: x.reshape(1_000_000), args={"shape": (1_000_000,)}),
    "shape": Call(backward=False),
    "matrix_diag": Call(inputs=((100, 100),), torch=lambda torch, x: torch.diag_embed(x)),
    "matrix_diag_part": Call(
        inputs=((100, 100, 100),), torch=lambda torch, x: torch.diagonal(x, dim1=1, dim2=2).contiguous()
    ),
    "trilu": Call(torch=lambda torch, x: torch.triu(x)),
    "meshgrid": Call(
        inputs=((1000,), (1000,)),
        torch=lambda torch, a, b: [v.contiguous() for v in torch.meshgrid(a, b, indexing="xy")],
    ),
    "eye_like": Call(backward=False),
    "gather": Call(
        inputs=((10_000, 256), whole(10_000, 4096)),
        args={"axis": 0},
        torch=lambda torch, x, i: x.index_select(0, i),
    ),
    "gather_nd": Call(inputs=((100, 100, 256), whole(100, 2, 4096)), torch=lambda torch, x, i: x[i[0], i[1]]),
    "scatter_nd": Call(inputs=((4096, 256), whole(100, 2, 4096)), args={"shape": (100, 100, 256), "add": True}),
    "scatter_add": Call(
        inputs=(FLAT, whole(1000, *FLAT), FLAT),
        args={"axis": 0},
        torch=lambda torch, x, i, v: x.scatter_add(0, i, v),
    ),
    "bool_gather": Call(inputs=(FLAT, bits(*FLAT)), need_grad=(True, False), torch=lambda torch, x, m: x[m > 0]),
    "bool_scatter": Call(inputs=((500_000,), values(np.arange(1_000_000) % 2 * 1.0)), need_grad=(True, False)),
    "bool_fill": Call(
        inputs=(FLAT, bits(*FLAT)),
        args={"value": 0.5},
        need_grad=(True, False),
        torch=lambda torch, x, m: x.masked_fill(m > 0, 0.5),
    ),
    "pack_padded_sequence": Call(inputs=((64, 32, 256), values(np.arange(64, 32, -1))), need_grad=(True, False)),
    "pad_packed_sequence": Call(inputs=((1024, 256), values(np.full(32, 32))), need_grad=(True, False)),
    "nonzero": Call(inputs=(bits(*FLAT),), backward=False, torch=lambda torch, x: torch.nonzero(x)),
    "unique": Call(
        inputs=(lambda rng: rng.integers(0, 1000, FLAT).astype(np.float32),),
        backward=False,
        torch=lambda torch, x: torch.unique(x),
    ),
    "top_k_data": Call(args={"k": 10}),
    "top_k_grad": Call(args={"k": 10}),
}

SIGNALS = {
    "interpolate": Call(
        inputs=((16, 32, 28, 28),),
        args={"output_size": (56, 56), "mode": "linear"},
        torch=lambda torch, x: torch.nn.functional.interpolate(x, size=(56, 56), mode="bilinear", align_corners=False),
    ),
    "onnx_resize": Call(inputs=((4, 16, 28, 28),), args={"sizes": (4, 16, 56, 56), "mode": "linear"}),
    "fft": Call(
        inputs=((64, 64, 128, 2),),
        args={"signal_ndim": 2},
        call=lambda F, x: F.fft(x, 2),
        torch=lambda torch, x: torch.view_as_real(torch.fft.fftn(torch.view_as_complex(x), dim=(1, 2))),
    ),
    "ifft": Call(
        inputs=((64, 64, 128, 2),),
        call=lambda F, x: F.ifft(x, 2),
        torch=lambda torch, x: torch.view_as_real(torch.fft.ifftn(torch.view_as_complex(x), dim=(1, 2))),
    ),
    "stft": Call(
        inputs=((16, 16_000),),
        args={"window_size": 512, "stride": 128, "fft_size": 512},
        torch=lambda torch, x: torch.view_as_real(
            torch.stft(x, 512, 128, window=torch.hann_window(512), pad_mode="reflect", return_complex=True)
        ),
    ),
    "istft": Call(
        inputs=((16, 257, 126), (16, 257, 126)),
        args={"window_size": 512, "stride": 128, "fft_size": 512, "pad_mode": "constant"},
    ),
    "affine_grid": Call(
        inputs=((16, 2, 3),),
        args={"size": (128, 128)},
        torch=lambda torch, t: torch.nn.functional.affine_grid(t, (16, 1, 128, 128), align_corners=False),
    ),
    "warp_by_grid": Call(
        inputs=((8, 16, 64, 64), uniform(-1, 1, 8, 64, 64, 2)),
        torch=lambda torch, x, g: torch.nn.functional.grid_sample(x, g, align_corners=False),
    ),
    "warp_by_flow": Call(inputs=((8, 16, 64, 64), (8, 2, 64, 64))),
}

RANDOM = {
    "rand": Call(inputs=(), args={"shape": FLAT}, torch=lambda torch: torch.rand(FLAT), backward=False),
    "randint": Call(
        inputs=(), args={"high": 10, "shape": FLAT}, torch=lambda torch: torch.randint(0, 10, FLAT), backward=False
    ),
    "randn": Call(inputs=(), args={"shape": FLAT}, torch=lambda torch: torch.randn(FLAT), backward=False),
    "rand_binomial": Call(inputs=(), args={"n": 10, "p": 0.3, "shape": FLAT}, backward=False),
    "rand_beta": Call(inputs=(), args={"alpha": 0.5, "beta": 2.0, "shape": FLAT}, backward=False),
    "rand_gamma": Call(inputs=(), args={"k": 2.0, "theta": 1.5, "shape": FLAT}, backward=False),
    "random_choice": Call(inputs=((64, 1000), uniform(0.1, 1, 64, 1000)), args={"shape": (1000,)}),
    "random_crop": moved(None, shape=(48, 48), base_axis=2),
    "random_flip": moved(None, axes=(3,), base_axis=1),
    "random_shift": moved(None, shifts=(4, 4), base_axis=2),
    "random_erase": Call(inputs=((64, 3, 64, 64),)),
    "image_augmentation": Call(
        inputs=((64, 3, 32, 32),),
        args={"shape": (3, 32, 32), "angle": 0.2, "min_scale": 0.8, "max_scale": 1.2, "flip_lr": True},
        backward=False,
    ),
    "vat_noise": Call(inputs=((256, 4096), (256, 4096)), args={"eps": 0.5}, backward=False),
}

LOSSES = {
    "sigmoid_cross_entropy": Call(
        inputs=(FLAT, bits(*FLAT)),
        need_grad=(True, False),
        torch=lambda torch, x, t: torch.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none"),
    ),
    "binary_cross_entropy": Call(
        inputs=(uniform(0.05, 0.95, *FLAT), bits(*FLAT)),
        need_grad=(True, False),
        torch=lambda torch, x, t: torch.nn.functional.binary_cross_entropy(x, t, reduction="none"),
    ),
    "softmax_cross_entropy": Call(
        inputs=(ROWS, whole(256, 4096, 1)),
        torch=lambda torch, x, t: torch.nn.functional.cross_entropy(x, t[:, 0].long(), reduction="none"),
    ),
    "categorical_cross_entropy": Call(
        inputs=(uniform(0.05, 0.95, *ROWS), whole(256, 4096, 1)),
    ),
    "squared_error": loss(lambda torch, a, b: torch.nn.functional.mse_loss(a, b, reduction="none")),
    "absolute_error": loss(lambda torch, a, b: torch.nn.functional.l1_loss(a, b, reduction="none")),
    "huber_loss": Call(
        inputs=(FLAT, FLAT),
        args={"delta": 1.0},
        torch=lambda torch, a, b: torch.nn.functional.huber_loss(a, b, reduction="none"),
    ),
    "epsilon_insensitive_loss": Call(inputs=(FLAT, FLAT), args={"epsilon": 0.5}),
    "kl_multinomial": Call(inputs=(uniform(0.1, 1, *ROWS), uniform(0.1, 1, *ROWS))),
    "top_n_error": Call(inputs=(ROWS, whole(256, 4096, 1)), args={"n": 5}, backward=False),
    "binary_error": Call(inputs=(uniform(0, 1, *FLAT), bits(*FLAT)), backward=False),
    "confusion_matrix": Call(inputs=(uniform(0, 1, *ROWS), whole(256, 4096, 1)), backward=False),
    "nms_detection2d": Call(inputs=(uniform(0, 1, 4, 200, 15),), args={"thresh": 0.5, "nms": 0.45}, backward=False),
    "onnx_non_max_suppression": Call(
        inputs=(
            lambda rng: np.sort(rng.uniform(0, 1, (2, 200, 2, 2)), 2).reshape(2, 200, 4),
            uniform(0, 1, 2, 10, 200),
        ),
        args={"max_output_boxes_per_class": 20, "iou_threshold": 0.5},
        backward=False,
    ),
}

QUANTIZED = {
    "binary_sigmoid": Call(),
    "binary_tanh": Call(),
    "binary_connect_affine": Call(
        inputs=((256, 512), (512, 512), (512, 512), (512,)), need_grad=(True, True, False, True)
    ),
    "binary_connect_convolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), (32, 32, 3, 3), (32,)),
        args={"pad": (1, 1)},
        need_grad=(True, True, False, True),
    ),
    "binary_weight_affine": Call(
        inputs=((256, 512), (512, 512), (512, 512), (512,), (512,)), need_grad=(True, True, False, False, True)
    ),
    "binary_weight_convolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), (32, 32, 3, 3), (32,), (32,)),
        args={"pad": (1, 1)},
        need_grad=(True, True, False, False, True),
    ),
    "inq_affine": Call(
        inputs=((256, 512), (512, 512), values(np.zeros((512, 512), np.int32)), (512,)),
        args={"num_bits": 4, "inq_iterations": (10_000_000,)},
    ),
    "inq_convolution": Call(
        inputs=((16, 32, 28, 28), (32, 32, 3, 3), values(np.zeros((32, 32, 3, 3), np.int32)), (32,)),
        args={"pad": (1, 1), "num_bits": 4, "inq_iterations": (10_000_000,)},
    ),
    "fixed_point_quantize": Call(),
    "min_max_quantize": Call(
        inputs=(FLAT, (1, 1), (1, 1), values([[0.0]]), values([[255.0]])), need_grad=(True, False, False, False, False)
    ),
    "pow2_quantize": Call(),
    "prune": Call(),
    "quantize_linear": Call(inputs=(FLAT, values([[0.1]]), values([[0.0]])), need_grad=(True, False, False)),
    "dequantize_linear": Call(inputs=(FLAT, values([[0.1]]), values([[0.0]])), need_grad=(True, False, False)),
}

CALLS: dict[str, Call] = {
    **LAYERS,
    **ACTIVATIONS,
    **NORMALIZATIONS,
    **REDUCTIONS,
    **ARITHMETIC,
    **LOGIC,
    **MATH,
    **ARRAYS,
    **SIGNALS,
    **RANDOM,
    **LOSSES,
    **QUANTIZED,
}
