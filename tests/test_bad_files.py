"""Parameter files that are missing, truncated, of another kind, made by an attacker; parameters of another shape."""

from __future__ import annotations

import dis
import io
import os
import pickle
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
from nnrs.utils.load import load
from nnrs.utils.nnp_graph import NnpLoader

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


class Late(Exception):
    """What a signal handler of the user's raises."""


# After these CPython looks for signals.
PLACES = ("RESUME", "CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def raising_at(at, error):
    """A trace function that raises at one of the places in nnrs where a signal handler may; counts them."""
    last = {}

    def trace(frame, event, arg):
        if not frame.f_globals.get("__name__", "").startswith("nnrs"):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            trace.seen += last.get(frame, "").startswith(PLACES)
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if trace.seen == at:
                sys.settrace(None)
                last.clear()
                raise error
        return trace

    trace.seen = 0
    return trace


READERS = {
    "a.h5": nn.load_parameters,
    "a.nnp": nn.load_parameters,
    "a.safetensors": nn.load_parameters,
    "a.nntxt": NnpLoader,
    "a.protobuf": load,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", [Late, TimeoutError])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file between `open` and `with`
def test_what_a_signal_handler_raises_is_no_fault_of_the_file(folder, parameters, name, kind):
    path, before = folder / name, sys.gettrace()
    nn.save_parameters(path)
    at, is_over = 0, False
    while not is_over:
        at += 1
        trace = raising_at(at, kind("late"))
        sys.settrace(trace)
        try:
            READERS[name](path)
        except kind as error:
            assert str(error) == "late"
        finally:
            sys.settrace(before)
        is_over = trace.seen < at
    assert at > 20


def test_what_a_file_of_the_users_raises_comes_through(parameters):
    class File(io.BytesIO):
        def read(self, *args):
            raise Late("the line is dead")

    for read in (nn.load_parameters, load):
        with pytest.raises(Late, match="dead"):
            read(File(b"abc"), extension=".protobuf")
