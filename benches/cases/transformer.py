"""A transformer encoder (training step, inference), and attention beside torch's `scaled_dot_product_attention`."""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step
from .steps import nabla_gradients, nabla_training, torch_training

BATCH, LENGTH, WIDTH, HEADS, INNER, LAYERS, WORDS = 8, 128, 256, 4, 1024, 4, 1000
SIZE = 64  # of a head


def tokens() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, t = rng.integers(0, WORDS, (2, BATCH, LENGTH))
    return x, t[..., None]


def nabla_scores(kit: Kit, x):
    F, PF, nn = kit.F, kit.PF, kit.nn

    def heads(h):
        return F.transpose(F.reshape(h, (BATCH, LENGTH, HEADS, SIZE)), (0, 2, 1, 3))

    def attention(h):
        q, k, v = (heads(PF.affine(h, WIDTH, base_axis=2, name=n)) for n in "qkv")
        weights = F.softmax(F.mul_scalar(F.batch_matmul(q, k, transpose_b=True), SIZE**-0.5))
        h = F.reshape(F.transpose(F.batch_matmul(weights, v), (0, 2, 1, 3)), (BATCH, LENGTH, WIDTH))
        return PF.affine(h, WIDTH, base_axis=2, name="out")

    h = PF.embed(x, WORDS, WIDTH, name="words")
    for i in range(LAYERS):
        with nn.parameter_scope(f"layer{i}"):
            h = F.add2(h, attention(PF.layer_normalization(h, batch_axis=(0, 1), name="norm0")))
            inside = PF.layer_normalization(h, batch_axis=(0, 1), name="norm1")
            inside = F.gelu(PF.affine(inside, INNER, base_axis=2, name="inner"))
            h = F.add2(h, PF.affine(inside, WIDTH, base_axis=2, name="outer"))
    return PF.affine(PF.layer_normalization(h, batch_axis=(0, 1), name="norm"), WORDS, base_axis=2, name="scores")


def nabla(is_step: bool, kit: Kit) -> Step:
    words, labels = tokens()
    kit.nn.clear_parameters()
    x, t = kit.nn.Variable(words.shape), kit.nn.Variable(labels.shape)
    x.d, t.d = words, labels
    scores = nabla_scores(kit, x)
    if not is_step:
        return lambda: scores.forward(clear_buffer=True)
    loss = kit.F.mean(kit.F.softmax_cross_entropy(scores, t, axis=2))
    return nabla_training(kit, loss, kit.S.Adam(1e-4))


def torch_network():
    from torch import nn

    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, **options)
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), encoder, nn.Linear(WIDTH, WORDS))


def torch(is_step: bool) -> Step:
    import torch

    words, labels = tokens()
    x, t, network = torch.from_numpy(words), torch.from_numpy(labels.reshape(-1)), torch_network()
    if not is_step:
        network.eval()

        def infer():
            with torch.inference_mode():
                network(x)

        return infer
    solver = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)

    return torch_training(lambda: torch.nn.functional.cross_entropy(network(x).flatten(0, 1), t), solver)


def qkv(length: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((3, 2, HEADS, length, SIZE), dtype=np.float32)


def nabla_attention(length: int, causal: bool, kit: Kit) -> Step:
    F, values = kit.F, qkv(length)
    leaves = [kit.nn.Variable(v.shape, need_grad=True) for v in values]
    for x, v in zip(leaves, values, strict=True):
        x.d = v
    q, k, v = leaves
    if hasattr(F, "scaled_dot_product_attention"):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    else:
        scores = F.mul_scalar(F.batch_matmul(q, k, transpose_b=True), SIZE**-0.5)
        if causal:
            mask = kit.nn.Variable.from_numpy_array(np.triu(np.full((1, 1, length, length), -1e9, np.float32), 1))
            scores = F.add2(scores, mask)
        y = F.batch_matmul(F.softmax(scores), v)
    seed = kit.nn.NdArray.from_numpy_array(values[0])
    return nabla_gradients(y, leaves, seed)


def torch_attention(length: int, causal: bool) -> Step:
    import torch

    values = qkv(length)
    leaves = [torch.from_numpy(v).requires_grad_() for v in values]
    seed = torch.from_numpy(values[0])

    def step():
        for x in leaves:
            x.grad = None
        torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal).backward(seed)

    return step


def attention(length: int, causal: bool, limit: float) -> Case:
    title = f"attention, length {length}{', causal' if causal else ''}, forward and backward"
    name = f"sdpa_{length}{'_causal' if causal else ''}"
    steps = partial(nabla_attention, length, causal), partial(torch_attention, length, causal)
    return Case(name, title, *steps, {"torch": limit})


TITLE = f"transformer encoder, {LAYERS} layers of {WIDTH}, batch {BATCH}, {LENGTH} words"
CASES = [
    Case(
        "transformer_step", f"{TITLE}, Adam step", partial(nabla, True), partial(torch, True), {"torch": (0.48, 0.82)}
    ),
    Case(
        "transformer_infer",
        f"{TITLE}, inference",
        partial(nabla, False),
        partial(torch, False),
        {"torch": (0.45, 0.68)},
    ),
    *(attention(n, causal, limit) for n, limit in ((128, 0.8), (512, 0.6), (2048, 0.5)) for causal in (False, True)),
]
