"""The command line: statuses, errors, listings, plots, parameters as text, conversions, `run` and `doctor`.

golden/cli has a network with data, and what NNabla's commands made of it (golden/make_cli.py).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nnrs as nn
from nnrs.utils import callback
from nnrs.utils.cli import cli, doctor, func_info, utility
from nnrs.utils.cli.run import run_script

GOLDEN = Path(__file__).parent / "golden" / "cli"
NETWORK = str(GOLDEN / "network.nnp")
# NNabla's, and those that only nnrs has.
NNABLA = """
compare_with_cpu conv_dataset convert create_image_classification_dataset create_object_detection_dataset create_tar
decode_param draw_graph dump encode_param forward function_info infer nnb_template optimize plot_series plot_timer
profile train upload version
""".split()
OURS = ["compare_params", "create_cache", "doctor", "run"]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command; gives status, stdout and stderr."""

    def call(*args: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(a) for a in args])
        return (status, *capsys.readouterr())

    return call


def program(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nnrs", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=60)


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = cli.make_parser()
    found = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def test_all_commands_are_there_with_help() -> None:
    assert sorted(commands()) == sorted(NNABLA + OURS)
    for name, parser in commands().items():
        assert parser.description and name in parser.format_help()
        arguments = [a for a in parser._actions if a.dest != "help" and name != "nnb_template"]
        assert all(a.help or name in ("optimize", "upload") for a in arguments), name


@pytest.mark.parametrize("name", NNABLA + OURS)
def test_help_ends_well(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main([name, "--help"])
    assert end.value.code == 0 and capsys.readouterr().out.startswith(f"usage: nnrs {name}")


def test_version(run: Run) -> None:
    assert run("version") == (0, f"Version:{nn.__version__}\n", "")


def test_no_command_and_wrong_ones(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run()
    assert status == 2 and not out and "commands:" in err
    with pytest.raises(SystemExit) as end:
        cli.main(["no_such"])
    assert end.value.code == 2 and "no_such" in capsys.readouterr().err


def test_an_error_is_a_line_on_stderr(run: Run, tmp_path: Path) -> None:
    status, out, err = run("dump", tmp_path / "none.nnp")
    assert (status, out) == (1, "")
    assert err.startswith("nnrs dump: ") and "there is no file" in err and "Traceback" not in err
    with pytest.raises(nn.Error):
        cli.main(["--traceback", "dump", str(tmp_path / "none.nnp")])


def test_several_processes_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert run("--mpi", "version")[0] == 0
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    status, out, err = run("--mpi", "version")
    assert (status, out) == (1, "") and "argument 'mpi': expected one process, got 2" in err


def test_ctrl_c_is_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped() -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(func_info, "function_names", stopped)
    status, _, err = run("function_info")
    assert status == 130 and err == "nnrs function_info: stopped\n"


def test_a_reader_that_goes_is_no_traceback() -> None:
    script = f"{sys.executable} -m nnrs function_info | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout and "Traceback" not in done.stderr


def test_a_callback_may_do_a_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = SimpleNamespace(alternative_cli=lambda args: True if args.command == "dump" else None)
    monkeypatch.setattr(callback, "callback_list", [other])
    assert run("dump", "none.nnp") == (0, "", "")
    assert run("version")[0] == 0


def test_unsupported_commands_say_why(run: Run) -> None:
    for args in (("upload", "t", "f"), ("optimize", "a", "b"), ("nnb_template", "a"), ("function_info", "-f", "ONNX")):
        status, out, err = run(*args)
        assert status == 1 and not out and "hint" in err, args
    assert run("function_info", "--api", 1)[0] == 1


# --- listings ---------------------------------------------------------------------------------------------------------


def test_function_info(run: Run, tmp_path: Path) -> None:
    assert run("function_info")[1].splitlines() == sorted(func_info.function_names())
    used = ["Affine", "BatchNormalization", "Mean", "ReLU", "Softmax", "SoftmaxCrossEntropy", "TopNError"]
    assert run("function_info", NETWORK)[1].split() == used
    (tmp_path / "few.txt").write_text("ReLU\nConvolution: [ALL]\n- no\n")
    assert run("function_info", "-c", tmp_path / "few.txt", NETWORK)[1] == "ReLU\n"
    target = tmp_path / "list.yaml"
    assert run("function_info", NETWORK, "-x", "Mean", "-o", target)[0] == 0
    assert target.read_text() == "".join(f"{name}: [ALL]\n" for name in used if name != "Mean")
    assert "pad=None: Zeros" in run("function_info", "-q", "Convolution")[1]
    assert run("function_info", "-q", "NoSuch")[0] == 1
    assert "hint: is it Convolution or " in run("function_info", "Convolutoin")[2]


def test_function_info_of_functions_that_are_graphs(run: Run) -> None:
    names = {"Einsum", "FusedBatchNormalization", "FusedConvolution", "SyncBatchNormalization"}
    assert names <= set(run("function_info")[1].splitlines())
    said = run("function_info", "FusedConvolution")[1].splitlines()
    assert said[0].startswith("FusedConvolution: nnrs.functions.fused_convolution(x, weight, bias, beta, gamma, mean, ")
    assert "nonlinearity='relu', nonlinearity_args=[], pad_mode='constant', constant_value=0)" in said[0]
    assert [line.split(":")[0].split("=")[0].strip() for line in said[3:6]] == ["x", "weight", "bias"]
    assert "  z: What is added before the activation, of y's shape." in said
    assert run("function_info", "einsum")[1].startswith("Einsum: nnrs.functions.einsum(x, equation='')\nEinstein's")
    assert "  comm: Communicator: an object with" in run("function_info", "SyncBatchNormalization")[1]


def test_dump_is_nnablas(run: Run) -> None:
    assert run("dump", NETWORK)[1] == (GOLDEN / "dump.txt").read_text()


def test_dump_options(run: Run) -> None:
    lines = run("dump", "-F", "--dump-limit", 1, NETWORK)[1].splitlines()
    assert lines[4] == "  Optimizer[0]:   Function[  0  ]: Type: Affine               Name: @Main/Affine"
    assert len(lines) == len((GOLDEN / "dump.txt").read_text().splitlines()) + 3
    inputs = run("dump", "-F", "-V", "-E", 0, NETWORK)[1]
    assert "  Executor [0]:   Function[  0  ]:   Input1: Name: a1/affine/W          Shape: [6, 16]\n" in inputs
    assert "Optimizer" not in inputs
    assert run("dump", "-n", "loss", NETWORK)[1] == "Variable Name: loss                 Shape: [] in Main\n"
    assert run("dump", "-n", "none", NETWORK)[0] == run("dump", "-E", 1, NETWORK)[0] == 1
    assert run("dump", "model.onnx")[0] == run("dump", "-I", "ONNX", NETWORK)[0] == 1


def test_draw_graph(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("draw_graph", "-f", "svg", "-o", tmp_path / "a", "-n", "Run", NETWORK)
    assert status == 0 and Path(out.strip()) == tmp_path / "a" / "Run.svg"
    assert "Softmax" in (tmp_path / "a" / "Run.svg").read_text()
    assert run("draw_graph", "-f", "svg", "-o", tmp_path / "b", NETWORK)[0] == 0
    assert sorted(os.listdir(tmp_path / "b")) == ["Main.svg", "Run.svg", "Valid.svg"]
    status, _, err = run("draw_graph", "-f", "svg", "-o", tmp_path / "c", "-n", "none", NETWORK)
    assert status == 1 and "'Main', 'Valid', 'Run'" in err and not (tmp_path / "c").exists()


# --- parameters and networks ------------------------------------------------------------------------------------------


def test_parameters_as_text_are_nnablas(run: Run, tmp_path: Path) -> None:
    assert run("decode_param", "-p", NETWORK, "-o", tmp_path / "d")[0] == 0
    golden = {p.name: p.read_text() for p in (GOLDEN / "decoded").iterdir()}
    assert {p.name: p.read_text() for p in (tmp_path / "d").iterdir()} == golden
    assert run("encode_param", "-i", GOLDEN / "decoded", "-p", tmp_path / "p.h5")[0] == 0
    assert run("compare_params", NETWORK, tmp_path / "p.h5")[0] == 0
    assert not nn.get_parameters(grad_only=False)


def test_names_of_parameters_come_back(run: Run, tmp_path: Path) -> None:
    names = ["a~b/w", "ä b/w%", "c"]
    with nn.parameter_scope("", {}):
        for i, name in enumerate(names):
            nn.parameter.get_parameter_or_create(name, (2,), np.float32([i, np.inf]))
        nn.save_parameters(str(tmp_path / "p.h5"))
    assert run("decode_param", "-p", tmp_path / "p.h5", "-o", tmp_path / "d")[0] == 0
    assert run("encode_param", "-i", tmp_path / "d", "-p", tmp_path / "q.h5")[0] == 0
    status, out, _ = run("compare_params", tmp_path / "p.h5", tmp_path / "q.h5")
    assert status == 0 and sorted(line.rpartition(":")[0] for line in out.splitlines()) == sorted(names)


@pytest.mark.parametrize(
    "text", ["", "(2,)\n1\n", "(2,)\n1\nx", "(-1,)\n1\n2", "[2]\n1\n2", "2\n1", "(" * 200, "(2,)\nä\n"]
)
def test_texts_that_are_no_parameters(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "w.txt").write_text(text)
    status, _, err = run("encode_param", "-i", tmp_path / "d", "-p", tmp_path / "p.h5")
    assert status == 1 and "w.txt" in err and not (tmp_path / "p.h5").exists()


def test_compare_params(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("compare_params", NETWORK, GOLDEN / "trained.nnp")
    assert status == 1 and len(out.splitlines()) == 8
    assert run("compare_params", NETWORK, GOLDEN / "trained.nnp", "-t", 100)[0] == 0
    with nn.parameter_scope("", {}):
        nn.parameter.get_parameter_or_create("a1/affine/b", (2,))
        nn.save_parameters(str(tmp_path / "p.h5"))
    status, out, _ = run("compare_params", tmp_path / "p.h5", NETWORK)
    assert status == 1 and "shapes (2,) and (16,)" in out and "only in the second file" in out


@pytest.mark.parametrize("kind", [".nnp", ".nntxt", ".protobuf"])
def test_convert(run: Run, tmp_path: Path, kind: str) -> None:
    target = tmp_path / f"n{kind}"
    assert run("convert", NETWORK, target)[0] == 0
    assert run("dump", "-F", target)[1] == run("dump", "-F", NETWORK)[1]
    assert run("compare_params", NETWORK, target)[0] == 0
    assert run("convert", "-E", 0, "-b", 3, "--nnp-exclude-parameter", NETWORK, target)[0] == 0
    proto = nn.load_parameters(str(target))
    assert [(n.name, n.batch_size) for n in proto.network] == [("Run", 3)] and not proto.optimizer
    assert run("compare_params", target, NETWORK)[1].startswith("a1/affine/W: only in the second")


def test_convert_says_what_it_cannot(run: Run, tmp_path: Path) -> None:
    for args in ((NETWORK,), (NETWORK, "a.onnx"), (NETWORK, "a.xyz"), ("a.pb", "a.nnp"), ("-O", "CSRC", NETWORK, "a")):
        assert run("convert", *args)[0] == 1, args
    assert run("convert", "-S", "1-2", NETWORK, tmp_path / "a.nnp")[0] == 1
    assert not list(tmp_path.iterdir())


# --- run --------------------------------------------------------------------------------------------------------------


def test_run_is_as_python_would(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("value = 5\n")
    (tmp_path / "s.py").write_text(
        "import pickle, sys, helper\n"
        "import nnabla as nn, nnabla_ext.cpu\nfrom nnabla.utils.save import save\n"
        "class A: pass\n"
        "assert type(pickle.loads(pickle.dumps(A()))) is A and sys.modules['__main__'].A is A\n"
        "print(sys.argv, sys.path[0], __name__, __file__, __spec__, nn.__name__, helper.value)\n"
        "sys.exit(7)\n"
    )
    done = program("run", "s.py", "--epochs", 3, "-h", cwd=tmp_path)
    folder = os.path.realpath(tmp_path)
    assert done.stdout == f"['s.py', '--epochs', '3', '-h'] {folder} __main__ {folder}/s.py None nnrs 5\n", done.stderr
    assert done.returncode == 7
    module = program("run", "-m", "s", "x", cwd=tmp_path)
    assert module.returncode == 7 and module.stdout.startswith("['") and "'x']" in module.stdout
    theirs = program("run", "-m", "nnabla.utils.cli.cli", "version")
    assert (theirs.returncode, theirs.stderr) == (0, "") and theirs.stdout.startswith("Version:")
    child = (
        "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-m', 'nnabla.utils.cli.cli', 'version']))"
    )
    theirs = program("run", "-c", child)
    assert theirs.returncode == 0 and theirs.stdout.startswith("Version:"), theirs.stderr


def test_the_file_of_a_script_is_absolute(tmp_path: Path) -> None:
    """As Python's own: also behind a link, and where the script has left its folder."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    text = "import os, sys\nos.chdir('/')\nprint(__file__, os.path.exists(sys.modules['__main__'].__file__))\n1 / 0\n"
    (tmp_path / "a" / "s.py").write_text(text)
    for path in ("a/s.py", "link/../s.py", str(tmp_path / "a" / "s.py")):
        theirs = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
        done = program("run", path, cwd=tmp_path)
        assert (done.stdout, done.stderr) == (theirs.stdout, theirs.stderr) and "True" in done.stdout


@pytest.mark.parametrize("path", ["d", "./d", "a.zip", "z", "link/../a.zip"])
def test_a_folder_or_archive_is_run_as_python_would(tmp_path: Path, path: str) -> None:
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "d")
    (tmp_path / "d" / "helper.py").write_text("value = 5\n")
    text = "import os, sys\nos.chdir('/')\nimport helper\nf = 1\n"
    text += "print(sys.argv, sys.path[0], __file__, __spec__.name, repr(__package__), sys.modules['__main__'].f)\n"
    text += "print(sys.path[1:], helper.value)\n1 / 0\n"
    (tmp_path / "d" / "__main__.py").write_text(text)
    for name in ("a.zip", "z"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for file in ("__main__.py", "helper.py"):
                archive.write(tmp_path / "d" / file, file)
    done, folder = program("run", path, "x", cwd=tmp_path), f"{os.path.realpath(tmp_path)}/{path}"
    first, rest = done.stdout.splitlines()
    assert first == f"[{path!r}, 'x'] {folder} {folder}/__main__.py __main__ '' 1", done.stderr
    assert os.path.dirname(sys.executable) not in rest and rest.endswith("] 5")
    lines = done.stderr.splitlines()
    assert lines[1].endswith(f'"{folder}/__main__.py", line 7, in <module>') and "cli" not in done.stderr


def test_errors_of_a_script_begin_in_the_script(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import nnabla as nn\n\nnn.Variable((2, 3)).d = [1, 2]\n")
    for args in (("s.py",), ("-m", "s")):
        done = program("run", *args, cwd=tmp_path)
        lines = done.stderr.splitlines()
        assert done.returncode == 1 and lines[0].startswith("Traceback") and "line 3" in lines[1], done.stderr
        assert "nnrs/utils/cli" not in done.stderr
    (tmp_path / "s.py").write_text("x = (\n")
    done = program("run", "s.py", cwd=tmp_path)
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "cli" not in done.stderr


def test_processes_that_a_script_starts_run_on_nnrs(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        "import nnabla as nn\n"
        "def name(_): return nn.__name__\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(name, [0]))\n"
        "    code = 'import nnabla_ext.cpu, nnabla.functions as F, nnabla; print(F.__name__, nnabla_ext.__name__)'\n"
        "    print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout)\n"
    )
    done = program("run", "s.py", cwd=tmp_path)
    assert done.stdout == "['nnrs']\nnnrs.functions nnrs.ext\n\n", done.stderr


def test_what_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no script"):
        run_script(str(tmp_path / "none.py"), [])
    with pytest.raises(IsADirectoryError, match="__main__"):
        run_script(str(tmp_path), [])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("helper.py", "")
    with pytest.raises(ValueError, match="a.zip: expected a script, got a zip file without a __main__.py"):
        run_script(str(tmp_path / "a.zip"), [])
    with pytest.raises(FileNotFoundError, match="there is no script ''"):
        run_script("", [])
    missing = [sys.executable, "-m", "nnrs", "run", str(tmp_path / "none.py")]
    assert subprocess.run(missing, stderr=subprocess.DEVNULL).returncode == 2  # as Python
    (tmp_path / "b.py").write_bytes(b"x = 1\0")
    with pytest.raises(ValueError, match="zero bytes"):
        run_script(str(tmp_path / "b.py"), [])
    done = program("run", "-m", "no_such_module")
    assert done.returncode == 1 and done.stderr == "nnrs run: there is no module 'no_such_module'\n"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", list(sys.argv))


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNRS_TEST_SETTING", "7")
    status, out, _ = run("doctor")
    assert status == 0
    for text in (
        f"nnrs {nn.__version__}",
        f"threads: {nn.get_num_threads()}",
        "SIMD: ",
        "GPU",
        "h5py",
        "NNRS_TEST_SETTING=7",
    ):
        assert text in out
    assert "nnabla.conf: not there" in out


def test_doctor_knows_simd(monkeypatch: pytest.MonkeyPatch) -> None:
    least, most = "avx2 fma f16c", "avx2 fma f16c avx512f avx512bw avx512dq avx512vl"
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    monkeypatch.delenv("NNRS_SIMD", raising=False)
    for flags, chosen in (("sse", "portable"), (least, "AVX2"), (most, "AVX-512"), ("", "what the CPU has")):
        monkeypatch.setattr(doctor, "_cpu_info", lambda key, flags=flags: flags)
        assert doctor.simd().startswith(chosen)
    monkeypatch.setattr(doctor, "_cpu_info", lambda key: most)
    monkeypatch.setenv("NNRS_SIMD", "avx2")
    assert doctor.simd() == "AVX2 (NNRS_SIMD=avx2)"


def test_doctor_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor._package("nothing", "viz", "no_such_package_here").endswith("(pip install nnrs[viz])")
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    for line in doctor._PACKAGES:
        name, extra, _ = line.split(":")
        assert not extra or f"\n{extra} = [" in text, name


def test_numbers_with_units() -> None:
    for text, number in (("12", 12), ("4K", 4000), ("4k", 4096), ("1.5M", 1500000), ("2e8", 256), ("1p", 1024**5)):
        assert utility.str_to_num(text) == number
    for text in ("", "0", "-1", "4x", "1e", "9e9999", "1.5", "K"):
        assert utility.str_to_num(text) == -1


def test_code_of_the_command_line_and_of_the_standard_input(tmp_path: Path) -> None:
    code = "import sys, nnabla; print(nnabla.__name__, sys.argv, __name__)"
    done = program("run", "-c", code, "a", "-b", cwd=tmp_path)
    assert done.stdout == "nnrs ['-c', 'a', '-b'] __main__\n", done.stderr
    call = [sys.executable, "-m", "nnrs", "run", "-", "a"]
    done = subprocess.run(call, input=code, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "nnrs ['-', 'a'] __main__\n", done.stderr


def test_function_info_of_a_name() -> None:
    named = program("function_info", "ReLU")
    assert named.returncode == 0 and named.stdout == program("function_info", "-q", "ReLU").stdout != ""
