"""Facts about disttf that all packages share, and about the release: executable, commit, source tree."""
import dataclasses
import datetime
import hashlib
import os
import pathlib
import subprocess

NAME = "disttf"
SUMMARY = "train a model with parameter servers, in one static file"
DESCRIPTION = """\
The ps, worker and chief tasks of distributed training, their flags and their
TF_CONFIG, for MNIST, other known data sets and tables or images of your own.
Killed tasks recover, and synchronous runs are bit-for-bit reproducible.

The same file starts tasks on one machine or writes deployment files for
cluster engines, monitors the tasks, and serves trained models over HTTP.
"""
# A packager for others sets DISTTF_MAINTAINER to the responsible person.
MAINTAINER = os.environ.get("DISTTF_MAINTAINER", "disttf maintainers <maintainers@disttf.invalid>")
LICENSE = "Apache-2.0"  # of disttf itself, as SPDX names it
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def output_of(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout.strip()


def source_url():
    """The URL of the sources: DISTTF_SOURCE_URL, else the URL of the checkout's origin if it is http or https;
    "": not known."""
    told = os.environ.get("DISTTF_SOURCE_URL")
    if told is not None or not (SOURCE / ".git").exists():
        return told or ""
    found = subprocess.run(["git", "-C", str(SOURCE), "remote", "get-url", "origin"], capture_output=True, text=True)
    url = found.stdout.strip()
    return url if url.startswith(("https://", "http://")) and "@" not in url else ""


@dataclasses.dataclass(frozen=True)
class Release:
    """One build of disttf, and its commit."""

    build: pathlib.Path  # the build folder
    version: str  # "0.1.0", or "0.1.0+g1a2b3c4" between releases
    revision: str  # the commit; "": not known
    epoch: int  # time of the commit in seconds

    @property
    def file(self):
        return self.build / NAME

    @property
    def time(self):
        return datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc)

    @property
    def checksum(self):
        return hashlib.sha256(self.file.read_bytes()).hexdigest()


def read_release(build):
    """Returns the release. SOURCE_DATE_EPOCH overrides the commit's time; outside a checkout it must be set."""
    build = pathlib.Path(build).resolve()
    version = output_of(str(build / NAME), "--version").split()[1]
    revision = ""
    if (SOURCE / ".git").exists():
        revision = output_of("git", "-C", str(SOURCE), "rev-parse", "HEAD")
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None and not revision:
        raise SystemExit("package: not a git checkout; set SOURCE_DATE_EPOCH to the time of the sources")
    if epoch is None:
        epoch = output_of("git", "-C", str(SOURCE), "log", "-1", "--format=%ct")
    return Release(build, version, revision, int(epoch))
