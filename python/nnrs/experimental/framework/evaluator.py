"""An evaluation: some batches forward, with functions called before and after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._errors import check_callable, check_integer
from ._callbacks import Callback, call_all, callbacks, nothing


class Evaluator:
    """Evaluates a network. All functions are called with the number of the epoch first.

    Args:
        eval_data_feeder: Sets the inputs; called with epoch and number of the batch.
        eval_graph_forward: Runs the network; called with epoch and number of the batch.
        eval_callback_on_start: Called before all; one function or a list.
        eval_callback_on_finish: Called after all; one function or a list.
        val_iter: Number of batches.

    >>> Evaluator(lambda e, i: print("feed", e, i), lambda e, i: print("run"), val_iter=1).evaluate(3)
    feed 3 0
    run
    """

    def __init__(
        self,
        eval_data_feeder: Callable[[int, int], Any],
        eval_graph_forward: Callable[[int, int], Any],
        eval_callback_on_start: Callback | list[Callback] = nothing,
        eval_callback_on_finish: Callback | list[Callback] = nothing,
        val_iter: int = 1,
    ) -> None:
        here = "Evaluator"
        check_callable(here, "eval_data_feeder", eval_data_feeder)
        check_callable(here, "eval_graph_forward", eval_graph_forward)
        self.eval_data_feeder = eval_data_feeder
        self.eval_graph_forward = eval_graph_forward
        self.eval_callback_on_start = callbacks(here, "eval_callback_on_start", eval_callback_on_start)
        self.eval_callback_on_finish = callbacks(here, "eval_callback_on_finish", eval_callback_on_finish)
        self.val_iter = check_integer(here, "val_iter", val_iter, 0)

    def evaluate(self, e: int) -> None:
        """Evaluate in an epoch.

        Args:
            e: Its number.
        """
        call_all(self.eval_callback_on_start, e)
        for i in range(self.val_iter):
            self.eval_data_feeder(e, i)
            self.eval_graph_forward(e, i)
        call_all(self.eval_callback_on_finish, e)
