"""Trainings with `utils.qnn` that run on nnrs and on NNabla: tests/golden/make_qnn.py notes what tests compare."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np


def configs(qnn: Any) -> dict[str, Any]:
    """Configurations by name."""
    plain = qnn.QATConfig
    changes = {
        "tensorrt": (qnn.QATTensorRTConfig, {}),
        "plain": (plain, {}),
        "moving": (
            plain,
            {
                "recorder_activation": qnn.AbsMaxRecorderCallback,
                "recorder_weight": qnn.MinMaxMvaRecorderCallback,
                "skip_bias": True,
            },
        ),
        "greatest": (
            plain,
            {
                "recorder_activation": qnn.MinMaxMinMaxRecorderCallback,
                "recorder_weight": qnn.AbsMaxRecorderCallback,
                "pow2": plain.RoundingMethod.NOTROUND,
                "narrow_range": True,
                "skip_outputs_layers": [],
            },
        ),
        "few": (plain, {"record_layers": ["Affine"], "skip_outputs_layers": [], "pow2": plain.RoundingMethod.CEIL}),
    }
    found = {}
    for name, (base, more) in changes.items():
        config = type(name, (base,), dict(more))()
        config.niter_to_recording, config.niter_to_training = 3, 7
        found[name] = config
    return found


def network(module: str, x: Any, train: bool) -> Any:
    """A small residual network."""
    F, PF = (importlib.import_module(f"{module}.{name}") for name in ("functions", "parametric_functions"))
    h = PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c1", with_bias=False)
    h = F.relu(PF.batch_normalization(h, batch_stat=train, name="b1"))
    r = PF.batch_normalization(PF.convolution(h, 4, (3, 3), pad=(1, 1), name="c2"), batch_stat=train, name="b2")
    h = F.max_pooling(F.relu(F.add2(r, h)), (2, 2))
    return PF.affine(F.relu(PF.affine(h, 6, name="a1")), 5, name="a2")


def train(module: str, config: Any) -> dict[str, Any]:
    """12 steps, through recording into quantized training: losses, parameters, functions."""
    nn, F, S, qnn = (
        importlib.import_module(f"{module}{name}") for name in ("", ".functions", ".solvers", ".utils.qnn")
    )
    nn.clear_parameters()
    rng = np.random.RandomState(0)
    x, t, vx = nn.Variable((4, 3, 8, 8)), nn.Variable((4, 1)), nn.Variable((4, 3, 8, 8))
    pred = network(module, x, True)
    pred.persistent = True
    vpred = network(module, vx, False)
    for name in sorted(nn.get_parameters()):
        v = nn.get_parameters()[name]
        v.d = rng.randn(*v.shape) * 0.3 + ("gamma" in name)
    loss = F.mean(F.softmax_cross_entropy(pred, t))
    solver = S.Sgd(0.05)
    solver.set_parameters(nn.get_parameters())
    scheduler = qnn.QATScheduler(config, solver)
    scheduler(pred, True)
    scheduler(vpred, False)
    losses = []
    for _ in range(12):
        x.d, t.d = rng.randn(4, 3, 8, 8), rng.randint(0, 5, (4, 1))
        scheduler.step()
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses.append(float(loss.d))
    vx.d = rng.randn(4, 3, 8, 8)
    vpred.forward()
    types: list[str] = []
    pred.visit(lambda f: types.append(f.info.type_name))
    sums = {name: float(v.d.sum()) for name, v in nn.get_parameters(grad_only=False).items()}
    rate = float(solver.learning_rate())
    return {"losses": losses, "output": vpred.d.tolist(), "sums": sums, "types": sorted(types), "rate": rate}
