"""The chart of Helm, as `helm package` packs it, with the version of this release. Helm writes the time of packing into
its archive: what is kept is packed again, with the commit's."""
import io
import os
import pathlib
import subprocess
import tarfile
import tempfile

from facts import NAME, SOURCE
from tree import compressed, tar_of

CHART = SOURCE / "deploy/helm/disttf"
HELM = SOURCE / "build/tools/helm/helm"


def packed_by_helm(version, folder):
    """{path: (bytes, mode)} of what helm has packed."""
    command = [HELM, "package", CHART, "--version", version, "--app-version", version, "--destination", folder]
    homes = {f"HELM_{kind}_HOME": folder for kind in ("CONFIG", "CACHE", "DATA")}
    subprocess.run(command, check=True, capture_output=True, env=os.environ | homes)
    archive = (pathlib.Path(folder) / f"{NAME}-{version}.tgz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {entry.name: (tar.extractfile(entry).read(), 0o644) for entry in tar if entry.isfile()}


def make_chart(release, folder):
    if not HELM.exists():
        print(f"no chart is packed: there is no {HELM.relative_to(SOURCE)} (.ci/tools helm makes it)")
        return
    with tempfile.TemporaryDirectory() as scratch:
        files = packed_by_helm(release.version, scratch)
    (folder / f"{NAME}-{release.version}.tgz").write_bytes(compressed(tar_of(files, release.epoch)))
