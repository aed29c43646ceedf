"""The command line: pictures of what monitors wrote, and files without what a command is for."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nnrs as nn
from nnrs.utils.cli import cli

NETWORK = str(Path(__file__).parent / "golden" / "cli" / "network.nnp")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives status, stdout and stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(a) for a in args])
        return (status, *capsys.readouterr())

    return call


def test_plots(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("0 1.5\n1 0.5\n")
    times = tmp_path / "times.txt"
    times.write_text("0 1.5 1 1.5\n1 0.5 1 2.0\n")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    out = tmp_path / "p.png"
    assert run("plot_series", *files, "-l", "first", "-x", "epochs", "-T", 2, "-o", out)[0] == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert run("plot_timer", times, "-e", "-u", "m", "-o", tmp_path / "t.svg")[0] == 0
    assert "Total elapsed time [minutes]" in (tmp_path / "t.svg").read_text()
    before = out.read_bytes()
    assert run("plot_series", tmp_path / "none.txt", "-o", out)[0] == 1 and out.read_bytes() == before
    assert run("plot_series", files[0], "-o", tmp_path / "p.xyz")[0] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt", "p.png", "t.svg", "times.txt"]


@pytest.mark.parametrize("command, right", [("plot_series", b"0 1\n"), ("plot_timer", b"0 1 1 1\n")])
def test_files_that_no_monitor_wrote_are_not_plotted(run: Run, command: str, right: bytes, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file, good, out = tmp_path / "f.txt", tmp_path / "good.txt", tmp_path / "p.png"
    good.write_bytes(right)
    for content, text in (
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"x,y\n1,2\n", "f.txt:1: expected"),
        (right + b"0\n", "f.txt:2: expected"),
        (right + b"0 1 2\n", "f.txt:2: expected"),
        (b"0 1 1 1\n" if command == "plot_series" else b"0 1\n", "f.txt:1: expected"),
        (b"\x89PNG\r\n\x1a\n", "is no file of Monitor"),
        (b"\0" * 40, "f.txt:1: expected"),
    ):
        file.write_bytes(content)
        status, _, err = run(command, good, file, "-o", out)
        assert status == 1 and text in err and not out.exists(), content
    assert run(command, good, "-o", out)[0] == 0


def test_files_without_what_a_command_is_for(run: Run, tmp_path: Path) -> None:
    empty, out = tmp_path / "empty.nntxt", tmp_path / "out"
    empty.touch()
    for args, text in (
        (("draw_graph", "-f", "svg", "-o", out, empty), "a file with a network"),
        (("decode_param", "-p", empty, "-o", out), "a file with parameters"),
        (("compare_params", empty, empty), "files with parameters"),
        (("dump", empty), "files with a network"),
        (("function_info", empty), "files with a network"),
        (("forward", "-c", empty, "-o", out), "a file with a network"),
    ):
        status, _, err = run(*args)
        assert status == 1 and text in err and not out.exists(), args
    (tmp_path / "text.nnp").write_text("hello")
    assert "text.nnp as '.nnp': " in run("dump", tmp_path / "text.nnp")[2]


def test_errors_name_the_command_and_its_own_arguments(run: Run, tmp_path: Path) -> None:
    numbers = tmp_path / "x.bin"
    numbers.write_bytes(b"\0" * 8)
    for args, text in (
        (
            ("infer", "-c", NETWORK, numbers),
            "nnrs infer: argument 'inputs': expected 6 numbers for shape (1, 6) of 'rx', got 2",
        ),
        (("forward", "-c", NETWORK, "-d", tmp_path / "none.csv", "-o", tmp_path), "nnrs forward: there is no file '"),
        (("compare_params", NETWORK, tmp_path / "none.h5"), "nnrs compare_params: argument 'second': there is no file"),
        (("train", "-c", tmp_path / "none.nnp", "-o", tmp_path), "nnrs train: argument 'config': there is no file"),
        (
            ("train", "-c", NETWORK[:-4] + ".csv", "-o", tmp_path),
            "nnrs train: argument 'config': expected a file of kind",
        ),
        (
            ("compare_with_cpu", "-c", NETWORK, "-c2", tmp_path / "none.nnp", "-o", tmp_path),
            "nnrs compare_with_cpu: argument 'config2': there is no file",
        ),
        (("convert", tmp_path / "none.nnp", tmp_path / "a.nnp"), "nnrs convert: argument 'files': there is no file"),
        (("draw_graph", tmp_path / "none.nnp"), "nnrs draw_graph: argument 'input': there is no file"),
        (
            ("decode_param", "-p", numbers, "-o", tmp_path),
            "nnrs decode_param: argument 'param': expected a file of kind",
        ),
        (("draw_graph", NETWORK, "-f", "zork", "-o", tmp_path), "nnrs draw_graph: argument 'format': "),
    ):
        status, _, err = run(*args)
        assert status == 1 and any(line.startswith(text) for line in err.splitlines()), err


@pytest.mark.parametrize("limit", ["nan", "-inf", "1e999"])
def test_limits_of_axes_are_finite(run: Run, limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.txt").write_text("0 1\n")
    with pytest.raises(SystemExit) as end:
        run("plot_series", tmp_path / "s.txt", f"-T={limit}", "-o", tmp_path / "s.png")
    assert end.value.code == 2 and f"expected a finite number, got {limit}" in capsys.readouterr().err


def test_a_folder_that_has_the_name_of_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("")
    nn.save_parameters(tmp_path / "p.h5", params={"a": nn.Variable((1,))})
    status, _, err = run("decode_param", "-p", tmp_path / "p.h5", "-o", tmp_path / "s")
    assert status == 1 and err.endswith(f"cannot make the folder '{tmp_path / 's'}': a file has that name\n")


def test_a_full_disk_ends_it_and_names_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "loss.series.txt").write_text("0 1\n1 2\n")
    done = subprocess.run(
        [sys.executable, "-m", "nnrs", "plot_series", "loss.series.txt", "-o", "a.png"],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "cannot write 'a.png': File too large" in done.stderr, done.stderr
    assert os.listdir(tmp_path) == ["loss.series.txt"]
