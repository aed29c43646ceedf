"""What a function writes has its context's type from then on, whatever it had; what is only read keeps its own."""

from __future__ import annotations

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF

# For each layer the parameters that forward writes. NNabla 1.39 writes the same ones.
LAYERS = {
    "mean_subtraction": (PF.mean_subtraction, {"mean"}),
    "batch_normalization": (PF.batch_normalization, {"mean", "var"}),
    "spectral_norm": (PF.spectral_norm, {"u"}),
    "min_max_quantize": (PF.min_max_quantize, {"qr_max"}),
    "min_max_quantize of x": (lambda x: PF.min_max_quantize(x, x_min_max=True), {"qr_min", "qr_max"}),
}


@pytest.mark.parametrize("stored", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("type_config", ["float", "double"])
@pytest.mark.parametrize("layer", LAYERS)
def test_states_have_the_type_of_the_context(layer, type_config, stored):
    make, written = LAYERS[layer]
    nn.clear_parameters()
    with h.scope(type_config):
        y = make(nn.Variable.from_numpy_array(np.ones((4, 3), np.float32)))
        parameters = nn.get_parameters(grad_only=False)
        for v in parameters.values():
            v.d = np.ones(v.shape, stored)
        y.forward()
    for name, v in parameters.items():
        name = name.rsplit("/", 1)[1]
        if name in written:
            assert v.d.dtype == (np.float64 if type_config == "double" else np.float32), name
        elif name != "t":
            assert v.d.dtype == stored, name


def test_what_is_assigned_has_the_type_of_the_context():
    to = nn.Variable.from_numpy_array(np.zeros(2))
    F.assign(to, nn.Variable.from_numpy_array(np.ones(2))).forward()
    assert to.d.dtype == np.float32 and to.d.tolist() == [1, 1]
