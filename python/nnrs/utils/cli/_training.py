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

from ..._errors import FileError, message
from ..._files import atomic_path
from ...logger import logger
from .. import callback
from ..progress import progress
from ._experiment import backward, feed, mean_of, read_batch
from ._progress import beside_bars
from ._ranks import Ranks
from ._results import Results, latest, load_train_state

_REPORT = "monitoring_report.yml"
_ALWAYS_EVALUATED = 5  # the first epochs


class Training:
    """A training, and its open datasets.

    Args:
        args: What the command line says.
        info: What is trained, as `load` gives it.
        results: Writes parameters; None where another process does.
        ranks: The processes that train together.
    """

    def __init__(self, args: Any, info: Any, results: Results | None, ranks: Ranks) -> None:
        self._args, self._info, self._results, self._ranks = args, info, results, ranks
        self._config = info.training_config
        self._files = contextlib.ExitStack()
        self._iterators: dict[str, Any] = {}
        self._losses: list[Any] = []
        self._cost = 0.0  # of the epoch
        self._counted = -1  # the last iteration with a cost
        self._count = 0  # of those in the epoch
        self._best: float | None = None

    def __enter__(self) -> Training:
        try:
            for kind, tasks in (("o", self._info.optimizers), ("m", self._info.monitors)):
                for task in tasks.values():
                    for name in task.proto.dataset_name:
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
            self._iterators[kind + name] = self._ranks.open(self._info.datasets[name], self._files)

    def run(self) -> bool:
        """Train; False if the cost is no number or time is up."""
        x = self._config
        last_epoch = self._resume() if self._args.resume else 0
        self._ranks.share_parameters()
        if not last_epoch and self._ranks.is_first:
            _write_text(os.path.join(self._args.outdir, _REPORT), "")
        logger.log(99, "Training epoch %d of %d begin", last_epoch + 1, x.max_epoch)
        callback.update_status(("epoch.max", x.max_epoch))
        callback.update_status(("epoch.current", min(last_epoch + 1, x.max_epoch)))
        callback.update_status("processing", True, time.time())
        limit = self._ranks.first_says(callback.get_timelimit(self._args))
        first, total = last_epoch * x.iter_per_epoch, x.max_epoch * x.iter_per_epoch
        clock = SimpleNamespace(start_time=time.time(), past_time=0.0, estimate_time=0.0, remain_time=0.0)
        for iteration in range(first, total):
            self._step(iteration)
            _tell(clock, (iteration + 1 - first) / (total - first))
            callback.update_time_train(prediction=clock.estimate_time)
            if limit > 0 and self._ranks.first_says(clock.estimate_time > limit):
                text = "Expected training time (%.3fs) will exceed time limit (%ss)."
                logger.log(99, text, clock.estimate_time, limit)
                return False
            if (iteration + 1) % x.iter_per_epoch == 0:
                epoch = iteration // x.iter_per_epoch + 1
                if not self._end_epoch(epoch, clock):
                    return False
                on = callback.check_training_time(self._args, self._info, clock, epoch, last_epoch)
                if not self._ranks.first_says(bool(on)):
                    self._save("current", epoch, force=True)
                    return False
        if first < total:
            self._save("current", x.max_epoch, force=True)
        return True

    def _save(self, suffix: str, epoch: int, force: bool = False) -> None:
        if self._results is not None:
            self._results.save(suffix, epoch, force)

    def _resume(self) -> int:
        """Take up the newest result and return its epoch, 0 where there is none."""
        self._best, epoch = callback.get_best_from_status(self._args)[::-1]
        if epoch is not None:
            logger.log(99, "Best error %s recorded at epoch %s in previous training.", self._best, epoch)
        else:
            self._best = _best_of(os.path.join(self._args.outdir, _REPORT))
        found = latest(self._args.outdir)
        last = found[1] if found is not None else 0
        if last != self._ranks.first_says(last):
            text = "a folder with the same results for all processes"
            raise FileError(message("train", "outdir", text, repr(self._args.outdir)))
        if found is None:
            return 0
        logger.log(99, "Load parameter from [%s]", os.path.basename(found[0]))
        load_train_state(found[0], self._info)
        logger.log(99, "Resume from epoch %d", found[1] + 1)
        return found[1]

    # --- steps --------------------------------------------------------------------------------------------------------

    def _step(self, iteration: int) -> None:
        """Give each optimizer its turn."""
        read: dict[str, dict[str, np.ndarray]] = {}
        for o in self._info.optimizers.values():
            if o.start_iter and iteration + 1 < o.start_iter or o.end_iter and iteration + 1 > o.end_iter:
                continue
            data = self._read(o, "o", read)
            feed("train", o, data, lambda name: self._reserved(name, iteration))
            self._collect_cost(iteration)
            o.target.forward(clear_no_need_grad=True)
            if iteration % o.update_interval == 0:
                o.solver.zero_grad()
            last = iteration % o.update_interval == o.update_interval - 1
            backward(o, self._ranks.reduces(o.parameters.values()) if last else None)
            if last:
                self._update(o, iteration)
            self._losses = o.loss_variables
            self._count += self._counted != iteration
            self._counted = iteration
        if (iteration + 1) % self._config.iter_per_epoch == 0:
            self._collect_cost(iteration)

    def _update(self, o: Any, iteration: int) -> None:
        if o.weight_decay > 0:
            o.solver.weight_decay(o.weight_decay)
        o.solver.set_learning_rate(o.scheduler.get_learning_rate(iteration))
        o.solver.update()

    def _read(self, task: Any, kind: str, read: dict[str, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """The next batch of a task, by variable.

        Args:
            task: Whose datasets.
            kind: "o" or "m": the optimizers' iterators or the monitors'.
            read: Batches that were read in this step; the same dataset gives the same batch.
        """
        for name in task.proto.dataset_name:
            if name not in read:
                read[name] = read_batch([self._iterators[kind + name]])
        return {key: array for name in task.proto.dataset_name for key, array in read[name].items()}

    def _reserved(self, name: str, iteration: int) -> float | None:
        """How far the training is, where a variable is to have that."""
        x = self._config
        values = {
            "%iter": iteration,
            "%max_iter": x.max_epoch * x.iter_per_epoch,
            "%epoch": iteration // x.iter_per_epoch,
            "%epochf": iteration / x.iter_per_epoch,
            "%max_epoch": x.max_epoch,
            "%progress": iteration / x.iter_per_epoch / x.max_epoch,
        }
        return values.get(name)

    def _collect_cost(self, iteration: int) -> None:
        """Add the losses of the optimizer that ran last. It is late so that a GPU has done them while data was read."""
        if not self._losses:
            return
        cost, self._losses = mean_of(self._losses), []
        self._cost += cost
        part = iteration % self._config.iter_per_epoch / self._config.iter_per_epoch
        if self._ranks.is_first:
            progress(f"Training : cost={cost:0.6f}", part)

    # --- epochs -------------------------------------------------------------------------------------------------------

    def _end_epoch(self, epoch: int, clock: Any) -> bool:
        """Evaluate, write and log; False if the cost is no number."""
        x = self._config
        cost, self._cost, self._count = self._ranks.mean(self._cost / max(self._count, 1)), 0.0, 0
        if not math.isfinite(cost):
            logger.log(99, "Cost is Nan")
            return False
        is_evaluated = epoch % x.monitor_interval == 0 or epoch <= _ALWAYS_EVALUATED
        errors = {}
        if is_evaluated:
            errors = {name: self._evaluate(m) for name, m in self._info.monitors.items()}
        if not self._ranks.is_first:
            return True
        if is_evaluated:
            self._keep_if_best(epoch, errors)
        self._report(epoch, cost, errors)
        self._save("current", epoch)
        callback.update_status(("epoch.current", epoch))
        callback.update_status()
        said = " {" + ", ".join(f"{name}={error:.6f}" for name, error in errors.items()) + "}" if errors else ""
        times = f"time=({clock.past_time:.1f}s /{clock.estimate_time:.1f}s)"
        with beside_bars():
            logger.log(99, "epoch %d of %d cost=%.6f %s %s", epoch, x.max_epoch, cost, said, times)
        return True

    def _evaluate(self, m: Any) -> float:
        """The mean over a dataset of what a monitor measures."""
        iterators = [self._iterators["m" + name] for name in m.proto.dataset_name]
        size, batch_size = max(i.size for i in iterators), max(i.batch_size for i in iterators)
        batches = size // batch_size
        total = 0.0
        for i in range(batches):
            feed("train", m, read_batch(iterators))
            m.target.forward(clear_no_need_grad=True, clear_buffer=True)
            total += mean_of(m.monitor_variables)
            if self._ranks.is_first:
                progress(f'Evaluating "{m.proto.name}" : error={total / (i + 1):0.6f}', (i + 1) / batches)
        error = self._ranks.mean(total / max(batches, 1))
        if not math.isfinite(error):
            logger.log(99, "Validation error is Nan")
        return error

    def _keep_if_best(self, epoch: int, errors: dict[str, float]) -> None:
        error = errors.get("valid_error", 0.0)
        is_best = self._best is None or error <= self._best
        if self._config.save_best and not (is_best and math.isfinite(error)):
            return
        self._best = error
        callback.update_status(("best.valid_error", error))
        callback.update_status(("best.epoch", epoch))
        self._save("best", epoch, force=True)

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
