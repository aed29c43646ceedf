"""Training in half precision: the loss is scaled up so that small gradients are not lost, as far as none overflows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import NdArray, Variable

# Attempts of one update before it is left out.
_ATTEMPTS = 101


class DynamicLossScalingUpdater:
    """Forward, backward and update with a loss scale that follows the gradients.

    Where a gradient is infinite or NaN, the scale is divided by `scaling_factor` and the step is done again with new
    data; after more than `N` updates without, it is multiplied (Micikevicius et al., 2017, Mixed Precision Training).

    Args:
        solver: The solver, with its parameters.
        loss: The loss, a scalar.
        data_feeder: Called before each forward pass: sets the inputs.
        scale: The first loss scale.
        scaling_factor: What the scale is multiplied with and divided by.
        N: Updates without infinities after which the scale grows.
        clear_buffer: Free what is no longer needed, in forward and backward.
        accum_grad: Forward and backward passes whose gradients add up to one update.
        weight_decay: The rate of weight decay; None: none.
        comm: A communicator, for training on several devices.
        grads: The gradients to be exchanged by it.

    >>> import numpy as np, nnrs as nn, nnrs.functions as F, nnrs.solvers as S
    >>> w = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    >>> solver = S.Sgd(0.5)
    >>> solver.set_parameters({"w": w})
    >>> updater = DynamicLossScalingUpdater(solver, F.sum(w * w))
    >>> updater.update()
    >>> w.d.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        solver: Any,
        loss: Variable,
        data_feeder: Callable[[], Any] = lambda: None,
        scale: float = 8.0,
        scaling_factor: float = 2.0,
        N: int = 2000,
        clear_buffer: bool = True,
        accum_grad: int = 1,
        weight_decay: float | None = None,
        comm: Any = None,
        grads: Sequence[NdArray] = (),
    ) -> None:
        self.solver = solver
        self.loss = loss
        self.data_feeder = data_feeder
        self.scale = scale
        self.scaling_factor = scaling_factor
        self.N = N
        self.clear_buffer = clear_buffer
        self.accum_grad = accum_grad
        self.weight_decay = weight_decay
        self.comm = comm
        self.grads = list(grads)
        self._updates = 0

    def update(self) -> None:
        """One update of the parameters. It is left out if gradients overflow at the smallest scales too."""
        for _ in range(_ATTEMPTS):
            self._gradients()
            if not self.solver.check_inf_or_nan_grad():
                self._apply()
                return
            self.scale /= self.scaling_factor
            self._updates = 0

    def _gradients(self) -> None:
        self.solver.zero_grad()
        for _ in range(self.accum_grad):
            self.data_feeder()
            self.loss.forward(clear_no_need_grad=self.clear_buffer)
            self.loss.backward(self.scale, clear_buffer=self.clear_buffer)
        if self.comm and self.grads:
            self.comm.all_reduce(self.grads, division=False, inplace=False)

    def _apply(self) -> None:
        self.solver.scale_grad(1.0 / self.scale)
        if self.weight_decay is not None:
            self.solver.weight_decay(self.weight_decay)
        self.solver.update()
        if self._updates > self.N:
            self.scale *= self.scaling_factor
            self._updates = 0
        self._updates += 1
