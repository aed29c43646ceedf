"""What a training does at each of its points: `Worker`, the base of classes that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._borrowed import borrower
from ..._errors import check_integer
from .evaluator import Evaluator
from .updater import Updater


class Worker:
    """Base of workers: a subclass gives network, loss, solver and what feeds them; the rest it may.

    To be given: `_graph_init`, `_loss_init` (sets `self._loss`), `_solver_init` (sets `self._solver`) and
    `_train_data_feeder`; for an evaluation `_eval_data_feeder` and `_eval_graph_forward`. All others do nothing, or
    what they say.

    Args:
        data: What gives the batches.
        max_epoch: Number of epochs.
        iter_per_epoch: Updates in an epoch.
        clear_buffer: Free in backward what is no longer needed.
        clear_no_need_grad: Free in forward what backward does not need.

    The arguments of methods are the numbers of the iteration (`i`), of the epoch (`e`), and of the batch of an update
    (`ag`) or evaluation (`vi`).

    >>> class Says(Worker):
    ...     def _train_data_feeder(self, i, e, ag):
    ...         print("a batch for iteration", i)
    >>> Says(None).update_in_iteration(3, 0)
    a batch for iteration 3
    """

    _loss: Any = None
    _solver: Any = None
    _comm: Any = None
    grads: Any = ()

    def __init__(
        self,
        data: Any,
        max_epoch: int = 1,
        iter_per_epoch: int = 1,
        clear_buffer: bool = True,
        clear_no_need_grad: bool = True,
    ) -> None:
        self._data = data
        self._max_epoch = check_integer("Worker", "max_epoch", max_epoch, 0)
        self._iter_per_epoch = check_integer("Worker", "iter_per_epoch", iter_per_epoch, 0)
        self._clear_buffer = clear_buffer
        self._clear_no_need_grad = clear_no_need_grad
        self._updater = Updater(
            train_data_feeder=self._train_data_feeder,
            solver_zero_grad=self._solver_zero_grad,
            solver_update=self._solver_update,
            loss_forward=self._loss_forward,
            loss_backward=self._loss_backward,
            loss_forward_callback_on_start=self._loss_forward_callback_on_start,
            loss_forward_callback_on_finish=self._loss_forward_callback_on_finish,
            loss_backward_callback_on_start=self._loss_backward_callback_on_start,
            loss_backward_callback_on_finish=self._loss_backward_callback_on_finish,
            comm_all_reduce_callback_on_start=self._comm_all_reduce_callback_on_start,
            comm_all_reduce=self._comm_all_reduce,
            comm_all_reduce_callback_on_finish=self._comm_all_reduce_callback_on_finish,
            solver_update_callback_on_start=self._solver_update_callback_on_start,
            solver_update_callback_on_finish=self._solver_update_callback_on_finish,
        )
        self._evaluator = Evaluator(
            eval_data_feeder=self._eval_data_feeder,
            eval_graph_forward=self._eval_graph_forward,
            eval_callback_on_start=self._eval_callback_on_start,
            eval_callback_on_finish=self._eval_callback_on_finish,
        )

    # What a trainer calls.

    def max_epoch(self) -> int:
        """Number of epochs."""
        return self._max_epoch

    def iter_per_epoch(self) -> int:
        """Updates in an epoch."""
        return self._iter_per_epoch

    def training_prepare(self) -> None:
        """Make everything: context, inputs, communicator, data, network, loss, solver, monitors, in this order."""
        self._ctx_init()
        self._var_init()
        self._comm_init()
        self._data_init()
        self._graph_init()
        self._loss_init()
        self._solver_init()
        self._monitor_init()
        self._updater.comm, self._updater.grads = self._comm, self.grads

    def training_complete(self) -> None:
        """After everything."""

    def load_checkpoint(self) -> int:
        """Load what a former training has saved, and give the number of the epoch to go on with."""
        return 0

    def brief(self) -> Any:
        """What there is to say of the training."""
        return None

    def epoch_loop_start(self, e: int) -> None:
        """At the beginning of an epoch."""

    def epoch_loop_end(self, e: int) -> None:
        """At the end of an epoch."""

    def save_checkpoint_at_epoch_end(self, e: int) -> None:
        """After an epoch, to save what a later training may go on with."""

    def iter_loop_start(self, i: int, e: int) -> None:
        """Before an update."""

    def iter_loop_end(self, i: int, e: int) -> None:
        """After an update."""

    def update_in_iteration(self, i: int, e: int) -> None:
        """Update the parameters once."""
        self._updater.update(i, e)

    def evaluate_at_epoch_start(self, e: int) -> None:
        """Evaluate, before the updates of an epoch."""
        self._evaluator.evaluate(e)

    def evaluate_at_training_end(self) -> None:
        """Evaluate, after all updates."""
        self._evaluator.evaluate(self._max_epoch)

    def save_model_at_start(self) -> None:
        """Before the first epoch, to save the network."""

    def save_model_at_end(self) -> None:
        """After the last epoch, to save the network."""

    # What is to be made.

    def _ctx_init(self) -> None:
        """Choose the context."""

    def _var_init(self) -> None:
        """Make the inputs."""

    def _comm_init(self) -> None:
        """Make the communicator, `self._comm`, for gradients `self.grads`."""

    def _data_init(self) -> None:
        """Prepare the data."""

    def _graph_init(self) -> None:
        """Make the network."""

    def _loss_init(self) -> None:
        """Make the loss, `self._loss`."""

    def _solver_init(self) -> None:
        """Make the solver, `self._solver`."""

    def _monitor_init(self) -> None:
        """Make the monitors."""

    # The parts of an update.

    def _train_data_feeder(self, i: int, e: int, ag: int) -> None:
        """Set the inputs to the next batch."""

    def _solver_zero_grad(self, i: int, e: int) -> None:
        if self._solver is not None:
            self._solver.zero_grad()

    def _loss_forward_callback_on_start(self, i: int, e: int, ag: int) -> None:
        """Before the loss runs forward."""

    def _loss_forward(self, i: int, e: int, ag: int) -> None:
        if self._loss is not None:
            self._loss.forward(clear_no_need_grad=self._clear_no_need_grad)

    def _loss_forward_callback_on_finish(self, i: int, e: int, ag: int) -> None:
        """After the loss has run forward."""

    def _loss_backward_callback_on_start(self, i: int, e: int, ag: int) -> None:
        """Before the loss runs backward."""

    def _loss_backward(self, i: int, e: int, ag: int) -> None:
        if self._loss is not None:
            self._loss.backward(clear_buffer=self._clear_buffer)

    def _loss_backward_callback_on_finish(self, i: int, e: int, ag: int) -> None:
        """After the loss has run backward."""

    def _comm_all_reduce_callback_on_start(self, i: int, e: int) -> None:
        """Before gradients are exchanged."""

    def _comm_all_reduce(self, i: int, e: int) -> None:
        if self._comm is not None:
            self._comm.all_reduce(self.grads, division=False, inplace=False)

    def _comm_all_reduce_callback_on_finish(self, i: int, e: int) -> None:
        """After gradients were exchanged."""

    def _solver_update_callback_on_start(self, i: int, e: int) -> None:
        """Before the solver updates the parameters."""

    def _solver_update(self, i: int, e: int) -> None:
        if self._solver is not None:
            self._solver.update()

    def _solver_update_callback_on_finish(self, i: int, e: int) -> None:
        """After the solver has updated the parameters."""

    # The parts of an evaluation.

    def _eval_callback_on_start(self, e: int) -> None:
        """Before an evaluation."""

    def _eval_data_feeder(self, e: int, vi: int) -> None:
        """Set the inputs to the next batch."""

    def _eval_graph_forward(self, e: int, vi: int) -> None:
        """Run the network."""

    def _eval_callback_on_finish(self, e: int) -> None:
        """After an evaluation."""

    # Helpers for subclasses.

    def _load_parameters(self) -> None:
        """Load parameters."""

    def _save_parameters(self) -> None:
        """Save parameters."""

    def _load_model(self) -> None:
        """Load the network."""

    def _save_model(self) -> None:
        """Save the network."""

    def _loopCallbackCondition(
        self, i: int = 0, e: int = 0, ag: int = 0, toExecute: Callable[[int, int, int], bool] = lambda i, e, ag: True
    ) -> bool:
        """Whether a function that is called in each turn of a loop shall do something in this one."""
        return toExecute(i, e, ag)

    def _force_to_list(self, x: Any) -> list[Any]:
        return x if isinstance(x, list) else [x]


__getattr__ = borrower(__name__)
