"""The loops of a training over a `Worker`."""

from __future__ import annotations

from typing import Any

from ..._errors import ArgumentTypeError, describe, message
from .worker import Worker


class Trainer:
    """Trains: it calls a worker's methods in their order, epoch by epoch and iteration by iteration.

    Args:
        worker: The worker.

    Raises:
        TypeError: If it is none.

    >>> class Says(Worker):
    ...     def iter_loop_start(self, i, e):
    ...         print("iteration", i, "of epoch", e)
    >>> Trainer(Says(None, max_epoch=1, iter_per_epoch=2)).train()
    iteration 0 of epoch 0
    iteration 1 of epoch 0
    """

    def __init__(self, worker: Worker) -> None:
        if not callable(getattr(worker, "load_checkpoint", None)):
            raise ArgumentTypeError(message("Trainer", "worker", "a Worker", describe(worker)))
        self.worker = worker
        self.start_epoch = 0

    def train(self) -> None:
        """Train for `worker.max_epoch()` epochs, from the one on that `worker.load_checkpoint()` gives."""
        worker = self.worker
        self.start_epoch = worker.load_checkpoint()
        worker.training_prepare()
        worker.save_model_at_start()
        for e in range(self.start_epoch, self.start_epoch + worker.max_epoch()):
            self._epoch(worker, e)
        worker.evaluate_at_training_end()
        worker.save_model_at_end()
        worker.training_complete()

    def _epoch(self, worker: Worker, e: int) -> None:
        worker.epoch_loop_start(e)
        worker.evaluate_at_epoch_start(e)
        for i in range(worker.iter_per_epoch()):
            worker.iter_loop_start(i, e)
            worker.update_in_iteration(i, e)
            worker.iter_loop_end(i, e)
        worker.epoch_loop_end(e)
        worker.save_checkpoint_at_epoch_end(e)

    def brief(self) -> Any:
        """What the worker says of the training."""
        return self.worker.brief()
