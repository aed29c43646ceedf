"""Data iterators that several threads read, and what is no data source: each batch once, clear errors, no hang."""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pytest

import nnrs as nn
from nnrs.utils.data_iterator import ConcatDataSource, DataIterator, data_iterator, data_iterator_simple
from nnrs.utils.data_source import DataSource


@pytest.mark.parametrize("use_thread", [True, False])
@pytest.mark.parametrize("stop", [True, False])
def test_threads_share_an_epoch(use_thread, stop):
    batches = data_iterator_simple(lambda i: (i,), 200, 5, use_thread=use_thread, stop_exhausted=stop)
    given, ends = [], []

    def read():
        try:
            for _ in range(41 if stop else 40):
                given.extend(batches.next()[0].tolist())
        except StopIteration:
            ends.append(True)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert Counter(given) == dict.fromkeys(range(200), 1 if stop else 6)
    assert len(ends) == (6 if stop else 0)
    batches.close()


def read_until_closed(batches, errors):
    try:
        while True:
            batches.next()
    except ValueError as error:
        errors.append(str(error))


def test_closing_while_another_thread_reads():
    batches = data_iterator_simple(lambda i: (time.sleep(0.001), i)[1:], 100, 5)
    errors = []
    thread = threading.Thread(target=read_until_closed, args=(batches, errors), daemon=True)
    thread.start()
    batches.close()
    thread.join(30)
    assert errors == ["next: expected an open iterator, got a closed one"]
    assert not batches._prefetcher._thread.is_alive()
    with pytest.raises(ValueError, match="slice: expected an open iterator"):
        batches.slice(None, 2, 0)


def test_closing_while_others_wait_for_batches_makes_no_more():
    gate, made = threading.Event(), []

    def load(i):
        made.append(i)
        assert gate.wait(30)
        return (np.float32([i]),)

    gate.set()
    di = data_iterator_simple(load, 100, 1)
    di.next()
    gate.clear()
    ends = []
    threads = [threading.Thread(target=read_until_closed, args=(di, ends)) for _ in range(4)]
    threads.append(threading.Thread(target=di.close))
    for thread in threads:
        thread.start()
    while not di._closed:
        time.sleep(0.001)
    before = len(made)
    gate.set()
    for thread in threads:
        thread.join(30)
    assert len(ends) == 4 and all("a closed one" in text for text in ends)
    assert len(made) <= before + 1  # the one that was asked for


class NeverBegun(DataSource):
    def __init__(self):
        pass


@pytest.mark.parametrize("make", [lambda s: DataIterator(s, 2), lambda s: data_iterator(s, 2)])
def test_what_is_no_data_source(make):
    for given in (None, np.zeros((4, 2)), [1, 2]):
        with pytest.raises(TypeError, match="'data_source': expected a DataSource, got") as e:
            make(given)
        assert isinstance(e.value, nn.Error) and "data_iterator_simple" in str(e.value)
    with pytest.raises(TypeError, match=r"NeverBegun has to call super\(\).__init__"):
        make(NeverBegun())
    with pytest.raises(TypeError, match="'data_source_list': expected a list of data sources"):
        ConcatDataSource([data_iterator_simple(lambda i: (i,), 4, 2)])


@pytest.mark.parametrize("given", [print, 3, [3], [print, None]])
def test_callbacks_that_are_none(given):
    with pytest.raises(TypeError, match="'epoch_end_callbacks': expected a") as e:
        data_iterator_simple(lambda i: (i,), 4, 2, epoch_end_callbacks=given)
    assert isinstance(e.value, nn.Error)


class SamplesOf(DataSource):
    def __init__(self, sample):
        super().__init__()
        self._size, self._variables, self._sample = 4, ("x",), sample

    def _get_data(self, position):
        return self._sample


@pytest.mark.parametrize(
    ("sample", "text"), [({"x": 1}, "a tuple of 1 values"), (([[1, 2], [3]],), "list of parts of several shapes")]
)
def test_samples_without_a_shape(sample, text):
    with DataIterator(SamplesOf(sample), 2) as batches, pytest.raises((TypeError, ValueError), match=text) as e:
        batches.next()
    assert isinstance(e.value, nn.Error)
