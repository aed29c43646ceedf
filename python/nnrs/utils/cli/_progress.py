"""Progress bars on stderr, where tqdm is installed, stderr is a terminal and NNabla's settings do not say otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


def is_wanted() -> bool:
    """Whether the setting MISC misc_show_progress says so."""
    from ...config import nnabla_config

    return nnabla_config.get("MISC", "misc_show_progress", fallback="True").strip() == "True"


def bar(total: float | None, label: str, **options: Any) -> Any:
    """A bar with `update(n)`, `set_description` and `close`; one that shows nothing where none is wanted."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _NoBar()
    return tqdm(total=total, desc=label, disable=None if is_wanted() else True, **options)


def tracked(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """The items, and a bar of how many there were."""
    shown = bar(len(items) if total is None and isinstance(items, Sized) else total, label)
    try:
        for item in items:
            yield item
            shown.update(1)
    finally:
        shown.close()


@contextmanager
def states_as_bar(file_name: str | None) -> Iterator[None]:
    """Show as a bar what the block tells `nnrs.utils.progress`, and write it to a file."""
    from ..progress import configure_progress

    state = _State()
    configure_progress(file_name, state)
    try:
        yield
    finally:
        configure_progress("", _nothing)
        state.close()


def beside_bars() -> AbstractContextManager[Any]:
    """A block in which lines can be printed: bars make room for them."""
    if "tqdm" not in sys.modules:
        return nullcontext()
    made: AbstractContextManager[Any] = sys.modules["tqdm"].tqdm.external_write_mode(file=sys.stderr)
    return made


def _nothing(state: str | None, part: float) -> None:
    """Take no notice."""


class _State:
    """A callback of `configure_progress` with a bar for each state."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._part = 0.0

    def __call__(self, state: str | None, part: float) -> None:
        if state is None or (self._bar is not None and part < self._part):
            self.close()
        if state is None:
            return
        if self._bar is None:
            self._bar = bar(100, state, bar_format="{l_bar}{bar}| {elapsed}", leave=False)
        self._bar.set_description(state, refresh=False)
        self._bar.update((part - self._part) * 100)
        self._part = part

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
        self._bar, self._part = None, 0.0


class _NoBar:
    """Nothing to be seen."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None
