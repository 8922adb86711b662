"""Starts programs under FakeTask. Programs are written as text, since each is a process of its own."""
import atexit
import faulthandler
import os
import pathlib
import runpy
import socket
import subprocess
import sys
import tempfile
import textwrap

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

from fake_task import FakeTask  # noqa: E402


@pytest.fixture
def program(tmp_path):
    """program(text, name="train.py", **options) -> FakeTask of that program."""
    tasks = []

    def start(text, name="train.py", arguments=(), **options):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        env = dict({"PYTHONPATH": str(HERE.parent), "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
                   **options.pop("env", {}))
        task = FakeTask([sys.executable, str(path), *arguments], env=env, **options)
        tasks.append(task)
        return task

    yield start
    for task in tasks:
        task.close()


class Forked:
    """A program that is a fork of this process, which has imported the framework; has the methods of Popen that FakeTask
    uses. Importing PyTorch takes seconds."""

    def __init__(self, path, fd, env):
        self.files = [tempfile.TemporaryFile() for _ in range(2)]
        self.returncode = None
        self.pid = os.fork()
        if self.pid == 0:
            self._run(path, fd, env)

    def _run(self, path, fd, env):
        code = 1
        try:
            for number, file in enumerate(self.files, 1):
                os.dup2(file.fileno(), number)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", 1) for number in (1, 2))
            os.environ.update(env, DISTTF_PROGRAM_FD=str(fd))
            for name in [name for name in sys.modules if name.split(".")[0] == "disttf"]:
                del sys.modules[name]
            sys.excepthook, sys.argv = sys.__excepthook__, [path]
            atexit._clear()
            faulthandler.disable()  # pytest's
            try:
                runpy.run_path(path, run_name="__main__")
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            atexit._run_exitfuncs()
            sys.stdout.flush()
        finally:
            os._exit(code)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._ended(pid, status)
        return self.returncode

    def _ended(self, pid, status):
        if pid:
            self.returncode = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)

    def communicate(self, timeout=None):
        if self.returncode is None:
            self._ended(*os.waitpid(self.pid, 0))
        for file in self.files:
            file.seek(0)
        return tuple(file.read() for file in self.files)

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, 9)


class ForkedTask(FakeTask):
    def _start(self, command, env):
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.settimeout(self.timeout)
        with its:
            its.set_inheritable(True)
            process = Forked(command[0], its.fileno(), env or {})
        return process, mine


@pytest.fixture
def forked(tmp_path):
    """Like `program`, but the program is a fork of this process."""
    tasks = []

    def start(text, name="train.py", **options):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        tasks.append(ForkedTask([str(path)], **options))
        return tasks[-1]

    yield start
    for task in tasks:
        task.close()


@pytest.fixture
def alone(tmp_path):
    """alone(text, *arguments) -> the finished process of a program that disttf did not start."""

    def start(text, *arguments, **env):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return subprocess.run([sys.executable, str(path), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=120,
                              env=dict({"PYTHONPATH": str(HERE.parent), "PATH": "/usr/bin:/bin"}, **env))

    return start
