"""Usage: make_packages.py BUILD OUTPUT

Makes all packages of the release in the folder BUILD, and writes them to the folder OUTPUT, whose
other contents are removed. The packages are reproducible from the executable and the commit."""
import hashlib
import pathlib
import shutil
import sys

from chart import make_chart
from deb import make_deb
from facts import read_release
from image import make_image
from sbom import make_sbom
from tree import make_archive
from wheel import make_wheel


def main(build, output):
    release = read_release(build)
    folder = pathlib.Path(output)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for make in (make_deb, make_wheel, make_image, make_archive, make_sbom, make_chart):
        make(release, folder)
    sums = ""
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        sums += f"{hashlib.sha256(data).hexdigest()}  {path.name}\n"
        print(f"{len(data):>9} {path}")
    (folder / "SHA256SUMS").write_text(sums)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
