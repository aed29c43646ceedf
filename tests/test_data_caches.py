"""Caches of samples: NNabla's files load here and ours load there; what fails leaves no half, rubbish is an error.

golden/cache_* are folders that NNabla wrote, golden/data_feeding.json says what it reads of them (golden/make_data.py).
"""

from __future__ import annotations

import errno
import gc
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feeding_scenarios as scenarios
import nnrs as nn
from file_helpers import of_a_library
from nnrs import config
from nnrs.utils import _cache_files
from nnrs.utils.create_cache import CreateCache
from nnrs.utils.data_iterator import data_iterator_cache, data_iterator_csv_dataset, data_iterator_simple
from nnrs.utils.data_source import (
    DataSourceWithFileCache,
    DataSourceWithFileCacheError,
    DataSourceWithMemoryCache,
)
from nnrs.utils.data_source_implements import (
    CacheDataSource,
    CachePrefetcher,
    CacheReaderWithPrefetch,
    CsvDataSource,
    SimpleDataSource,
)

HERE = Path(__file__).parent
ORACLE = os.environ.get("NNRS_ORACLE", "/opt/nnrs-env/oracle/bin/python")
GOLDEN = json.loads((HERE / "golden" / "data_feeding.json").read_text(encoding="utf-8"))["caches"]


@pytest.fixture(autouse=True)
def settings():
    before = dict(config.nnabla_config["DATA_ITERATOR"])
    scenarios.configure()
    yield
    config.nnabla_config.read_dict({"DATA_ITERATOR": before})


def kind_of(name: str) -> str:
    if "h5" in name:
        pytest.importorskip("h5py")
    return ".h5" if "h5" in name else ".npy"


def write(name: str, target: Path, folder: Path) -> None:
    """The cache that NNabla wrote into golden/NAME."""
    scenarios.configure(kind_of(name))
    path = scenarios.write_csv(folder, 8)
    if name.endswith("create"):
        CreateCache(path, rng=np.random.RandomState(2), shuffle=True).create(str(target))
    else:
        DataSourceWithFileCache(CsvDataSource(path), cache_dir=str(target)).close()
    scenarios.configure()


# --- NNabla's and ours ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_a_cache_of_nnablas_loads(name):
    kind_of(name)
    assert scenarios.read_cache(HERE / "golden" / name) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_cache_is_written_as_nnabla_does(name, tmp_path):
    write(name, tmp_path / "cache", tmp_path)
    assert scenarios.read_cache(tmp_path / "cache") == GOLDEN[name]
    for path in (HERE / "golden" / name).glob("*.npy"):
        assert (tmp_path / "cache" / path.name).read_bytes() == path.read_bytes()


def test_nnabla_reads_what_nnrs_writes(tmp_path):
    if not os.path.exists(ORACLE):
        pytest.skip("NNabla is not installed here")
    for name in GOLDEN:
        write(name, tmp_path / "caches" / name, tmp_path)
    command = [ORACLE, str(HERE / "golden" / "make_data.py"), str(tmp_path / "caches")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})
    assert json.loads(done.stdout.splitlines()[-1]) == GOLDEN, done.stderr


def test_orders_of_a_shuffled_cache_name_files_and_rows():
    source = CacheDataSource(str(HERE / "golden" / "cache_npy_create"), shuffle=True, rng=np.random.RandomState(1))
    rows = [(os.path.basename(path), row) for path, row in source.order]
    assert sorted(rows) == [
        (name, i)
        for name, n in (("cache_00000000_00000004.npy", 5), ("cache_00000005_00000007.npy", 3))
        for i in range(n)
    ]
    assert source.size == 8 and source.variables == ["x", "y", "z"]


def test_types_that_are_scaled(tmp_path):
    scenarios.configure()
    values = (np.array([0, 255], np.uint8), np.array([0, 65535], np.uint16), np.array([7.0]))
    DataSourceWithFileCache(SimpleDataSource(lambda n: values, 2), cache_dir=str(tmp_path)).close()
    for normalize, most in ((True, 1), (False, None)):
        with data_iterator_cache(str(tmp_path), 2, normalize=normalize) as di:
            found = di.next()
        assert [a[0, -1] for a in found] == [most or 255, most or 65535, 7]
        assert [str(a.dtype) for a in found] == [*(["float32"] * 2 if normalize else ["uint8", "uint16"]), "float64"]


# --- files and folders ------------------------------------------------------------------------------------------------


def test_a_temporary_cache_goes_with_its_source(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    source = DataSourceWithFileCache(SimpleDataSource(scenarios.load, 12))
    assert len(list(tmp_path.rglob("*.npy"))) == 3
    source.close()
    source.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(DataSourceWithFileCacheError, match="closed"):
        source.next()
    source = DataSourceWithFileCache(SimpleDataSource(scenarios.load, 12))
    del source
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_the_folder_for_temporary_caches_is_a_setting(tmp_path):
    config.nnabla_config.set("DATA_ITERATOR", "data_source_file_cache_location", str(tmp_path))
    with data_iterator_simple(scenarios.load, 12, 4, with_file_cache=True):
        assert len(list(tmp_path.rglob("*.npy"))) == 3
    config.nnabla_config.set("DATA_ITERATOR", "data_source_file_cache_location", str(tmp_path / "none"))
    with pytest.raises(nn.Error, match="temporary folder"):
        data_iterator_simple(scenarios.load, 12, 4, with_file_cache=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["npy", "h5"])
@pytest.mark.parametrize("older", [False, True])
def test_a_disk_that_is_full_leaves_the_folder_as_it_was(name, older, tmp_path, monkeypatch):
    target = tmp_path / "cache"
    if older:
        DataSourceWithFileCache(SimpleDataSource(scenarios.load, 12), cache_dir=str(target)).close()
    before = contents(tmp_path)
    scenarios.configure(kind_of(name))
    left = [2]

    def full(*_: Any, **__: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device") if name == "npy" else RuntimeError("write failed")

    if name == "npy":
        monkeypatch.setattr(np.lib.format, "write_array", of_a_library(full))
    else:
        h5py = pytest.importorskip("h5py")
        monkeypatch.setattr(h5py.File, "create_dataset", full)
    with pytest.raises(OSError) as e:
        DataSourceWithFileCache(SimpleDataSource(scenarios.load, 12), cache_dir=str(target))
    assert isinstance(e.value, nn.Error)
    assert contents(tmp_path) == before and not [p for p in tmp_path.rglob(".*")]


@pytest.mark.host
def test_a_real_limit_of_file_sizes(tmp_path):
    """What the system refuses in the middle of a file."""
    resource = pytest.importorskip("resource")
    del resource
    code = f"""
import resource, signal, sys
import numpy as np
import nnrs as nn
from nnrs.utils.data_iterator import data_iterator_simple
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    data_iterator_simple(lambda n: (np.zeros(5000),), 200, 4, with_file_cache=True, cache_dir={str(tmp_path)!r})
except nn.Error as error:
    print("told", isinstance(error, OSError))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("told True\n", "") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("threads", ["1", "10"])
def test_a_sample_that_fails_while_the_cache_is_made(threads, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    config.nnabla_config.set("DATA_ITERATOR", "data_source_file_cache_num_of_threads", threads)

    def load(n):
        if n == 7:
            raise KeyError("sample 7")
        return scenarios.load(n)

    with pytest.raises(KeyError, match="sample 7") as e:
        data_iterator_simple(load, 40, 4, with_file_cache=True)
    assert any(entry.name == "load" for entry in e.traceback)
    assert not list(tmp_path.iterdir())


def test_another_cache_in_one_folder_takes_its_place(tmp_path):
    pytest.importorskip("h5py")
    path = scenarios.write_csv(tmp_path, 12)
    for kind in (".npy", ".h5", ".npy"):
        scenarios.configure(kind)
        with data_iterator_csv_dataset(path, 4, cache_dir=str(tmp_path / "c"), with_memory_cache=False) as di:
            assert di.next()[1].reshape(-1).tolist() == [0, 1, 2, 3]
        with data_iterator_cache(str(tmp_path / "c"), 12) as di:
            assert di.next()[1].reshape(-1).tolist() == list(range(12))


def test_values_that_no_file_holds(tmp_path):
    for value, text in ((object(), "float"), (np.array([None]), "objects")):
        with pytest.raises((TypeError, ValueError), match=text):
            DataSourceWithFileCache(SimpleDataSource(lambda n, v=value: (v,), 2), cache_dir=str(tmp_path))
    with pytest.raises(ValueError, match=r"'x0'.*\(1,\), \(2,\)"):
        DataSourceWithFileCache(SimpleDataSource(lambda n: (np.zeros(n + 1),), 2), cache_dir=str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_settings_that_make_no_sense(tmp_path):
    for name, value in (
        ("data_source_file_cache_size", "0"),
        ("data_source_file_cache_size", "many"),
        ("cache_file_format", ".png"),
    ):
        before = config.nnabla_config.get("DATA_ITERATOR", name)
        config.nnabla_config.set("DATA_ITERATOR", name, value)
        with pytest.raises(ValueError, match=name) as e:
            DataSourceWithFileCache(SimpleDataSource(scenarios.load, 2), cache_dir=str(tmp_path))
        assert isinstance(e.value, nn.Error)
        config.nnabla_config.set("DATA_ITERATOR", name, before)


# --- rubbish ----------------------------------------------------------------------------------------------------------


def copy_of(name: str, folder: Path) -> Path:
    target = folder / "copy"
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(HERE / "golden" / name, target))


def read_all(folder: Path) -> None:
    with data_iterator_cache(str(folder), 8, with_memory_cache=False, use_thread=False) as di:
        di.next()


@pytest.mark.parametrize("name", ["cache_npy_create", "cache_h5_create"])
def test_any_bytes_are_read_or_refused(name, tmp_path):
    kind = kind_of(name)
    folder = copy_of(name, tmp_path)
    rng = random.Random(3)
    for path in (folder / f"cache_00000000_00000004{kind}", folder / "cache_index.csv", folder / "cache_info.csv"):
        if not path.exists():
            continue
        whole = path.read_bytes()
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(rng.choice((1, 1, 4))):
                data[rng.randrange(min(len(data), 3000))] = rng.randrange(256)
            path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
            try:
                read_all(folder)
            except nn.Error:
                pass
        path.write_bytes(whole)


def npy(header: str) -> bytes:
    body = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(body)) + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY\1\0",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (100000000000,)}"),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + pickle.dumps([print]),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") + bytes(4),
        npy("(" * 100),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + "(" * 50 + ")" * 50 + "}"),
        npy("{'descr': '<U1000000000', 'fortran_order': False, 'shape': (1,)}"),
        npy("3"),
    ],
)
def test_files_that_lie(data, tmp_path):
    folder = copy_of("cache_npy_create", tmp_path)
    (folder / "cache_00000000_00000004.npy").write_bytes(data)
    with pytest.raises(ValueError, match="cannot read an array") as e:
        read_all(folder)
    assert isinstance(e.value, nn.Error)


def test_tables_that_lie(tmp_path):
    folder = copy_of("cache_npy_create", tmp_path)
    for text, kind in (
        ("cache_00000000_00000004.npy,6\n", ValueError),
        ("cache_00000000_00000004.npy,-1\n", ValueError),
        ("cache_00000000_00000004.npy,99999999999999999999\n", ValueError),
        ("cache_00000000_00000004.npy\n", ValueError),
        ("none.npy,5\n", FileNotFoundError),
        ("", ValueError),
    ):
        (folder / "cache_index.csv").write_text(text)
        with pytest.raises(kind) as e:
            read_all(folder)
        assert isinstance(e.value, nn.Error)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="cache_index.csv"):
        read_all(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_all(tmp_path / "nowhere")


def test_h5_files_without_an_index(tmp_path):
    h5py = pytest.importorskip("h5py")
    folder = copy_of("cache_h5_source", tmp_path)
    (folder / "cache_index.csv").unlink()
    with data_iterator_cache(str(folder), 8) as di:
        assert di.next()[1].reshape(-1).tolist() == list(range(8))
    with h5py.File(folder / "more.h5", "w") as f:
        f["x"] = np.zeros(3)
    with pytest.raises(ValueError, match="more.h5"):
        read_all(folder)
    with h5py.File(folder / "more.h5", "w") as f:
        f["x"], f["y"] = np.zeros((3, 3)), np.zeros((2, 1))
        f.create_group("z")
    with pytest.raises(ValueError, match="more.h5"):
        read_all(folder)


@pytest.mark.parametrize("kind", ["npy", "h5"])
def test_an_index_that_claims_more_samples_than_bytes(kind, tmp_path):
    """Memory for their order is not taken."""
    if kind == "h5":
        pytest.importorskip("h5py")
    folder = copy_of(f"cache_{kind}_source", tmp_path)
    index = folder / "cache_index.csv"
    first, *others = index.read_text().splitlines()
    for count in (10**8, 10**11):
        index.write_text("\n".join([f"{first.split(',')[0]},{count}", *others]))
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=r"samples at most, by its size, got 10+"):
                data_iterator_cache(str(folder), 8)
            assert tracemalloc.get_traced_memory()[1] < 1 << 22
        finally:
            tracemalloc.stop()


# --- reading in advance -----------------------------------------------------------------------------------------------


def test_files_are_read_in_advance():
    folder = HERE / "golden" / "cache_npy_create"
    first, second = (str(folder / name) for name in ("cache_00000000_00000004.npy", "cache_00000005_00000007.npy"))
    reader = CacheReaderWithPrefetch(str(folder), 2, ["x", "y", "z"])
    assert len(reader.open_and_prefetch_cache(first, [second])["x"]) == 5
    assert [p.file_name for p in reader._cache_prefetchers] == [second, None]
    assert len(reader.open_and_prefetch_cache(second, [])["y"]) == 3
    reader.close()
    reader.close()


def test_an_error_in_advance_comes_when_the_file_is_asked_for():
    prefetcher = CachePrefetcher("", ["x"])
    prefetcher.request("nothing.npy")
    assert not prefetcher.check_if_hit("other.npy") and prefetcher.check_if_hit("nothing.npy")
    with pytest.raises(FileNotFoundError):
        prefetcher.read()
    assert prefetcher.read() is None
    prefetcher.close()


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most, loads", [("1000000", 12), ("100", 37)])
def test_samples_are_loaded_once_if_they_fit(most, loads):
    config.nnabla_config.set("DATA_ITERATOR", "data_source_buffer_max_size", most)
    seen: list[int] = []
    lock = threading.Lock()

    def load(n):
        with lock:
            seen.append(int(n))
        return scenarios.load(n)

    with data_iterator_simple(load, 12, 4, shuffle=True, with_memory_cache=True, use_thread=False) as di:
        seen.clear()
        for _ in range(9):
            di.next()
    assert len(seen) in (loads, loads - 1)


def test_a_memory_cache_is_filled_before_its_source_is_shuffled_again():
    source = DataSourceWithMemoryCache(scenarios.custom_source(30, True, 1), shuffle=True)
    first = source._batch(0, 5)[1].tolist()
    source._position = 5
    source.reset()
    assert source._batch(0, 5)[1].tolist() == first
    assert sorted(source._batch(0, 30)[1].tolist()) == list(range(30))


def test_progress_of_a_cache_is_told(monkeypatch):
    seen: list[Any] = []
    monkeypatch.setattr(_cache_files, "progress", lambda state, part=0.0: seen.append((state, part)))
    with data_iterator_simple(scenarios.load, 12, 4, with_file_cache=True):
        pass
    assert seen[0] == ("Create cache", 0.0) and seen[-2:] == [("Create cache", 1.0), (None, 0.0)]
