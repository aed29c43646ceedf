"""Networks that cover all functions, for the files of NNabla: made, saved and compared by either package.

`functions()` puts the first fitting case of each function (tests/function/) into thirty networks; `LAYERS` are networks
with parameters. Run as a script it saves or checks all of them with the package that `NNRS_TEST_MODULE` says:

    python tests/nnp_networks.py save FOLDER
    python tests/nnp_networks.py check FOLDER    # raises where outputs differ
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from function_harness import F, nn

COUNT = 30
# Sizes that follow from data, user code, and what one package does not have as a function of the graph.
LEFT_OUT = {
    "bool_gather",
    "nonzero",
    "unique",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "onnx_non_max_suppression",
}
LEFT_OUT |= {"sink", "assign", "einsum", "sync_batch_normalization", "fused_convolution"}


def parametric() -> Any:
    """The package's parametric functions."""
    return import_module(f"{nn.__name__}.parametric_functions")


def fits(target: Any) -> bool:
    """Whether a case can stand in a network of a file."""
    case = target.case
    return case.oracle and case.call is None and target.name not in LEFT_OUT


def first_cases() -> dict[str, Any]:
    """A case of each function: the first that is not large."""
    from function_harness import targets

    found: dict[str, Any] = {}
    for target in targets(wanted=lambda case: case.oracle):
        sizes = [x.size for x in target.inputs("float") if x is not None]
        if fits(target) and 0 not in sizes and sum(sizes) < 1500:
            found.setdefault(target.name, target)
    return found


def functions() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], bool]]:
    """Networks of some functions each: name, inputs, outputs."""
    cases = sorted(first_cases().items())
    for i in range(COUNT):
        inputs: dict[str, Any] = {}
        outputs: dict[str, Any] = {}
        for name, target in cases[i::COUNT]:
            made = [None if x is None else nn.Variable.from_numpy_array(x) for x in target.inputs("float")]
            ys = target.call(made)
            if not all(hasattr(y, "parent") and y.parent is not None for y in ys):
                continue
            inputs.update({f"{name}_x{k}": x for k, x in enumerate(made) if x is not None})
            outputs.update({f"{name}_y{k}": y for k, y in enumerate(ys)})
        yield f"functions{i}", inputs, outputs, False


def is_drawn(output: str) -> bool:
    """Whether an output of this name is drawn at random: its shape alone is compared."""
    name = output.rpartition("_y")[0]
    return name in DRAWN or name.startswith("rand")


def lenet(x: Any) -> Any:
    PF = parametric()
    h = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c1"))
    h = F.max_pooling(PF.batch_normalization(h, batch_stat=False, name="bn"), (2, 2))
    h = F.tanh(PF.affine(h, 8, name="a1"))
    return F.softmax(PF.affine(F.reshape(h, (h.shape[0], 8)), 3, name="a2"))


def residual(x: Any) -> Any:
    PF = parametric()
    h = PF.convolution(x, 6, (3, 3), pad=(1, 1), with_bias=False, name="first")
    for i in range(2):
        with nn.parameter_scope(f"block{i}"):
            r = F.leaky_relu(PF.group_normalization(h, 2, name="gn"), 0.2)
            r = PF.depthwise_convolution(r, (3, 3), pad=(1, 1), name="dw")
            h = h + PF.convolution(r, 6, (1, 1), name="pw") * 0.5
    return PF.affine(F.global_average_pooling(h), 2, name="last")


def unet(x: Any) -> Any:
    PF = parametric()
    down = F.elu(PF.convolution(x, 4, (3, 3), pad=(1, 1), stride=(2, 2), name="down"))
    up = PF.deconvolution(down, 3, (4, 4), pad=(1, 1), stride=(2, 2), name="up")
    both = F.concatenate(x, F.sigmoid(up), axis=1)
    return F.interpolate(PF.convolution(both, 1, (1, 1), name="out"), output_size=(5, 5), mode="linear")


def attention(x: Any) -> Any:
    PF = parametric()
    flat = F.reshape(x, (x.shape[0], 12, 16))
    q, k = PF.affine(flat, 6, base_axis=2, name="q"), PF.affine(flat, 6, base_axis=2, name="k")
    weights = F.softmax(F.batch_matmul(q, k, transpose_b=True) / 6**0.5, axis=2)
    return F.sum(F.batch_matmul(weights, flat) ** 2, axis=(1, 2), keepdims=True)


def recurrent(x: Any) -> Any:
    PF = parametric()
    h = c = F.constant(0.0, (x.shape[0], 5))
    for part in F.split(F.reshape(x, (x.shape[0], 3, 64)), axis=1):
        h, c = PF.lstm_cell(part, h, c, 5, name="lstm")
    return PF.affine(h, 2, name="last")


LAYERS: dict[str, Callable[[Any], Any]] = {f.__name__: f for f in (lenet, residual, unet, attention, recurrent)}
DRAWN = {"dropout", "image_augmentation", "vat_noise"}
OPEN = {"lenet", "residual", "unet", "recurrent"}
"""Networks whose batch's size is left open."""


def layers() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], bool]]:
    """Networks with parameters, all in one scope each."""
    rng = np.random.RandomState(5)
    for name, build in LAYERS.items():
        x = nn.Variable.from_numpy_array(rng.randn(4, 3, 8, 8).astype(np.float32))
        with nn.parameter_scope(name):
            y = build(x)
        yield name, {"x": x}, {"y": y}, name in OPEN


def fill(rng: np.random.RandomState) -> None:
    """Give parameters values that differ, also where they begin with zeros."""
    for name, p in nn.get_parameters(grad_only=False).items():
        p.d = np.abs(rng.randn(*p.shape)) + 0.5 if name.endswith("var") else rng.randn(*p.shape) * 0.5


def save(folder: Path) -> None:
    """Save all networks, and what goes in and comes out."""
    write = import_module(f"{nn.__name__}.utils.save").save
    folder.mkdir(parents=True, exist_ok=True)
    nn.clear_parameters()
    for file, networks in (("functions", functions()), ("layers", layers())):
        made = list(networks)
        if file == "layers":
            fill(np.random.RandomState(6))
        values: dict[str, np.ndarray] = {}
        for is_open in (False, True):
            chosen = [m for m in made if m[3] == is_open]
            contents = {"networks": [network(*m) for m in chosen], "executors": [executor(*m) for m in chosen]}
            if chosen:
                write(str(folder / f"{file}{'-open' * is_open}.nnp"), contents, variable_batch_size=is_open)
        for name, inputs, outputs, _ in made:
            values.update({f"{name}/{k}": np.array(v.d) for k, v in inputs.items()})
            for k, y in outputs.items():
                y.forward()
                values[f"{name}/{k}"] = np.zeros(y.shape) if is_drawn(k) else np.array(y.d)
        np.savez_compressed(folder / f"{file}.npz", **values)


def network(name: str, inputs: dict[str, Any], outputs: dict[str, Any], is_open: bool) -> dict[str, Any]:
    """The network's entry in the contents of `save`."""
    return {"name": name, "batch_size": 4, "outputs": outputs, "names": inputs}


def executor(name: str, inputs: dict[str, Any], outputs: dict[str, Any], is_open: bool) -> dict[str, Any]:
    """The executor's entry in the contents of `save`."""
    return {"name": f"run {name}", "network": name, "data": list(inputs), "output": list(outputs)}


def check(folder: Path) -> dict[str, int]:
    """Load all networks of a folder and compare what they give; how many outputs each file has."""
    loader = import_module(f"{nn.__name__}.utils.nnp_graph").NnpLoader
    counts: dict[str, int] = {}
    for file in sorted(folder.glob("*.nnp")):
        values = np.load(folder / f"{file.stem.removesuffix('-open')}.npz")
        loaded = loader(str(file))
        for name in loaded.get_network_names():
            try:
                counts[file.name] = counts.get(file.name, 0) + compare(loaded, name, values)
            except Exception as e:
                print("FAILED", name, str(e)[:300])
    return counts


def compare(loaded: Any, name: str, values: Any) -> int:
    """Run a loaded network and compare its outputs with the values of the file beside it."""
    net = loaded.get_network(name)
    for key, v in net.inputs.items():
        if f"{name}/{key}" in values:
            v.d = values[f"{name}/{key}"]
    outputs = {key: y for key, y in net.outputs.items() if f"{name}/{key}" in values}
    for key, y in outputs.items():
        wanted = values[f"{name}/{key}"]
        y.forward()
        assert y.shape == wanted.shape, (name, key, y.shape, wanted.shape)
        if not is_drawn(key):
            np.testing.assert_allclose(y.d, wanted, 2e-4, 2e-5, err_msg=f"{name}/{key}")
    return len(outputs)


def contents() -> dict[str, Any]:
    """All that `save` takes: two networks that are trained, evaluated and run."""
    S = import_module(f"{nn.__name__}.solvers")
    PF = parametric()
    nn.clear_parameters()
    x, t = nn.Variable((8, 3)), nn.Variable((8, 1))
    y = PF.affine(F.relu(PF.affine(x, 4, name="one")), 2, name="two")
    loss = F.mean(F.softmax_cross_entropy(y, t))
    names = {"x": x, "t": t, "loss": loss}
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    other = S.Momentum(0.1, 0.8)
    other.set_parameters({k: v for k, v in nn.get_parameters().items() if k.startswith("one")})
    dataset = {"uri": "data.csv", "variables": {"x": x, "t": t}, "batch_size": 8, "no_image_normalization": True}
    training = {
        "network": "training",
        "weight_decay": 0.5,
        "lr_decay": 0.9,
        "lr_decay_interval": 2,
        "update_interval": 1,
    }
    return {
        "global_config": {"default_context": nn.Context(["cpu:float"], "CpuCachedArray", "0")},
        "training_config": {"max_epoch": 3, "iter_per_epoch": 4, "save_best": True},
        "networks": [
            {"name": "training", "batch_size": 8, "outputs": {"loss": loss}, "names": names},
            {"name": "runtime", "batch_size": 8, "outputs": {"y": y}, "names": {"x": x}},
        ],
        "datasets": [
            {"name": "train", "shuffle": True, "cache_dir": "cache", **dataset},
            {"name": "valid", "shuffle": False, **dataset},
        ],
        "optimizers": [
            {"name": "adam", "solver": solver, "dataset": "train", "data_variables": {"x": "x", "t": "y"}, **training},
            {
                "name": "momentum",
                "solver": other,
                "dataset": ["train", "valid"],
                "generator_variables": ["t"],
                **training,
            },
        ],
        "monitors": [{"name": "loss", "network": "training", "dataset": "valid", "data_variables": {"x": "x"}}],
        "executors": [
            {"name": "run", "network": "runtime", "data": ["x"], "output": ["y"], "remp": {"x": "input"}},
            {"name": "all", "network": "training", "num_evaluations": 2, "need_back_propagation": True},
        ],
    }


def looped(source: Path) -> dict[str, np.ndarray]:
    """What the networks with loops give."""
    loaded = import_module(f"{nn.__name__}.utils.nnp_graph").NnpLoader(str(source))
    rng, values = np.random.RandomState(2), {}
    nn.clear_parameters()
    for name in loaded.get_network_names():
        net = loaded.get_network(name, batch_size=2)
        for key in sorted(nn.get_parameters(grad_only=False)):
            net.variables[key].d = rng.randn(*net.variables[key].shape)
        for key in sorted(net.inputs):
            net.inputs[key].d = rng.randn(*net.inputs[key].shape)
        net.outputs["y"].forward()
        values[name] = np.array(net.outputs["y"].d)
        values[f"{name} variables"] = np.array(sorted(net.variables))
        nn.clear_parameters()
    return values


EQUATIONS = """ij,jk->ik bij,bjk->bik ij,jk ij,kj->i ij,ij-> i,j->ji ij,jk,kl->il bhwi,bhwj->bij ii->i iij->ij ijk->j
ij->ji ...j,j->... ...ij,...jk->...ik""".split()
SIZES = {"i": 2, "j": 2, "k": 3, "l": 2, "b": 2, "h": 2, "w": 3}
FUSED = {
    "convolution": ("", {"nonlinearity": "identity"}),
    "bias": ("bias", {"nonlinearity": "leaky_relu", "nonlinearity_args": [0.3], "stride": (2, 1)}),
    "z": ("z", {"pad": (1, 1), "pad_mode": "reflect", "nonlinearity": "tanh"}),
    "bias z": (
        "bias z",
        {"pad": (1, 0, 0, 1), "constant_value": 0.1, "nonlinearity": "elu", "nonlinearity_args": [0.7]},
    ),
    "batch": ("beta gamma mean variance", {"pad": (1, 1), "decay_rate": 0.7, "nonlinearity": "sigmoid"}),
    "running": ("beta gamma mean variance", {"batch_stat": False, "eps": 0.01, "group": 2, "dilation": (1, 2)}),
    "batch z": ("beta gamma mean variance z", {"nonlinearity": "relu6"}),
}


def composed() -> Iterator[tuple[str, dict[str, Any], dict[str, Any], bool]]:
    """Networks of functions of NNabla that are several in nnrs."""
    for equation in EQUATIONS:
        terms = [term.replace("...", "bh") for term in equation.partition("->")[0].split(",")]
        xs = {f"x{i}": nn.Variable(tuple(SIZES[c] for c in term)) for i, term in enumerate(terms)}
        yield equation, xs, {"y": F.einsum(*xs.values(), equation=equation)}, False
    for name, (given, options) in FUSED.items():
        xs = {"x": nn.Variable((2, 2, 5, 4)), "weight": nn.Variable((2, 2 // options.get("group", 1), 2, 2))}
        plain = {k: v for k, v in options.items() if k in ("pad", "stride", "dilation", "group")}
        padded = F.pad(xs["x"], plain.pop("pad")) if len(plain.get("pad", ())) == 4 else xs["x"]
        shape = F.convolution(padded, xs["weight"], **plain).shape
        xs |= {k: nn.Variable({"bias": (2,), "z": shape}.get(k, (1, 2, 1, 1))) for k in given.split()}
        yield name, xs, {"y": F.fused_convolution(**xs, **options)}, False


def open_composed() -> dict[str, Any]:
    """The contents of `save`: such functions over parameters, in a network whose batch size is open."""
    x, rng = nn.Variable((4, 2, 5, 4)), np.random.RandomState(3)
    nn.clear_parameters()
    shapes = {"weight": (3, 2, 2, 2), "mixed": (4, 3, 6)} | dict.fromkeys(
        ("beta", "gamma", "mean", "variance"), (1, 3, 1, 1)
    )
    given = {key: nn.parameter.get_parameter_or_create(key, s, rng.rand(*s) + 0.5) for key, s in shapes.items()}
    mixed = given.pop("mixed")
    y = F.fused_convolution(x, **given, batch_stat=False, nonlinearity="tanh")
    y = F.einsum(F.einsum(y, mixed, equation="bchw,hwk->bck"), y, equation="bck,bchw->bkw")
    return {"networks": [{"name": "open", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}]}


def open_values(source: Path) -> dict[str, np.ndarray]:
    """What it gives for batches of several sizes, and the gradient of x."""
    loaded = import_module(f"{nn.__name__}.utils.nnp_graph").NnpLoader(str(source))
    values = {}
    for size in (4, 1, 7):
        net = loaded.get_network("open", batch_size=size)
        x, y = net.inputs["x"], net.outputs["y"]
        x.d, x.need_grad, x.g = np.random.RandomState(size).randn(*x.shape), True, 0
        y.forward()
        y.backward()
        values |= {f"y {size}": np.array(y.d), f"gradient {size}": np.array(x.g)}
    return values


def composed_values(source: Path) -> dict[str, np.ndarray]:
    """What the networks of `composed` give, the gradients of their inputs, and the running statistics afterwards."""
    loaded = import_module(f"{nn.__name__}.utils.nnp_graph").NnpLoader(str(source))
    rng, values = np.random.RandomState(7), {}
    for name in loaded.get_network_names():
        net = loaded.get_network(name)
        statistics = {"mean", "variance"} & net.inputs.keys()
        for key in sorted(net.inputs):
            drawn = rng.randn(*net.inputs[key].shape)
            net.inputs[key].d = np.abs(drawn) + 0.5 if key == "variance" else drawn
            net.inputs[key].need_grad = key not in statistics
            net.inputs[key].g = 0
        y = net.outputs["y"]
        y.forward()
        y.backward(np.float32(rng.randn(*y.shape)))
        values[f"{name}/y"] = np.array(y.d)
        values |= {f"{name}/{key}": np.array(v.d if key in statistics else v.g) for key, v in net.inputs.items()}
    return values


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    result = {"save": save, "check": check}[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps(result))
