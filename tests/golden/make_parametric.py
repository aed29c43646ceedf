"""Asks NNabla 1.39 what its parametric functions and initializers make, and writes parametric.json and nnabla.h5 here.

Run it with a Python that has NNabla: `python tests/golden/make_parametric.py`. The tests only read what it wrote.
"""

import json
import pathlib

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I
import nnabla.parametric_functions as PF
import numpy as np

HERE = pathlib.Path(__file__).parent
NAMES = {"nn": nn, "F": F, "PF": PF, "I": I, "np": np}

X3, X4 = "nn.Variable((2, 3, 4))", "nn.Variable((2, 3, 8, 8))"
W = "np.random.RandomState(5).randn(5, 3, 3, 3)"
OFFSET = "nn.Variable((2, 18, 8, 8))"
# Layers, directions, and other arguments.
RECURRENT = [
    (1, 1, ""),
    (3, 2, ", bidirectional=True, name='r'"),
    (2, 1, ", num_layers=2, with_bias=False, rng=np.random.RandomState(3)"),
    (2, 1, ", num_layers=1, fix_parameters=True, training=False"),
    (2, 1, ", w0_init=I.ConstantInitializer(2), w_init=I.NormalInitializer(0.1), b_init=I.ConstantInitializer(1)"),
]


def states(layers: int, directions: int, cell: str) -> str:
    return ", ".join([f"nn.Variable(({layers}, {directions}, 2, 4))"] * (1 + (cell == "lstm")))


OWN_INITS = "w_init=I.NormalInitializer(0.1), b_init=I.ConstantInitializer(1)"
AFFINE = [
    "",
    ", name='q'",
    ", with_bias=False, rng=np.random.RandomState(3)",
    f", fix_parameters=True, {OWN_INITS}",
    ", b_init=I.NormalInitializer(0.2), base_axis=2",
]
CONVOLUTION = [
    "",
    ", pad=(1, 1), stride=(2, 2), dilation=(1, 2), name='q'",
    ", with_bias=False, rng=np.random.RandomState(3)",
    f", fix_parameters=True, {OWN_INITS}",
]
# By the start of the name: arguments of its own.
LAYERS = {
    "binary_connect": ", quantize_zero_to=-1.0, wb_init=I.ConstantInitializer(2)",
    "binary_weight": ", quantize_zero_to=-1.0, wb_init=I.ConstantInitializer(2)",
    "inq": ", num_bits=3, inq_iterations=(1, 2), selection_algorithm='largest_abs', i_init=I.ConstantInitializer(1)",
    "fixed_point_quantized": ", quantize_w=False, n_b=4, delta_b=0.5",
    "pow2_quantized": ", quantize_b=False, n_w=4, m_w=0, with_zero_w=True, sign_w=False",
    "pruned": ", prune_w=False, rate_b=0.5",
    "min_max_quantized": ", ql_min_w=1, ql_max_b=15.5, w_min_max=True, qr_min_b_init=I.ConstantInitializer(-3)",
}
LEVELS = "nn.Variable.from_numpy_array(np.zeros((1, 3, 1))), nn.Variable.from_numpy_array(np.full((1, 3, 1), 7))"
QUANTIZED = [
    *(f"PF.{name}_affine({X3}, 5{more})" for name, own in LAYERS.items() for more in [*AFFINE, own]),
    *(f"PF.{name}_affine({X3}, (5, 2))" for name in LAYERS),
    *(f"PF.{name}_convolution({X4}, 5, (3, 3){more})" for name, own in LAYERS.items() for more in [*CONVOLUTION, own]),
    *(f"PF.{name}_convolution({X4}, 6, (3, 3), group=3)" for name in [*LAYERS][3:]),
    f"PF.min_max_quantized_affine({X3}, 5, quantize_w=False, quantize_b=False)",
    f"PF.min_max_quantize({X3})",
    f"PF.min_max_quantize({X3}, ql_min=-8, ql_max=7.5, name='m')",
    f"PF.min_max_quantize({X3}, {LEVELS})",
    f"PF.min_max_quantize({X3}, fix_parameters=True, qr_min_init=I.ConstantInitializer(-2))",
    f"PF.min_max_quantize({X3}, x_min_max=True, ema=True, decay=0.9)",
    f"PF.min_max_quantize({X3}, x_min_max=True)",
]


PARAMETRIC = [
    f"PF.affine({X3}, 5)",
    f"PF.affine({X3}, 5, name='nm')",
    f"PF.affine({X3}, 5, name='a/b')",
    f"PF.affine({X3}, (5, 2))",
    f"PF.affine({X3}, [5, 2], base_axis=2)",
    f"PF.affine({X3}, 5, base_axis=-1)",
    f"PF.affine({X3}, 5, with_bias=False)",
    f"PF.affine({X3}, 5, fix_parameters=True)",
    f"PF.affine({X3}, 5, w_init=I.ConstantInitializer(2), b_init=np.ones(5))",
    f"PF.affine({X3}, 5, rng=np.random.RandomState(3))",
    f"PF.affine({X3}, 5, apply_w=lambda w: w * 2, apply_b=lambda b: b + 1)",
    f"PF.affine({X3}, 0)",
    f"PF.convolution({X4}, 5, (3, 3))",
    f"PF.convolution({X4}, 6, (3, 2), pad=(1, 1), stride=(2, 2), dilation=(1, 1), group=3)",
    f"PF.convolution({X4}, 5, (3, 3), channel_last=True)",
    "PF.convolution(nn.Variable((2, 8, 8, 3)), 5, [3, 3], channel_last=True)",
    f"PF.convolution({X4}, 5, (3,), base_axis=2)",
    f"PF.convolution({X4}, 5, (3, 3), with_bias=False, name='c')",
    f"PF.convolution({X4}, 5, (3, 3), fix_parameters=True)",
    f"PF.convolution({X4}, 5, (3, 3), w_init=I.NormalInitializer(0.1), b_init=I.ConstantInitializer(1))",
    f"PF.convolution({X4}, 5, (3, 3), apply_w=lambda w: w * 2, apply_b=lambda b: b)",
    f"PF.batch_normalization({X4})",
    f"PF.batch_normalization({X4}, fix_parameters=True)",
    f"PF.batch_normalization({X4}, no_scale=True)",
    f"PF.batch_normalization({X4}, no_bias=True)",
    f"PF.batch_normalization({X4}, no_scale=True, no_bias=True)",
    f"PF.batch_normalization({X4}, axes=[0, 1], batch_stat=False)",
    f"PF.batch_normalization({X4}, axes=[1], output_stat=True)",
    f"PF.batch_normalization({X4}, axes=[-1])",
    f"PF.batch_normalization({X4}, param_init={{'beta': I.ConstantInitializer(1), 'var': I.ConstantInitializer(4)}})",
    f"PF.batch_normalization({X4}, param_init={{'gamma': np.ones((1, 3, 1, 1)) * 2, 'mean': np.ones((1, 3, 1, 1))}})",
    f"PF.layer_normalization({X4})",
    f"PF.layer_normalization({X4}, batch_axis=[0, 2])",
    f"PF.layer_normalization({X4}, batch_axis=-1)",
    f"PF.layer_normalization({X4}, fix_parameters=True, output_stat=True)",
    f"PF.layer_normalization({X4}, no_scale=True)",
    f"PF.layer_normalization({X4}, no_bias=True)",
    f"PF.layer_normalization({X4}, no_scale=True, no_bias=True)",
    f"PF.layer_normalization({X4}, param_init={{'gamma': I.ConstantInitializer(2)}})",
    f"PF.deconvolution({X4}, 5, (3, 3))",
    f"PF.deconvolution({X4}, 6, (3, 2), pad=(1, 1), stride=(2, 2), group=3, output_padding=(1, 0), name='d')",
    "PF.deconvolution(nn.Variable((2, 8, 8, 3)), 5, [3, 3], channel_last=True)",
    f"PF.deconvolution({X4}, 5, (3,), base_axis=2, with_bias=False)",
    f"PF.deconvolution({X4}, 5, (3, 3), w_init=I.NormalInitializer(0.1), fix_parameters=True)",
    f"PF.deconvolution({X4}, 5, (3, 3), apply_w=lambda w: w * 2, apply_b=lambda b: b + 1)",
    "PF.group_normalization(nn.Variable((2, 6, 4)), 3)",
    "PF.group_normalization(nn.Variable((2, 6, 4)), 2, channel_axis=2, batch_axis=[0], output_stat=True)",
    "PF.group_normalization(nn.Variable((2, 6, 4)), 2, no_scale=True, fix_parameters=True, name='g')",
    "PF.group_normalization(nn.Variable((2, 6, 4)), 2, no_bias=True, param_init={'gamma': I.ConstantInitializer(2)})",
    f"PF.instance_normalization({X4})",
    f"PF.instance_normalization({X4}, channel_axis=3, output_stat=True)",
    f"PF.instance_normalization({X4}, no_scale=True, no_bias=True)",
    f"PF.fused_batch_normalization({X4})",
    f"PF.fused_batch_normalization({X4}, {X4}, output_stat=True, param_init={{'var': I.ConstantInitializer(4)}})",
    f"PF.fused_batch_normalization({X4}, fix_parameters=True, no_scale=True, name='f')",
    f"PF.spectral_norm({X4})",
    f"PF.spectral_norm({X4}, dim=1, itr=2, test=True, u_init=I.ConstantInitializer(1), name='s')",
    f"PF.weight_normalization({X4})",
    f"PF.weight_normalization({X4}, dim=1, fix_parameters=True, g_init=I.NormalInitializer(0.5), name='w')",
    f"PF.depthwise_convolution({X4}, (3, 3))",
    f"PF.depthwise_convolution({X4}, (3, 2), pad=(1, 1), stride=(2, 2), dilation=(1, 2), multiplier=2, name='d')",
    f"PF.depthwise_convolution({X4}, (3,), base_axis=2, with_bias=False, rng=np.random.RandomState(3))",
    f"PF.depthwise_convolution({X4}, (3, 3), w_init=I.NormalInitializer(0.1), b_init=np.ones(3), fix_parameters=True)",
    f"PF.depthwise_deconvolution({X4}, (3, 3))",
    f"PF.depthwise_deconvolution({X4}, (3, 2), pad=(1, 1), stride=(2, 2), divisor=3, name='d')",
    f"PF.depthwise_deconvolution({X4}, (3,), base_axis=2, with_bias=False, rng=np.random.RandomState(3))",
    f"PF.depthwise_deconvolution({X4}, (3, 3), w_init=I.NormalInitializer(0.1), fix_parameters=True)",
    f"PF.deformable_convolution({X4}, 5, (3, 3), {OFFSET})",
    f"PF.deformable_convolution({X4}, 6, (3, 3), nn.Variable((2, 54, 8, 8)), nn.Variable((2, 27, 8, 8)), (1, 1), "
    "group=3, deformable_group=3, name='d')",
    f"PF.deformable_convolution({X4}, 5, (3, 3), {OFFSET}, with_bias=False, fix_parameters=True)",
    f"PF.deformable_convolution({X4}, 5, (3, 3), {OFFSET}, apply_w=lambda w: w * 2, b_init=np.ones(5))",
    f"PF.svd_affine({X3}, 5, 3)",
    f"PF.svd_affine({X3}, (5, 2), 2, name='s', rng=np.random.RandomState(3))",
    f"PF.svd_affine({X3}, [5, 2], 2, base_axis=2, with_bias=False, fix_parameters=True)",
    f"PF.svd_affine({X3}, 5, 3, uv_init=np.random.RandomState(5).randn(12, 5), b_init=I.ConstantInitializer(1))",
    f"PF.svd_convolution({X4}, 5, (3, 3), 2)",
    f"PF.svd_convolution({X4}, 5, (3, 2), 3, pad=(1, 1), stride=(2, 2), dilation=(1, 2), name='s', with_bias=False)",
    f"PF.svd_convolution({X4}, 5, (3, 3), 2, uv_init={W}, fix_parameters=True)",
    f"PF.svd_convolution({X4}, 5, (3,), 2, base_axis=2, uv_init=I.NormalInitializer(0.1))",
    f"PF.cpd3_convolution({X4}, 5, (3, 3), 2)",
    f"PF.cpd3_convolution({X4}, 5, (3, 3), 3, pad=(1, 1), stride=(2, 2), name='c', rng=np.random.RandomState(3))",
    f"PF.cpd3_convolution({X4}, 5, (3, 3), 2, oik_init={W}, fix_parameters=True)",
    f"PF.cpd3_convolution({X4}, 5, (3,), 2, base_axis=2, with_bias=False, lambda_reg=0.1, max_iter=20)",
    f"PF.cpd3_convolution({X4}, 5, (3, 3), 2, stopping_criterion=-1, max_iter=10)",
    f"PF.mean_subtraction({X3})",
    f"PF.mean_subtraction({X3}, 2, update_running_mean=False, fix_parameters=True, name='m')",
    f"PF.mean_subtraction({X3}, base_axis=-1)",
    f"PF.prelu({X3})",
    f"PF.prelu({X3}, shared=False)",
    f"PF.prelu({X3}, base_axis=-1, shared=False, name='p')",
    f"PF.prelu({X3}, fix_parameters=True)",
    f"PF.prelu({X3}, 2, False, slope_init=I.NormalInitializer(0.5))",
    f"PF.prelu({X3}, slope_init=np.array(0.5))",
    "PF.embed(nn.Variable((2, 3)), 10, 4)",
    "PF.embed(nn.Variable((2, 3)), 10, 4, name='e')",
    "PF.embed(nn.Variable((2, 3)), 10, 4, fix_parameters=True)",
    "PF.embed(nn.Variable((2, 3)), 10, 4, initializer=I.ConstantInitializer(2))",
    "PF.embed(nn.Variable((2, 3)), 10, 4, apply_w=lambda w: w * 3)",
    *(
        f"PF.{cell}(nn.Variable((3, 2, 5)), {states(layers, directions, cell)}{more})"
        for cell in ("rnn", "lstm", "gru")
        for layers, directions, more in RECURRENT
    ),
    "PF.rnn(nn.Variable((3, 2, 5)), nn.Variable((1, 1, 2, 4)), nonlinearity='relu')",
    "PF.lstm_cell(nn.Variable((2, 5)), nn.Variable((2, 4)), nn.Variable((2, 4)), 4)",
    "PF.lstm_cell(nn.Variable((2, 5)), nn.Variable((2, 4)), nn.Variable((2, 4)), 4, fix_parameters=True, name='c')",
    "PF.LSTMCell(2, 4, name='c')(nn.Variable((2, 5)))",
    "PF.LSTMCell(2, 4)(nn.Variable((2, 5)), w_init=I.ConstantInitializer(2), b_init=I.ConstantInitializer(1))",
    *QUANTIZED,
]
# Queries, keys and values: steps, sequences, numbers.
Q, K, V = "nn.Variable((5, 2, 12))", "nn.Variable((4, 2, 6))", "nn.Variable((4, 2, 8))"
SRC, TGT = "nn.Variable((5, 2, 8))", "nn.Variable((4, 2, 8))"
MASKS = "additive_mask=nn.Variable(({}, {})), key_padding_mask=nn.Variable((2, {}))"
PARAMETRIC += [
    f"PF.multi_head_attention({Q}, {Q}, {Q})",
    f"PF.multi_head_attention({Q}, {K}, {V}, 4, name='a')",
    f"PF.multi_head_attention({Q}, {K}, {V}, num_heads=2, dropout=0.5, k_embed_dim=6, v_embed_dim=4, out_dim=3)",
    f"PF.multi_head_attention({Q}, {K}, {V}, 4, add_attn_bias=True, {MASKS.format(5, 4, 4)})",
    f"PF.multi_head_attention({Q}, {K}, {V}, 4, with_bias=False, rng=np.random.RandomState(3))",
    f"PF.multi_head_attention({Q}, {K}, {V}, 4, add_attn_bias=True, fix_parameters=True)",
    f"PF.multi_head_attention({Q}, {K}, {V}, 4, 0.0, None, None, None, None, True, True, param_init={{"
    "'q_weight': I.ConstantInitializer(2), 'k_bias': np.ones(12), 'attn_bias_v': I.NormalInitializer(0.5)})",
    f"PF.transformer_encode({SRC}, 8, 2)",
    f"PF.transformer_encode({SRC}, 8, 4, 16, 0.0, F.tanh, add_attn_bias=True, name='e')",
    f"PF.transformer_encode({SRC}, 8, 4, 16, src_additive_mask=nn.Variable((5, 5)), rng=np.random.RandomState(3))",
    f"PF.transformer_decode({TGT}, {SRC}, 8, 2)",
    f"PF.transformer_decode({TGT}, nn.Variable((7, 2, 8)), 8, 4, dim_feedforward=16, add_attn_bias=True, dropout=0)",
    f"PF.transformer({SRC}, {TGT}, 8, 2)",
    f"PF.transformer({SRC}, {TGT}, 8, 2, 1, 2, 16, 0.0, F.elu, name='t', add_attn_bias=True)",
    f"PF.transformer({SRC}, {TGT}, embed_dim=8, num_encoder_layers=0, num_decoder_layers=1, dim_feedforward=3)",
]
# Calls whose outputs and gradients are kept. `x` makes numbers of a shape, `mask` ones and zeros.
VALUES = [
    "PF.multi_head_attention(x(5, 2, 12), x(5, 2, 12), x(5, 2, 12))",
    "PF.multi_head_attention(x(5, 2, 12), x(4, 2, 6), x(4, 2, 8), 4, out_dim=3)",
    "PF.multi_head_attention(x(5, 2, 12), x(4, 2, 6), x(4, 2, 8), 4, additive_mask=x(5, 4))",
    "PF.multi_head_attention(x(5, 2, 12), x(4, 2, 6), x(4, 2, 8), 4, key_padding_mask=mask(2, 4))",
    "PF.multi_head_attention(x(5, 2, 12), x(4, 2, 6), x(4, 2, 8), 2, additive_mask=x(5, 4), "
    "key_padding_mask=mask(2, 4), add_attn_bias=True)",
    "PF.transformer_encode(x(5, 2, 8), 8, 2, 16, 0.0, src_additive_mask=x(5, 5), src_key_padding_mask=mask(2, 5))",
    "PF.transformer_decode(x(4, 2, 8), x(5, 2, 8), 8, 2, 16, 0.0, F.tanh, x(4, 4), x(4, 5), mask(2, 4), mask(2, 5))",
    "PF.transformer(x(5, 2, 8), x(4, 2, 8), 8, 4, 2, 2, 16, 0.0, None, x(5, 5), x(4, 4), x(4, 5), mask(2, 5), "
    "mask(2, 4), mask(2, 5), add_attn_bias=True)",
    "PF.lstm_cell(x(2, 5), x(2, 4), x(2, 4), 4)",
]
SHAPES = [(2, 3), (3, 2, 2), (3,), (0, 2), (1, 1)]
INITIALIZERS = [
    "I.NormalInitializer()",
    "I.NormalInitializer(0.3)",
    "I.NormalInitializer(rng=np.random.RandomState(1))",
    "I.UniformInitializer()",
    "I.UniformInitializer((-2, 3))",
    "I.UniformIntInitializer()",
    "I.UniformIntInitializer((3, 5))",
    "I.RangeInitializer()",
    "I.RangeInitializer(3, 2)",
    "I.RangeInitializer(0.5, 0.1)",
    "I.OrthogonalInitializer()",
    "I.OrthogonalInitializer(2.0)",
    "I.ConstantInitializer()",
    "I.ConstantInitializer(2.5)",
]
CALCS = [
    f"I.calc_{name}({arguments})"
    for name in ("normal_std_he_forward", "normal_std_he_backward", "normal_std_glorot", "uniform_lim_glorot")
    for arguments in ("3, 5", "3, 5, (2, 4)", "64, 10, kernel=(3,)")
]


def parametric(code: str) -> dict:
    """What one call makes: outputs, inputs of its function, parameters."""
    nn.clear_parameters()
    nn.seed(313)
    y = eval(code, NAMES)
    outputs = y if isinstance(y, (tuple, list)) else [y]
    return {
        "code": code,
        "outputs": [list(o.shape) for o in outputs],
        "need_grad": outputs[0].need_grad,
        "parameters": [parameter(name, v) for name, v in nn.get_parameters(grad_only=False).items()],
    }


def parameter(name: str, v: nn.Variable) -> list:
    """Name, shape, need_grad, type, sum and first values as hexadecimal floats."""
    values = np.asarray(v.data.data)
    first = [float(x).hex() for x in values.ravel()[:5]]
    return [name, list(v.shape), v.need_grad, str(values.dtype), float(values.sum(dtype=np.float64)), first]


def values(code: str) -> dict:
    """What one call gives: outputs, and for a loss of them the gradients of inputs and parameters."""
    nn.clear_parameters()
    nn.seed(313)
    given = []

    def x(*shape: int) -> nn.Variable:
        given.append(nn.Variable.from_numpy_array(np.random.RandomState(len(given)).randn(*shape).astype(np.float32)))
        given[-1].need_grad = True
        return given[-1]

    def mask(*shape: int) -> nn.Variable:
        hidden = np.zeros(shape, np.float32)
        hidden[0, -1] = hidden[1, 1] = 1
        return nn.Variable.from_numpy_array(hidden)

    y = eval(code, {**NAMES, "x": x, "mask": mask})
    outputs = y if isinstance(y, (tuple, list)) else [y]
    loss = sum((F.sum(o * (i + 1) * F.sin(o)) for i, o in enumerate(outputs)), F.constant(0, ()))
    loss.forward()
    for v in [*given, *nn.get_parameters().values()]:
        v.g = 0
    loss.backward()
    rounded = [[round(float(v), 6) for v in o.d.ravel()[:12]] for o in outputs]
    wanted = {**{str(i): v for i, v in enumerate(given)}, **nn.get_parameters()}
    gradients = {name: [float(v.g.sum()), float(abs(v.g).sum())] for name, v in wanted.items()}
    return {"code": code, "outputs": rounded, "gradients": gradients}


def initializer(code: str, shape: tuple) -> dict:
    nn.seed(313)
    values = np.asarray(eval(code, NAMES)(shape))
    return {"code": code, "shape": shape, "dtype": str(values.dtype), "values": values.ravel().tolist()}


def write_h5() -> None:
    """A file with two types, an empty and a 0-d parameter, order and need_grad."""
    nn.clear_parameters()
    g = np.random.RandomState(5)
    nn.parameter.get_parameter_or_create("z/conv/W", (2, 3), g.randn(2, 3).astype(np.float32))
    nn.parameter.get_parameter_or_create("a", (4,), g.randn(4), need_grad=False)
    nn.parameter.get_parameter_or_create("half", (3,), g.randn(3).astype(np.float16))
    nn.parameter.get_parameter_or_create("empty", (0, 2), np.ones((0, 2), np.float32))
    nn.parameter.get_parameter_or_create("z/conv/b", (2,), np.array([7, -1], np.int32))
    nn.parameter.set_parameter("scalar", nn.Variable(()))
    nn.parameter.get_parameter("scalar").d = 0.5
    nn.save_parameters(str(HERE / "nnabla.h5"))


def main() -> None:
    golden = {
        "parametric": [parametric(code) for code in PARAMETRIC],
        "values": [values(code) for code in VALUES],
        "initializers": [initializer(code, shape) for code in INITIALIZERS for shape in SHAPES],
        "calcs": [[code, np.asarray(eval(code, NAMES)).tolist()] for code in CALCS],
        "prng": np.random.RandomState(313).rand(3).tolist(),
    }
    lines = [f'"{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for key, rows in golden.items()]
    (HERE / "parametric.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    write_h5()


if __name__ == "__main__":
    main()
