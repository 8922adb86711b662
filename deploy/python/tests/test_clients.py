"""The clients of examples/program hold the conversation of fake_task.py. Each skips where its compiler is missing, that in
JavaScript where .ci/tools has not made build/tools/node: with DISTTF_REQUIRE_ENGINES=1 that is a failure."""
import os
import pathlib
import shutil
import subprocess

import pytest

import fake_task

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "program"
NODE = ROOT / "build" / "tools" / "node"
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
    check([out], capsys)


def test_client_in_javascript(tmp_path, capsys):
    if not (NODE / "whole").exists():
        missing = pytest.fail if os.environ.get("DISTTF_REQUIRE_ENGINES") == "1" else pytest.skip
        missing("build/tools/node is missing (.ci/tools node makes it)")
    for name in ("disttf.mjs", "quadratic.mjs"):
        shutil.copy(str(FOLDER / "javascript" / name), str(tmp_path))
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    check([str(NODE / "node"), str(tmp_path / "quadratic.mjs")], capsys)


def check(command, capsys):
    fake_task.conversation(command, steps=40, slots=1, timeout=60)
    fake_task.conversation(command, steps=10, slots=3, timeout=60)
    assert "loss 10.1405 to 0.0" in capsys.readouterr().out


def test_clients_are_short():
    for name in ("disttf_program.h", "go/disttf.go", "rust/disttf.rs", "javascript/disttf.mjs"):
        assert len((FOLDER / name).read_text().splitlines()) <= 150, name
