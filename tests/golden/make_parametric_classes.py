"""Asks NNabla 1.39 what its layers as objects begin with and give, and writes parametric_classes.json here.

Run it with a Python that has NNabla: `python tests/golden/make_parametric_classes.py`.
"""

import inspect
import json
import pathlib

import nnabla as nn
import nnabla.function_bases as FB
import nnabla.initializer as I
import numpy as np
from nnabla.experimental.parametric_function_class.affine import Affine
from nnabla.experimental.parametric_function_class.batch_normalization import BatchNorm1d, BatchNorm2d
from nnabla.experimental.parametric_function_class.convolution import Conv1d, Convolution
from nnabla.experimental.parametric_function_class.deconvolution import Deconvolution

HERE = pathlib.Path(__file__).parent
NAMES = {c.__name__: c for c in (Affine, BatchNorm1d, BatchNorm2d, Convolution, Deconvolution)}
NAMES.update(Conv1d=Conv1d, I=I, np=np)
# NNabla's Embed cannot be made, and its Deconvolution wants as many inputs as outputs.
LAYERS = [
    ("Affine(12, 5)", (2, 3, 4)),
    ("Affine(4, (5, 2), base_axis=2, with_bias=False)", (2, 3, 4)),
    ("Affine(4, 5, rng=np.random.RandomState(3), fix_parameters=True)", (2, 4)),
    ("Convolution(3, 6, (3, 2), pad=(1, 0), stride=(2, 1), group=3)", (2, 3, 8, 8)),
    ("Conv1d(3, 4, (3,), w_init=I.NormalInitializer(0.1), b_init=I.ConstantInitializer(1))", (2, 3, 8)),
    ("Deconvolution(4, 4, (3, 3), stride=(2, 2))", (2, 4, 5, 5)),
    ("BatchNorm2d(3)", (4, 3, 5, 5)),
    ("BatchNorm1d(3, param_init={'beta': I.ConstantInitializer(2)}, fix_parameters=True)", (4, 3, 5)),
]


def layer(code: str, shape: tuple) -> dict:
    nn.seed(313)
    made = eval(code, NAMES)
    parameters = [
        [name, list(v.shape), v.need_grad, float(v.d.sum(dtype=np.float64)), [float(a).hex() for a in v.d.ravel()[:5]]]
        for name, v in made.get_parameters(grad_only=False).items()
    ]
    y = made(nn.Variable.from_numpy_array(np.random.RandomState(1).randn(*shape).astype(np.float32)))
    y.forward()
    values = [round(float(v), 6) for v in y.d.ravel()[:8]]
    return {"code": code, "parameters": parameters, "input": shape, "output": list(y.shape), "values": values}


def signatures() -> dict:
    """The arguments of each function of function_bases, without the context."""
    found = {n: f for n, f in vars(FB).items() if hasattr(f, "__function_api_base__")}
    return {n: [str(p) for p in inspect.signature(f).parameters.values()] for n, f in sorted(found.items())}


def main() -> None:
    golden = {"layers": [layer(*case) for case in LAYERS]}
    lines = ['"layers": [\n' + ",\n".join(json.dumps(row) for row in golden["layers"]) + "\n]"]
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(code)}" for name, code in signatures().items())
    lines.append('"function_bases": {\n' + rows + "\n}")
    (HERE / "parametric_classes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
