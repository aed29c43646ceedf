"""Parameter files that are missing, truncated, of another kind, made by an attacker; parameters of another shape."""

from __future__ import annotations

import concurrent.futures  # noqa: F401 - for FAILURES
import errno
import gzip
import http.client
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers as S
from nnrs.utils.load import load
from nnrs.utils.nnp_graph import NnpLoader
from signal_helpers import Late, on_a_thread, raising_at

pytestmark = pytest.mark.usefixtures("still_works")


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as d:
        yield Path(d)


@pytest.fixture
def parameters():
    nn.clear_parameters()
    with nn.parameter_scope("a"):
        w = nn.parameter.get_parameter_or_create("w", (2, 3), np.arange(6).reshape(2, 3))
    values = w.d.copy()
    del w
    yield
    assert np.array_equal(nn.get_parameters(grad_only=False)["a/w"].d, values), "the parameters are as before"
    nn.clear_parameters()


def suffixes() -> list[str]:
    try:
        import h5py  # noqa: F401
    except ImportError:
        return [".safetensors"]
    return [".h5", ".safetensors"]


@pytest.mark.parametrize("suffix", suffixes())
def test_a_missing_file(suffix, folder, parameters):
    with pytest.raises(FileNotFoundError) as e:
        nn.load_parameters(str(folder / ("none" + suffix)))
    assert isinstance(e.value, nn.Error) and "none" + suffix in str(e.value)


@pytest.mark.parametrize("suffix", suffixes())
def test_truncated_and_foreign_files(suffix, folder, parameters):
    path = folder / ("p" + suffix)
    nn.save_parameters(str(path))
    whole = path.read_bytes()
    for content in [whole[: len(whole) * k // 8] for k in range(8)] + [
        b"\x89PNG\r\n" * 100,
        b"{}",
        os.urandom(500),
        b"\0" * 4096,
    ]:
        path.write_bytes(content)
        with pytest.raises((ValueError, OSError)) as e:
            nn.load_parameters(str(path))
        assert isinstance(e.value, nn.Error) and "p" + suffix in str(e.value)
    path.write_bytes(whole)
    nn.load_parameters(str(path))


@pytest.mark.parametrize(
    "header",
    [
        b'{"a/w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,2400000000]}}',
        b'{"a/w":{"dtype":"F32","shape":[2,3],"data_offsets":[24,0]}}',
        b'{"a/w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,24]}}',
        b'{"a/w":{"dtype":"F32","shape":[-2,-3],"data_offsets":[0,24]}}',
        b'{"a/w":{"dtype":"EVIL","shape":[2,3],"data_offsets":[0,24]}}',
        b'{"a/w":{"dtype":"F32","shape":"23","data_offsets":[0,24]}}',
        b'{"a/w":{"dtype":"F32","shape":[2,3]}}',
        b'{"a/w":[1,2]}',
        b"[" * 100_000,
        b'{"a/w":',
        b"\xff\xfe\xfd",
    ],
    ids=range(11),
)
def test_safetensors_made_by_an_attacker(header, folder, parameters):
    path = folder / "p.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 24)
    with pytest.raises((ValueError, OSError)) as e:
        nn.load_parameters(str(path))
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("length", [0, 1, 2**62, 2**64 - 1])
def test_a_safetensors_header_of_a_wrong_length(length, folder, parameters):
    path = folder / "p.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b"{}")
    with pytest.raises((ValueError, OSError)) as e:
        nn.load_parameters(str(path))
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("suffix", suffixes())
def test_parameters_of_another_shape(suffix, folder, parameters):
    path = folder / ("p" + suffix)
    nn.save_parameters(str(path))
    with nn.parameter_scope("a"), pytest.raises(ValueError) as e:
        nn.parameter.get_parameter_or_create("w", (3, 2))
    assert (
        isinstance(e.value, nn.Error)
        and "a/w" in str(e.value)
        and "(2, 3)" in str(e.value)
        and "(3, 2)" in str(e.value)
    )


def test_pickles_are_not_run(folder, parameters):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "evil"),))

    for suffix in suffixes():
        path = folder / ("p" + suffix)
        path.write_bytes(pickle.dumps(Evil()))
        with pytest.raises((ValueError, OSError)):
            nn.load_parameters(str(path))
    assert not (folder / "evil").exists()


@pytest.mark.parametrize("suffix", [".txt", "", ".pkl"])
def test_unknown_kinds_of_files(suffix, folder, parameters):
    path = folder / ("p" + suffix)
    with pytest.raises((ValueError, OSError)) as e:
        nn.save_parameters(str(path))
    assert isinstance(e.value, nn.Error) and not path.exists()
    path.write_bytes(b"x")
    with pytest.raises((ValueError, OSError)) as e:
        nn.load_parameters(str(path))
    assert isinstance(e.value, nn.Error)


@pytest.mark.parametrize("suffix", suffixes())
def test_saving_where_nothing_can_be_written(suffix, folder, parameters):
    with pytest.raises(OSError) as e:
        nn.save_parameters(str(folder / "no" / "such" / ("p" + suffix)))
    assert isinstance(e.value, nn.Error)
    (folder / ("d" + suffix)).mkdir()
    with pytest.raises(OSError):
        nn.save_parameters(str(folder / ("d" + suffix)))
    assert sorted(p.name for p in folder.iterdir()) == ["d" + suffix], "no half-written file is left"


def load_states(path):
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    solver.save_states(path)
    solver.load_states(path)


class Unbuffered(io.RawIOBase):
    """A file that takes a part at a time, until the disk is full."""

    def __init__(self, room):
        self.room, self.data = room, b""

    def write(self, data):
        taken = bytes(data[: min(100, self.room - len(self.data))])
        if not taken:
            raise OSError(errno.ENOSPC, "full")
        self.data += taken
        return len(taken)


def test_a_file_without_a_buffer_gets_all_or_raises(folder, parameters):
    nn.save_parameters(folder / "a.h5")
    whole = Unbuffered(1 << 20)
    whole.seek = lambda at: at
    nn.save_parameters(whole, extension=".h5")
    assert whole.data == (folder / "a.h5").read_bytes()
    with pytest.raises(OSError, match="full"):
        nn.save_parameters(Unbuffered(len(whole.data) - 1), extension=".h5")


def test_a_file_of_text_holds_no_bytes(parameters):
    for ext in (".h5", ".nnp", ".protobuf"):
        with pytest.raises(TypeError, match=f"argument 'path': expected a file open in binary mode for '{ext}'") as e:
            nn.save_parameters(io.StringIO(), extension=ext)
        assert isinstance(e.value, nn.Error)
    file = io.StringIO()
    nn.save_parameters(file, extension=".nntxt")
    assert "a/w" in file.getvalue()


READERS = {
    "a.h5": nn.load_parameters,
    "a.nnp": nn.load_parameters,
    "a.safetensors": nn.load_parameters,
    "a.nntxt": NnpLoader,
    "a.protobuf": load,
    "states.h5": load_states,
}


# One error for each kind of file, another one for the next; all in the long test.
RAISED = [
    pytest.param(name, kind, marks=[] if (i + k) % 4 == 0 else pytest.mark.long)
    for i, name in enumerate(READERS)
    for k, kind in enumerate([Late, TimeoutError, ValueError, TypeError])
]


@pytest.mark.parametrize(("name", "kind"), RAISED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file between `open` and `with`
@on_a_thread
def test_what_a_signal_handler_raises_is_no_fault_of_the_file(folder, parameters, name, kind):
    path, before = folder / name, sys.gettrace()
    nn.save_parameters(path)
    at, is_over = 0, False
    while not is_over:
        at += 1
        trace, came = raising_at(at, kind("late")), False
        sys.settrace(trace)
        try:
            READERS[name](path)
        except kind as error:
            came = type(error) is kind and str(error) == "late"
        finally:
            sys.settrace(before)
        is_over = trace.seen < at
        assert came != is_over
    assert at > 20


@pytest.mark.parametrize("name", ["a.h5", "a.safetensors", "a.protobuf", "a.nnp"])
@pytest.mark.parametrize("kind", [Late, TimeoutError, ValueError])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_signal_handler_raises_while_a_file_is_written(folder, parameters, name, kind):
    """It comes through as it is, and leaves the old file or the new one, and nothing beside it."""
    path, before = folder / name, sys.gettrace()
    nn.save_parameters(path)
    whole = path.read_bytes()
    at, is_over = 0, False
    while not is_over:
        at += 1
        trace = raising_at(at, kind("late"))
        sys.settrace(trace)
        try:
            nn.save_parameters(path)
        except kind as error:
            assert type(error) is kind and str(error) == "late"
        finally:
            sys.settrace(before)
        is_over = trace.seen < at
        assert os.listdir(folder) == [name] and path.read_bytes() == whole
    assert at > 20


FAILURES = {
    Late: "raise Late('dead')",
    TimeoutError: "concurrent.futures.Future().result(timeout=0.001)",
    subprocess.CalledProcessError: "subprocess.check_call([sys.executable, '-c', 'raise SystemExit(3)'])",
    json.JSONDecodeError: "json.loads('{')",
}


@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("method", ["read", "seek"])
def test_what_a_file_of_the_users_raises_comes_through(parameters, kind, method):
    """Also where the library that the file asks raises it."""
    file = type("File", (io.BytesIO,), {method: lambda self, *_: exec(FAILURES[kind], globals())})(b"abc")
    for read in (nn.load_parameters, load, NnpLoader):
        with pytest.raises(kind):
            read(file, extension=".nnp")


class Answer:
    """What a server sends, which breaks off."""

    def makefile(self, *_):
        return io.BytesIO(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc")


def answer():
    made = http.client.HTTPResponse(Answer())
    made.begin()
    return made


def closed():
    file = io.BytesIO(b"abc")
    file.close()
    return file


CUT = {
    EOFError: lambda: gzip.open(io.BytesIO(gzip.compress(bytes(99))[:20])),
    zlib.error: lambda: gzip.open(io.BytesIO(gzip.compress(b"")[:10] + b"\xff" * 50)),
    http.client.IncompleteRead: answer,
    UnicodeDecodeError: lambda: io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8"),
    ValueError: closed,
}


@pytest.mark.parametrize("kind", CUT)
def test_what_a_file_of_the_standard_library_raises_comes_through(parameters, kind):
    """As in NNabla 1.39."""
    for read in (nn.load_parameters, load, NnpLoader):
        with pytest.raises(kind) as e:
            read(CUT[kind](), extension=".h5")
        assert not isinstance(e.value, nn.Error)


def test_what_is_wrong_with_an_open_file_is_an_error_of_ours(parameters):
    for data in (None, 5):
        file = type("File", (), {"read": lambda self, data=data: data})()
        with pytest.raises(TypeError, match="argument 'filenames': expected a file whose read.. gives bytes, got") as e:
            load(file, extension=".protobuf")
        assert isinstance(e.value, nn.Error)
    wrong = "^load_parameters: argument 'path': cannot read the open file as '.safetensors': it has only 0 bytes"
    with pytest.raises(ValueError, match=wrong) as e:
        nn.load_parameters(io.BytesIO(b""), extension=".safetensors")
    assert str(e.value).count("load_parameters") == 1


class ReadAlone:
    """A file that can do nothing else, as one over a network."""

    def __init__(self, data, kind):
        self.read = lambda: kind(data)


def piped(path):
    end, start = os.pipe()
    with os.fdopen(start, "wb") as f:
        f.write(path.read_bytes())
    return os.fdopen(end, "rb")


@pytest.mark.parametrize("name", ["a.h5", "a.protobuf", "a.nntxt", "a.nnp"])
@pytest.mark.parametrize("opened", [piped, bytes, bytearray, memoryview])
def test_files_that_can_only_be_read(folder, parameters, name, opened):
    path = folder / name
    nn.save_parameters(path)
    for read in (nn.load_parameters, load, NnpLoader):
        nn.clear_parameters()
        file = piped(path) if opened is piped else ReadAlone(path.read_bytes(), opened)
        found = read(file, extension=path.suffix)
        with nn.parameter_scope("", getattr(found, "_params", None)):
            assert [v.d.tolist() for v in nn.get_parameters().values()] == [[[0, 1, 2], [3, 4, 5]]]
        getattr(file, "close", str)()
    nn.load_parameters(path)


def test_a_safetensors_file_that_can_only_be_read(folder, parameters):
    path = folder / "a.safetensors"
    nn.save_parameters(path)
    nn.clear_parameters()
    with piped(path) as file:
        nn.load_parameters(file, extension=".safetensors")
    assert [v.d.tolist() for v in nn.get_parameters().values()] == [[[0, 1, 2], [3, 4, 5]]]
