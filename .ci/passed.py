"""Remembers which checks of C++ sources passed, in $XDG_CACHE_HOME/disttf (~/.cache/disttf)."""

import functools
import hashlib
import os
import pathlib
import time

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "disttf"
DAYS_KEPT = 30


def hash_of(path):
    return hashlib.sha256(path.read_bytes() if path.exists() else b"gone").hexdigest()


def prerequisites(rule):
    """The files that a rule of `g++ -M` depends on, as absolute paths."""
    names = rule.replace("\\\n", " ").split(":", 1)[1].split()
    return [os.path.abspath(name) for name in names]


class Passed:
    """Records which units passed the check named `check`. All checkouts share the record.

    A unit has the keys `flags` and `sources` (strings), and `file`, its own path. Two files are kept for
    each unit: the list of files that it depended on when it was checked last and, for each state of these
    files in which it passed, an empty file. `rules` are texts that change the result of every unit, as the
    tool's version does."""

    def __init__(self, check, rules):
        self.root = str(pathlib.Path.cwd())
        self.folder = CACHE / check
        self.rules = rules
        self.folder.mkdir(parents=True, exist_ok=True)

    def anywhere(self, text):
        """Replaces the checkout's root, so that the text is the same in each checkout."""
        return text.replace(self.root, "%")

    def name(self, unit):
        words = [*self.rules, *unit["flags"], *unit["sources"]]
        return hashlib.sha256("\0".join(self.anywhere(word) for word in words).encode()).hexdigest()

    def state(self, unit, files):
        """The marker file: it exists if the unit passed with the present contents of these files."""
        digest = hashlib.sha256(self.name(unit).encode())
        for file in files:
            digest.update(f"{file} {self.content(file)}\n".encode())
        return self.folder / f"{digest.hexdigest()}.passed"

    def content(self, file):
        path = pathlib.Path(file.replace("%", self.root))
        return hash_of(path) if file.startswith("%") else self.system_hash(path)

    @functools.lru_cache(maxsize=None)
    def system_hash(self, path):
        """The hash of a header that does not change while this program runs."""
        return hash_of(path)

    def has(self, unit):
        files = self.folder / f"{self.name(unit)}.files"
        if not files.exists():
            return False
        passed = self.state(unit, files.read_text().split("\n"))
        if not passed.exists():
            return False
        passed.touch()
        files.touch()
        return True

    def add(self, unit, files):
        (self.folder / f"{self.name(unit)}.files").write_text("\n".join(files))
        self.state(unit, files).touch()

    def shared_names(self, unit, paths):
        """The paths, without the unit's own, in the form that is the same in every checkout."""
        return sorted({self.anywhere(path) for path in paths} - {self.anywhere(unit["file"])})

    def forget_old(self):
        for file in self.folder.iterdir():
            if file.stat().st_mtime < time.time() - DAYS_KEPT * 86400:
                file.unlink(missing_ok=True)
