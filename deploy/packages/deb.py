"""Builds the Debian package with dpkg-deb. It has no dependencies, because the executable has none."""
import email.utils
import hashlib
import os
import pathlib
import subprocess
import tempfile

from facts import DESCRIPTION, MAINTAINER, NAME, SUMMARY
from tree import DEBIAN_ZSH, compressed, files_of

# Lintian's findings that follow from the single static file. Any other finding is an error.
OVERRIDES = """\
# disttf is a single static file: it runs in an empty root, and with any C library. It is position
# independent, so lintian takes it for a shared library, and linked with Debian's own archives, so lintian
# reports embedded copies. copyright names them all; updating one of them needs a new build.
# The texts of all licences, as `disttf licenses` prints them: the file is the same in every package.
disttf: copyright-file-contains-full-apache-2-license
disttf: copyright-file-contains-full-gpl-license
disttf: embedded-library libjpeg [usr/bin/disttf]
disttf: embedded-library libpng [usr/bin/disttf]
disttf: embedded-library zlib [usr/bin/disttf]
disttf: shared-library-lacks-prerequisites [usr/bin/disttf]
"""


def control(version, files):
    lines = [line or "." for line in DESCRIPTION.strip().splitlines()]
    kib = sum(-(-len(data) // 1024) for data, _ in files.values())
    return (
        f"Package: {NAME}\nVersion: {version}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n"
        f"Installed-Size: {kib}\nRecommends: ca-certificates\nSection: science\nPriority: optional\n"
        f"Description: {SUMMARY}\n" + "".join(f" {line}\n" for line in lines)
    )


def changelog(release, version):
    return (
        f"{NAME} ({version}) unstable; urgency=medium\n\n"
        "  * See changelog.gz for the changes.\n\n"
        f" -- {MAINTAINER}  {email.utils.format_datetime(release.time)}\n"
    )


def make_deb(release, folder):
    version = f"{release.version}-0.1"  # Debian's own revisions begin at -1
    files = {f"usr/{path}": entry for path, entry in files_of(release, DEBIAN_ZSH).items()}
    files["usr/share/doc/disttf/changelog.Debian.gz"] = (compressed(changelog(release, version).encode()), 0o644)
    files["usr/share/lintian/overrides/disttf"] = (OVERRIDES.encode(), 0o644)
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {path}\n" for path, (data, _) in sorted(files.items()))
    whole = {
        **files,
        "DEBIAN/control": (control(version, files).encode(), 0o644),
        "DEBIAN/md5sums": (sums.encode(), 0o644),
    }
    with tempfile.TemporaryDirectory() as root:
        write(pathlib.Path(root), whole, release.epoch)
        # A single thread: the number of threads changes the compressed bytes.
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", root,
             folder / f"{NAME}_{version}_amd64.deb"],
            check=True, stdout=subprocess.DEVNULL,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(release.epoch)},
        )


def write(root, files, epoch):
    for path, (data, mode) in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(mode)
        os.utime(place, (epoch, epoch))
    for folder in [root, *(each for each in root.rglob("*") if each.is_dir())]:
        folder.chmod(0o755)
        os.utime(folder, (epoch, epoch))
