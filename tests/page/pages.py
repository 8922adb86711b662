"""Shared by the tests of pages: a program and its output, the page's errors, keys, exit codes.

With DISTTF_PICTURES=DIR the tests write screenshots there. Exit code 77: no browser is installed (with
DISTTF_REQUIRE_ENGINES=1 that is a failure).
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import traceback
import urllib.error
import urllib.request

import devtools


def fail(text):
    raise AssertionError(text)


class Program:
    """A process, and its standard error."""

    def __init__(self, words, **options):
        self.name = words[1]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, **options)
        self.said = ""
        self.changed = threading.Condition()
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.said += line
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def says(self, pattern):
        """Waits for the first match and returns it."""
        with self.changed:
            if not self.changed.wait_for(lambda: re.search(pattern, self.said) or self.ended, devtools.PATIENCE):
                fail(f"{self.name} does not say {pattern}:\n{self.said}")
            found = re.search(pattern, self.said)
        return found or fail(f"{self.name} has ended:\n{self.said}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def expect_quiet(page):
    if page.complaints:
        fail("the page reports errors:\n" + "\n".join(page.complaints))


def leave_picture(page, name, whole=False):
    folder = os.environ.get("DISTTF_PICTURES")
    if folder:
        page.picture(pathlib.Path(folder) / f"{name}.png", whole=whole)


def expect_refused(url, method, status, **fields):
    request = urllib.request.Request(url, method=method, data=b"" if method == "POST" else None, headers=fields)
    try:
        with urllib.request.urlopen(request) as reply:
            fail(f"{method} {url} was answered with {reply.status}")
    except urllib.error.HTTPError as error:
        if error.code != status:
            fail(f"{method} {url} was answered with {error.code}, not {status}")


def key(page, name, code, text=""):
    for kind in ("keyDown", "keyUp"):
        page.tell("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, text=text)


def main(tests):
    """Runs the test that the first argument names with the other arguments, and exits with its result."""
    if devtools.find_browser() is None:
        why = "no Chromium is installed (.ci/install engines)"
        if os.environ.get("DISTTF_REQUIRE_ENGINES") == "1":
            print(f"DISTTF_REQUIRE_ENGINES is 1, so this test may not be skipped: {why}")
            sys.exit(1)
        print(why)
        sys.exit(77)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that browsers are closed, too
    try:
        tests[sys.argv[1]](*sys.argv[2:])
    except Exception:
        traceback.print_exc()
        sys.exit(1)
