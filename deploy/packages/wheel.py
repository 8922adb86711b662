"""Builds the wheel: pip installs the executable with the scripts, its documents below share/, and the package `disttf`
for users' own programs, which lies in deploy/python."""
import base64
import hashlib
import io
import zipfile

from facts import DESCRIPTION, LICENSE, MAINTAINER, NAME, SOURCE, SUMMARY
from tree import files_of

# A static file runs with any C library, old or new, and with any Python.
TAGS = ["manylinux_2_12_x86_64", "manylinux2010_x86_64", "musllinux_1_1_x86_64"]


def metadata(version):
    name, address = MAINTAINER.rstrip(">").split(" <")
    return (
        f"Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\n"
        f"Summary: {SUMMARY[0].upper() + SUMMARY[1:]}\n"
        f"License-Expression: {LICENSE}\nLicense-File: LICENSE\nLicense-File: NOTICE\n"
        f"Maintainer: {name}\nMaintainer-email: {address}\n"
        "Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n"
        "Classifier: Programming Language :: C++\nClassifier: Programming Language :: Python :: 3\n"
        "Classifier: Typing :: Typed\n"
        "Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence\n"
        "Requires-Python: >=3.7\nDescription-Content-Type: text/plain\n\n"
        f"{DESCRIPTION}\nThe licences of the components that are linked into the program are in\n"
        "share/doc/disttf/copyright; `disttf licenses` prints them.\n"
    )


def python_files(version):
    """Returns {path: (bytes, mode)} of the package, which has this version."""
    folder = SOURCE / "deploy/python"
    files = {str(path.relative_to(folder)): (path.read_bytes(), 0o644)
             for path in sorted((folder / NAME).iterdir()) if path.suffix in (".py", ".typed")}
    own, _ = files[f"{NAME}/_version.py"]
    files[f"{NAME}/_version.py"] = (own.replace(b'"checkout"', f'"{version}"'.encode()), 0o644)
    return files


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def make_wheel(release, folder):
    stem = f"{NAME}-{release.version}"
    info = f"{stem}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: disttf\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in TAGS)
    files = python_files(release.version)
    for path, entry in files_of(release).items():
        kind = "scripts" if path == "bin/disttf" else "data"
        files[f"{stem}.data/{kind}/{path.removeprefix('bin/')}"] = entry
    files[f"{info}/METADATA"] = (metadata(release.version).encode(), 0o644)
    files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)
    for name in ("LICENSE", "NOTICE"):
        files[f"{info}/licenses/{name}"] = ((SOURCE / name).read_bytes(), 0o644)
    record = "".join(record_line(path, data) for path, (data, _) in files.items())
    files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, (data, mode) in files.items():
            entry = zipfile.ZipInfo(path, release.time.timetuple()[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.create_system = 3  # Unix, so that the file modes apply
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    (folder / f"{stem}-py3-none-{'.'.join(TAGS)}.whl").write_bytes(out.getvalue())
