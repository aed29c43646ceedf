"""The loop of `nnrs train`: steps, epochs, evaluations, what is written when."""

from __future__ import annotations

import contextlib
import math
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._errors import ArgumentError, FileError, message
from ..._files import atomic_path
from ...logger import logger
from .. import callback
from ..progress import progress
from ._results import Results, latest, load_train_state
from .utility import let_data_to_variable

_REPORT = "monitoring_report.yml"
_ALWAYS_EVALUATED = 5  # the first epochs


class Training:
    """A training, and its open datasets.

    Args:
        args: What the command line says.
        experiment: What is trained.
        results: Writes parameters.
    """

    def __init__(self, args: Any, experiment: Any, results: Results) -> None:
        self._args, self._experiment, self._results = args, experiment, results
        self._files = contextlib.ExitStack()
        self._iterators: dict[str, Any] = {}
        self._losses: list[Any] = []
        self._cost = 0.0  # of the epoch
        self._best: float | None = None

    def __enter__(self) -> Training:
        try:
            tasks = [*self._experiment.optimizers.values(), *self._experiment.monitors.values()]
            for kind, used in (("o", tasks[: len(self._experiment.optimizers)]), ("m", tasks)):
                for task in used:
                    for name in task.datasets:
                        self._open(kind, name)
        except BaseException:
            self._files.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def _open(self, kind: str, name: str) -> None:
        """Open a dataset: once for the optimizers, once for the monitors."""
        if kind + name not in self._iterators:
            dataset = self._experiment.datasets[name]
            self._iterators[kind + name] = self._files.enter_context(dataset.data_iterator())

    def run(self) -> bool:
        """Train; False if the cost is no number or time is up."""
        x = self._experiment
        last_epoch = self._resume() if self._args.resume else 0
        path = os.path.join(self._args.outdir, _REPORT)
        if not last_epoch:
            _write_text(path, "")
        logger.log(99, "Training epoch %d of %d begin", last_epoch + 1, x.max_epoch)
        callback.update_status(("epoch.max", x.max_epoch))
        callback.update_status(("epoch.current", min(last_epoch + 1, x.max_epoch)))
        callback.update_status("processing", True, time.time())
        limit = callback.get_timelimit(self._args)
        first, total = last_epoch * x.iter_per_epoch, x.max_epoch * x.iter_per_epoch
        clock = SimpleNamespace(start_time=time.time(), past_time=0.0, estimate_time=0.0, remain_time=0.0)
        for iteration in range(first, total):
            self._step(iteration)
            _tell(clock, (iteration + 1 - first) / (total - first))
            callback.update_time_train(prediction=clock.estimate_time)
            if 0 < limit < clock.estimate_time:
                text = "Expected training time (%.3fs) will exceed time limit (%ss)."
                logger.log(99, text, clock.estimate_time, limit)
                return False
            if (iteration + 1) % x.iter_per_epoch == 0:
                epoch = iteration // x.iter_per_epoch + 1
                if not self._end_epoch(epoch, clock):
                    return False
                if not callback.check_training_time(self._args, x, clock, epoch, last_epoch):
                    self._results.save("current", epoch, force=True)
                    return False
        if first < total:
            self._results.save("current", x.max_epoch, force=True)
        return True

    def _resume(self) -> int:
        """Take up the newest result and return its epoch, 0 where there is none."""
        self._best, epoch = callback.get_best_from_status(self._args)[::-1]
        if epoch is not None:
            logger.log(99, "Best error %s recorded at epoch %s in previous training.", self._best, epoch)
        else:
            self._best = _best_of(os.path.join(self._args.outdir, _REPORT))
        found = latest(self._args.outdir)
        if found is None:
            return 0
        logger.log(99, "Load parameter from [%s]", os.path.basename(found[0]))
        load_train_state(found[0], self._experiment)
        logger.log(99, "Resume from epoch %d", found[1] + 1)
        return found[1]

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, iteration: int) -> None:
        """Give each optimizer its turn."""
        read: dict[str, dict[str, np.ndarray]] = {}
        for o in self._experiment.optimizers.values():
            if o.start_iter and iteration + 1 < o.start_iter or o.end_iter and iteration + 1 > o.end_iter:
                continue
            self._feed(o, "o", read, iteration)
            self._collect_cost(iteration)
            o.target.forward(clear_no_need_grad=True)
            if iteration % o.update_interval == 0:
                o.solver.zero_grad()
            for v in o.loss_variables if len(o.loss_variables) > 1 else ():
                v.grad.fill(1.0 / max(v.size, 1))
            o.target.backward(grad=1.0 / max(o.loss_variables[0].size, 1), clear_buffer=True)
            if iteration % o.update_interval == o.update_interval - 1:
                self._update(o, iteration)
            self._losses = o.loss_variables
        if (iteration + 1) % self._experiment.iter_per_epoch == 0:
            self._collect_cost(iteration)

    def _update(self, o: Any, iteration: int) -> None:
        if o.weight_decay > 0:
            o.solver.weight_decay(o.weight_decay)
        o.solver.set_learning_rate(o.scheduler.get_learning_rate(iteration))
        o.solver.update()

    def _feed(self, task: Any, kind: str, read: dict[str, dict[str, np.ndarray]], iteration: int) -> None:
        """Fill the variables of a task with the next batch, and with generated values.

        Args:
            task: Whose variables.
            kind: Whose datasets: "o" or "m".
            read: Batches that were read in this step; the same dataset gives the same batch.
            iteration: Number of the step.
        """
        data: dict[str, np.ndarray] = {}
        for name in task.datasets:
            if name not in read:
                iterator = self._iterators[kind + name]
                read[name] = dict(zip(iterator.variables, iterator.next(), strict=False))
            data.update(read[name])
        for v, name in task.dataset_assign.items():
            if name in data:
                let_data_to_variable(v, data[name], data_name=name, variable_name=task.names[v])
            elif kind == "o" and name.startswith("%"):
                v.data.fill(self._reserved(name, iteration))
            else:
                text = f"data {name!r} of {task.name!r}: the datasets {', '.join(task.datasets)} have no such variable"
                raise ArgumentError(message("train", "config", text))
        for v, generate in task.generator_assign.items():
            let_data_to_variable(v, np.asarray(generate(v.shape)), variable_name=task.names[v])

    def _reserved(self, name: str, iteration: int) -> float:
        x = self._experiment
        values = {
            "%iter": iteration,
            "%max_iter": x.max_epoch * x.iter_per_epoch,
            "%epoch": iteration // x.iter_per_epoch,
            "%epochf": iteration / x.iter_per_epoch,
            "%max_epoch": x.max_epoch,
            "%progress": iteration / x.iter_per_epoch / x.max_epoch,
        }
        if name not in values:
            raise ArgumentError(message("train", "config", f"data of {', '.join(values)}", repr(name)))
        return values[name]

    def _collect_cost(self, iteration: int) -> None:
        """Add the losses of the optimizer that ran last. It is late so that a GPU has done them while data was read."""
        if not self._losses:
            return
        cost = sum(float(np.mean(v.d)) for v in self._losses)
        self._losses = []
        self._cost += cost
        part = iteration % self._experiment.iter_per_epoch / self._experiment.iter_per_epoch
        progress(f"Training : cost={cost:0.6f}", part)

    # --- epochs -------------------------------------------------------------------------------------------------------

    def _end_epoch(self, epoch: int, clock: Any) -> bool:
        """Evaluate, write and log; False if the cost is no number."""
        x = self._experiment
        cost, self._cost = self._cost / x.iter_per_epoch, 0.0
        if not math.isfinite(cost):
            logger.log(99, "Cost is Nan")
            return False
        errors = {}
        if epoch % x.monitor_interval == 0 or epoch <= _ALWAYS_EVALUATED:
            errors = {name: self._evaluate(m) for name, m in x.monitors.items()}
            self._keep_if_best(epoch, errors)
        self._report(epoch, cost, errors)
        self._results.save("current", epoch)
        callback.update_status(("epoch.current", epoch))
        callback.update_status()
        said = " {" + ", ".join(f"{name}={error:.6f}" for name, error in errors.items()) + "}" if errors else ""
        times = f"time=({clock.past_time:.1f}s /{clock.estimate_time:.1f}s)"
        logger.log(99, "epoch %d of %d cost=%.6f %s %s", epoch, x.max_epoch, cost, said, times)
        return True

    def _evaluate(self, m: Any) -> float:
        """The mean over a dataset of what a monitor measures."""
        iterators = [self._iterators["m" + name] for name in m.datasets]
        size, batch_size = max(i.size for i in iterators), max(i.batch_size for i in iterators)
        batches = size // batch_size
        total = 0.0
        for i in range(batches):
            self._feed(m, "m", {}, 0)
            m.target.forward(clear_no_need_grad=True, clear_buffer=True)
            total += sum(float(np.mean(v.d)) for v in m.monitor_variables)
            progress(f'Evaluating "{m.name}" : error={total / (i + 1):0.6f}', (i + 1) / batches)
        error = total / max(batches, 1)
        if not math.isfinite(error):
            logger.log(99, "Validation error is Nan")
        return error

    def _keep_if_best(self, epoch: int, errors: dict[str, float]) -> None:
        error = errors.get("valid_error", 0.0)
        is_best = self._best is None or error <= self._best
        if self._experiment.save_best and not (is_best and math.isfinite(error)):
            return
        self._best = error
        callback.update_status(("best.valid_error", error))
        callback.update_status(("best.epoch", epoch))
        self._results.save("best", epoch, force=True)

    def _report(self, epoch: int, cost: float, errors: dict[str, float]) -> None:
        path = os.path.join(self._args.outdir, _REPORT)
        values = {"cost": cost, **errors}
        try:
            with open(path, "a", encoding="utf-8") as f:
                f.write("".join([f"{epoch - 1}:\n", *(f"  {name}: {value}\n" for name, value in values.items())]))
        except OSError as error:
            raise FileError(message("train", "outdir", f"cannot write {path!r}: {error.strerror}")) from error
        for name, value in values.items():
            callback.update_status((["monitoring_report", epoch, name], value))
        for name, value in errors.items():
            callback.update_status((["last", name], value))


def _tell(clock: Any, part: float) -> None:
    """Set the times of a training that has come that far."""
    clock.past_time = time.time() - clock.start_time
    clock.estimate_time = clock.past_time / part
    clock.remain_time = clock.estimate_time - clock.past_time


def _write_text(path: str, text: str) -> None:
    with atomic_path(path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def _best_of(report: str) -> float | None:
    """The least validation error in the report of a training that did not end."""
    try:
        lines = Path(report).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    found = []
    for line in lines:
        name, _, value = line.strip().partition(": ")
        with contextlib.suppress(ValueError):
            found += [float(value)] if name == "valid_error" else []
    return min((error for error in found if math.isfinite(error)), default=None)
