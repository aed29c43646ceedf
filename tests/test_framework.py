"""`experimental.framework`: a worker's methods are called in NNabla's order, with its counts."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from nnrs.experimental.framework import Data, Trainer, Worker
from nnrs.experimental.framework.evaluator import Evaluator
from nnrs.experimental.framework.updater import Updater

ORDER = """
load_checkpoint; training_prepare; _ctx_init; _var_init; _comm_init; _data_init; _graph_init; _loss_init; _solver_init
_monitor_init; save_model_at_start
epoch_loop_start 2; evaluate_at_epoch_start 2; _eval_callback_on_start 2; _eval_data_feeder 2 0; _eval_graph_forward 2 0
_eval_callback_on_finish 2; iter_loop_start 0 2; update_in_iteration 0 2; _solver_zero_grad 0 2
_train_data_feeder 0 2 0; _loss_forward_callback_on_start 0 2 0; _loss_forward 0 2 0
_loss_forward_callback_on_finish 0 2 0; _loss_backward_callback_on_start 0 2 0; _loss_backward 0 2 0
_loss_backward_callback_on_finish 0 2 0; _solver_update_callback_on_start 0 2; _solver_update 0 2
_solver_update_callback_on_finish 0 2; iter_loop_end 0 2; epoch_loop_end 2; save_checkpoint_at_epoch_end 2
evaluate_at_training_end; _eval_callback_on_start 1; _eval_data_feeder 1 0; _eval_graph_forward 1 0
_eval_callback_on_finish 1; save_model_at_end; training_complete; brief
"""


def test_the_order_of_a_training():
    """As NNabla 1.39 calls them."""
    called = []

    def noted(name):
        def method(self, *args):
            called.append(" ".join([name, *map(str, args)]))
            given = getattr(Worker, name)(self, *args)
            return 2 if name == "load_checkpoint" else given

        return method

    skipped = ("__init__", "max_epoch", "iter_per_epoch", "_loopCallbackCondition", "_force_to_list")
    methods = [name for name, m in vars(Worker).items() if callable(m) and name not in skipped]
    trainer = Trainer(type("Noted", (Worker,), {name: noted(name) for name in methods})(None))
    trainer.train()
    trainer.brief()
    assert called == [part.strip() for part in ORDER.replace("\n", ";").split(";") if part.strip()]
    assert trainer.start_epoch == 2


class Comm:
    def __init__(self, log):
        self.log = log

    def all_reduce(self, grads, division, inplace):
        self.log.append(("all_reduce", len(grads), division, inplace))


class Fit(Worker):
    """Fits a number to those that it is fed with."""

    def _graph_init(self):
        self.w = nn.Variable.from_numpy_array(np.zeros(1), need_grad=True)
        self.x = nn.Variable((1,))
        self.seen = []

    def _loss_init(self):
        self._loss = F.sum(F.squared_error(self.w, self.x))

    def _solver_init(self):
        self._solver = S.Sgd(0.25)
        self._solver.set_parameters({"w": self.w})

    def _train_data_feeder(self, i, e, ag):
        self.x.d = self._data.next()

    def _eval_graph_forward(self, e, vi):
        if self._loopCallbackCondition(e=e, toExecute=lambda i, e, ag: e % 2 == 0):
            self.seen.append(float(self.w.d[0]))


def test_a_training():
    numbers = iter(range(1, 100))
    data = type("Numbers", (Data,), {"__init__": lambda self: None, "next": lambda self: next(numbers)})()
    worker = Fit(data, max_epoch=2, iter_per_epoch=3)
    Trainer(worker).train()
    w, seen = 0.0, []
    for e in range(2):
        seen += [w] if e % 2 == 0 else []
        for i in range(3):
            w -= 0.25 * 2 * (w - (3 * e + i + 1))
    assert worker.w.d.tolist() == [w] and worker.seen == [*seen, w]


def test_gradients_are_exchanged_where_there_is_a_communicator():
    log = []

    class Parallel(Fit):
        def _comm_init(self):
            self._comm, self.grads = Comm(log), ["g"]

        def _train_data_feeder(self, i, e, ag):
            self.x.d = 1

    Trainer(Parallel(None)).train()
    assert log == [("all_reduce", 1, False, False)]


def test_an_evaluator_calls_lists():
    log = []
    feed = lambda *a: log.append(("feed", *a))  # noqa: E731
    start = [lambda e: log.append(("start", e)), lambda e: log.append(("too", e))]
    Evaluator(feed, lambda *a: log.append(("run", *a)), start, lambda e: log.append(("end", e)), val_iter=2).evaluate(5)
    runs = [("feed", 5, 0), ("run", 5, 0), ("feed", 5, 1), ("run", 5, 1)]
    assert log == [("start", 5), ("too", 5), *runs, ("end", 5)]


def test_data_of_ones_own():
    class Source:
        pass

    class Mine(Data):
        CustomDataSource = Source

        def __data_iterator__(self, data_source):
            assert isinstance(data_source, Source)
            return type("It", (), {"next": lambda self: "batch", "size": 7})()

    data = Mine()
    data.reset()
    assert (data.next(), data.size()) == ("batch", 7)

    class Half(Data):
        CustomDataSource = Source

    with pytest.raises(NotImplementedError, match="Half.__data_iterator__ is missing"):
        Half()


def test_the_data_source_of_a_data_class():
    source = pytest.importorskip(
        "nnrs.utils.data_source", reason="data sources are still to come", exc_type=ImportError
    )
    assert issubclass(Data.CustomDataSource, source.DataSource)
    assert Data.CustomDataSource is Data.CustomDataSource


def test_wrong_arguments():
    f = print
    with pytest.raises(TypeError, match="Updater: argument 'solver_update'"):
        Updater(f, f, 3)
    with pytest.raises(TypeError, match="argument 'loss_forward_callback_on_start'"):
        Updater(f, f, f, loss_forward_callback_on_start=[f, 3])
    with pytest.raises(ValueError, match="argument 'accum_grad': expected 1 or more"):
        Updater(f, f, f, accum_grad=0)
    with pytest.raises(TypeError, match="Evaluator: argument 'eval_graph_forward'"):
        Evaluator(f, None)
    with pytest.raises(TypeError, match="Trainer: argument 'worker': expected a Worker"):
        Trainer(3)
    with pytest.raises(TypeError, match="Worker: argument 'max_epoch'"):
        Worker(None, max_epoch="a")
