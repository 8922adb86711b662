"""Packs the Helm chart with `helm package`, with the version of this release. Helm writes the packing time into its
archive, so the contents are packed again with the commit's time."""
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
    """Returns {path: (bytes, mode)} of helm's archive."""
    command = [HELM, "package", CHART, "--version", version, "--app-version", version, "--destination", folder]
    homes = {f"HELM_{kind}_HOME": folder for kind in ("CONFIG", "CACHE", "DATA")}
    subprocess.run(command, check=True, capture_output=True, env=os.environ | homes)
    archive = (pathlib.Path(folder) / f"{NAME}-{version}.tgz").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {entry.name: (tar.extractfile(entry).read(), 0o644) for entry in tar if entry.isfile()}


def make_chart(release, folder):
    if not HELM.exists():
        print(f"no chart is packed: {HELM.relative_to(SOURCE)} is missing (build it with .ci/tools helm)")
        return
    with tempfile.TemporaryDirectory() as scratch:
        files = packed_by_helm(release.version, scratch)
    (folder / f"{NAME}-{release.version}.tgz").write_bytes(compressed(tar_of(files, release.epoch)))
