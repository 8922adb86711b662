"""A separate machine for a test: namespaces for mounts, network, processes and host name, and a control group for its
processes. All of it is removed when the test ends, however it ends.

The test's program first calls run_on_own_machine(), which starts the same program again inside, as process 1.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
# Settings that a kubelet would change for the whole machine. It reads these values instead, which suit it.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
FOLDER, CLEANER = "DISTTF_ENGINES_FOLDER", "--clean-up"
PR_SET_PDEATHSIG = 1


def group_name(folder):
    return pathlib.Path(folder).name


def group_folders(name):
    """Returns the folders of the control group, existing or not: version 1 has a tree for each controller."""
    for controller in CONTROL_GROUPS.iterdir():
        if (controller / "tasks").exists():
            yield controller / name


def make_control_group(name):
    for group in group_folders(name):
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # new groups have none, and no process may run in them
            if (group / file).exists():
                (group / file).write_text((group.parent / file).read_text())


def remove_control_group(name):
    for group in group_folders(name):
        for folder, _, _ in os.walk(group, topdown=False):
            os.rmdir(folder)


def clean_up(folder):
    """Waits in the first process for the end of the test, which closes its standard input even on SIGKILL."""
    sys.stdin.read()
    for _ in range(300):  # killed processes take a moment to disappear
        try:
            remove_control_group(group_name(folder))
            shutil.rmtree(folder)
            return 0
        except FileNotFoundError:
            return 0
        except OSError as error:
            why = error
            time.sleep(0.1)
    print(f"left behind: {why}", file=sys.stderr)
    return 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_on_own_machine():
    """Returns the folder for all files, inside the namespaces. Does not return outside of them."""
    if len(sys.argv) == 3 and sys.argv[1] == CLEANER:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(clean_up(sys.argv[2]))
    if FOLDER in os.environ:
        folder = pathlib.Path(os.environ[FOLDER])
        settle(folder)
        return folder
    folder = pathlib.Path(tempfile.gettempdir()) / f"disttf-engines-{os.getpid()}"
    folder.mkdir(mode=0o700)
    cleaner = subprocess.Popen([sys.executable, "-B", sys.argv[0], CLEANER, str(folder)], stdin=subprocess.PIPE,
                               start_new_session=True)
    machine = subprocess.Popen([*UNSHARE, sys.executable, "-B", *sys.argv], preexec_fn=die_with_parent,
                               env={**os.environ, FOLDER: str(folder)})
    signal.signal(signal.SIGTERM, lambda *_: machine.kill())
    try:
        code = machine.wait()
    except KeyboardInterrupt:
        machine.kill()
        code = machine.wait()
    cleaner.stdin.close()
    sys.exit(cleaner.wait() or (code if code >= 0 else 128 - code))


def settle(folder):
    """Mounts this machine's own versions of well-known paths. They exist only in the namespaces."""
    run("mount", "--make-rshared", "/")
    # With a version 2 mount beside the version 1 mounts, container runtimes assume version 2.
    subprocess.run(["umount", str(CONTROL_GROUPS / "unified")], stderr=subprocess.DEVNULL, check=False)
    for each in ("/run", "/var/log"):
        run("mount", "-t", "tmpfs", "tmpfs", each)
    for name, value in SYSCTLS.items():
        file = folder / name.replace("/", ".")
        file.write_text(f"{value}\n")
        run("mount", "--bind", str(file), f"/proc/sys/{name}")
    run("ip", "link", "set", "lo", "up")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    make_control_group(group_name(folder))


def run(*words, **options):
    """Runs the command and returns its output. Raises when it fails."""
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False, **options)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: code {ran.returncode}\n{ran.stdout}")
    return ran.stdout
