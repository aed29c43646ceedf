"""An update of the parameters: batches forward and backward, and the solver, with functions called in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core import NdArray
from ..._errors import check_callable, check_integer
from ._callbacks import Callback, call_all, callbacks, nothing

_Step = Callable[[int, int], Any]
_SubStep = Callable[[int, int, int], Any]


class Updater:
    """Updates parameters. All functions are called with the numbers of iteration and epoch.

    Those for a batch get its number too, of `accum_grad`. Each `.._callback_..` is one function or a list.

    Args:
        train_data_feeder: Sets the inputs.
        solver_zero_grad: Sets the gradients to 0.
        solver_update: Updates the parameters.
        loss_forward: Runs the loss forward.
        loss_backward: Runs it backward.
        loss_forward_callback_on_start: Called before it runs forward.
        loss_forward_callback_on_finish: Called after that.
        loss_backward_callback_on_start: Called before it runs backward.
        loss_backward_callback_on_finish: Called after that.
        comm_all_reduce_callback_on_start: Called before gradients are exchanged.
        comm_all_reduce: Exchanges the gradients, if there are `comm` and `grads`.
        comm_all_reduce_callback_on_finish: Called after that.
        solver_update_callback_on_start: Called before the update.
        solver_update_callback_on_finish: Called after it.
        accum_grad: Batches whose gradients add up to one update.
        comm: A communicator, for training on several devices.
        grads: The gradients to be exchanged by it.

    >>> log = lambda name: lambda *numbers: print(name, *numbers)
    >>> Updater(log("feed"), log("zero"), log("update"), log("forward"), log("backward"), accum_grad=2).update(7, 3)
    zero 7 3
    feed 7 3 0
    forward 7 3 0
    backward 7 3 0
    feed 7 3 1
    forward 7 3 1
    backward 7 3 1
    update 7 3
    """

    def __init__(
        self,
        train_data_feeder: _SubStep,
        solver_zero_grad: _Step,
        solver_update: _Step,
        loss_forward: _SubStep = nothing,
        loss_backward: _SubStep = nothing,
        loss_forward_callback_on_start: Callback | list[Callback] = nothing,
        loss_forward_callback_on_finish: Callback | list[Callback] = nothing,
        loss_backward_callback_on_start: Callback | list[Callback] = nothing,
        loss_backward_callback_on_finish: Callback | list[Callback] = nothing,
        comm_all_reduce_callback_on_start: Callback | list[Callback] = nothing,
        comm_all_reduce: _Step = nothing,
        comm_all_reduce_callback_on_finish: Callback | list[Callback] = nothing,
        solver_update_callback_on_start: Callback | list[Callback] = nothing,
        solver_update_callback_on_finish: Callback | list[Callback] = nothing,
        accum_grad: int = 1,
        comm: Any = None,
        grads: Sequence[NdArray] = (),
    ) -> None:
        given = locals()
        self.accum_grad = check_integer("Updater", "accum_grad", accum_grad, 1)
        self.comm = comm
        self.grads = grads

        def step(name: str) -> Callback:
            check_callable("Updater", name, given[name])
            return given[name]  # type: ignore[no-any-return]

        def several(name: str) -> list[Callback]:
            return callbacks("Updater", name, given[name])

        self.train_data_feeder = step("train_data_feeder")
        self.solver_zero_grad = step("solver_zero_grad")
        self.solver_update = step("solver_update")
        self.loss_forward = step("loss_forward")
        self.loss_backward = step("loss_backward")
        self.comm_all_reduce = step("comm_all_reduce")
        self.loss_forward_callback_on_start = several("loss_forward_callback_on_start")
        self.loss_forward_callback_on_finish = several("loss_forward_callback_on_finish")
        self.loss_backward_callback_on_start = several("loss_backward_callback_on_start")
        self.loss_backward_callback_on_finish = several("loss_backward_callback_on_finish")
        self.comm_all_reduce_callback_on_start = several("comm_all_reduce_callback_on_start")
        self.comm_all_reduce_callback_on_finish = several("comm_all_reduce_callback_on_finish")
        self.solver_update_callback_on_start = several("solver_update_callback_on_start")
        self.solver_update_callback_on_finish = several("solver_update_callback_on_finish")

    def update(self, i: int, e: int) -> None:
        """One update.

        Args:
            i: Number of the iteration in its epoch.
            e: Number of the epoch.
        """
        self.solver_zero_grad(i, e)
        for batch in range(self.accum_grad):
            self._add_gradients(i, e, batch)
        if self.comm and len(self.grads):
            call_all(self.comm_all_reduce_callback_on_start, i, e)
            self.comm_all_reduce(i, e)
            call_all(self.comm_all_reduce_callback_on_finish, i, e)
        call_all(self.solver_update_callback_on_start, i, e)
        self.solver_update(i, e)
        call_all(self.solver_update_callback_on_finish, i, e)

    def _add_gradients(self, i: int, e: int, batch: int) -> None:
        self.train_data_feeder(i, e, batch)
        call_all(self.loss_forward_callback_on_start, i, e, batch)
        self.loss_forward(i, e, batch)
        call_all(self.loss_forward_callback_on_finish, i, e, batch)
        call_all(self.loss_backward_callback_on_start, i, e, batch)
        self.loss_backward(i, e, batch)
        call_all(self.loss_backward_callback_on_finish, i, e, batch)
