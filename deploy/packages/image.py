"""Builds the image as an OCI archive, which podman and docker load. It has the same contents as the
Containerfile's image, but uses the executable that is already built."""
import hashlib
import json
import pathlib

from facts import DESCRIPTION, LICENSE, NAME, SUMMARY, source_url
from tree import compressed, copyright_text, tar_of

# The same as in the Containerfile: the user, which is not root; the folders that any user may write to; the
# health check. Docker reads a health check from an OCI image, podman does not.
USER = "65532:65532"
WRITABLE = ("input_data", "tmp")
SECOND = 1_000_000_000  # in nanoseconds
HEALTHCHECK = {"Test": ["CMD", "/disttf", "healthcheck"], "Interval": 30 * SECOND, "Timeout": 10 * SECOND,
               "StartPeriod": 60 * SECOND, "Retries": 3}
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def dumped(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


def described(kind, data, **more):
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(data), **more}


def labels(release):
    told = {
        "title": NAME,
        "description": SUMMARY + ". " + " ".join(DESCRIPTION.split()),
        "version": release.version,
        "created": release.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "revision": release.revision,
        "source": source_url(),
        "licenses": LICENSE,
    }
    return {f"org.opencontainers.image.{key}": value for key, value in told.items() if value}


def make_image(release, folder):
    files = {
        "disttf": (release.file.read_bytes(), 0o755),
        "etc/ssl/certs/ca-certificates.crt": (AUTHORITIES.read_bytes(), 0o644),
        "usr/share/doc/disttf/copyright": (copyright_text(release).encode(), 0o644),
    }
    tar = tar_of(files, release.epoch, writable_folders=WRITABLE)
    layer = compressed(tar)
    created = release.time.strftime("%Y-%m-%dT%H:%M:%SZ")
    config = dumped({
        "architecture": "amd64", "os": "linux", "created": created,
        "config": {"Entrypoint": ["/disttf"], "Labels": labels(release), "WorkingDir": "/", "User": USER,
                   "Healthcheck": HEALTHCHECK},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
        "history": [{"created": created, "created_by": "make package"}],
    })
    manifest = dumped({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", layer)], "annotations": labels(release),
    })
    tag = release.version.replace("+", "-")  # a tag may not contain a plus
    index = dumped({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described("manifest.v1+json", manifest,
                                platform={"architecture": "amd64", "os": "linux"},
                                annotations={"org.opencontainers.image.ref.name": f"{NAME}:{tag}"})],
    })
    blobs = {f"blobs/sha256/{hashlib.sha256(data).hexdigest()}": (data, 0o644)
             for data in (layer, config, manifest)}
    archive = {"oci-layout": (b'{"imageLayoutVersion": "1.0.0"}', 0o644), "index.json": (index, 0o644), **blobs}
    (folder / f"{NAME}-{release.version}-linux-amd64.oci.tar").write_bytes(tar_of(archive, release.epoch))
