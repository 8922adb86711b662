"""The clients of examples/program hold the conversation of fake_task.py. Each skips where its compiler is missing."""
import pathlib
import shutil
import subprocess

import pytest

import fake_task

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "program"
BUILDS = {
    "cc": ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-o", "OUT", "quadratic.c"],
    "c++": ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-O2", "-o", "OUT", "-x", "c++", "quadratic.c"],
    "go": ["go", "build", "-C", "go", "-o", "OUT"],
    "rustc": ["rustc", "--edition", "2021", "-O", "-o", "OUT", "rust/quadratic.rs"],
}


@pytest.mark.parametrize("compiler", sorted(BUILDS))
def test_client(compiler, tmp_path, capsys):
    if shutil.which(compiler) is None:
        pytest.skip("%s is missing" % compiler)
    out = str(tmp_path / "quadratic")
    subprocess.run([out if word == "OUT" else word for word in BUILDS[compiler]], cwd=str(FOLDER), check=True, timeout=300)
    fake_task.conversation([out], steps=40, slots=1, timeout=60)
    fake_task.conversation([out], steps=10, slots=3, timeout=60)
    assert "loss 10.1405 to 0.0" in capsys.readouterr().out


def test_clients_are_short():
    for name in ("disttf_program.h", "go/disttf.go", "rust/disttf.rs"):
        assert len((FOLDER / name).read_text().splitlines()) <= 150, name
