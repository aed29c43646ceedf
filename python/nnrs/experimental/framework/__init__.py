"""A frame for training scripts: `Data` gives batches, a `Worker` has network and solver, a `Trainer` runs the loops.

>>> import numpy as np, nnrs as nn, nnrs.functions as F, nnrs.solvers as S
>>> class Numbers(Data):
...     def __init__(self):
...         self.x = np.float32([1, 2])
...     def next(self):
...         return self.x
>>> class Fit(Worker):
...     def _graph_init(self):
...         self.w = nn.Variable.from_numpy_array(np.zeros(2), need_grad=True)
...         self.x = nn.Variable((2,))
...     def _loss_init(self):
...         self._loss = F.sum(F.squared_error(self.w, self.x))
...     def _solver_init(self):
...         self._solver = S.Sgd(0.25)
...         self._solver.set_parameters({"w": self.w})
...     def _train_data_feeder(self, i, e, ag):
...         self.x.d = self._data.next()
>>> worker = Fit(Numbers(), max_epoch=2, iter_per_epoch=2)
>>> Trainer(worker).train()
>>> worker.w.d.tolist()
[0.9375, 1.875]
"""

from __future__ import annotations

from .data import Data
from .trainer import Trainer
from .worker import Worker

__all__ = ["Data", "Trainer", "Worker"]
