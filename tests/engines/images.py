"""Images of one layer, made from files: no registry and no builder is asked."""
import hashlib
import io
import json
import tarfile


def add(archive, name, data, mode=0o755):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(data))


def write_image(path, tag, files, user="0"):
    """`files`: {"disttf": path}, laid down in the root; the first one is the entry point. As `docker save` writes
    it."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for name, source in files.items():
            add(archive, name, source.read_bytes())
    layer = layer.getvalue()
    config = json.dumps({"architecture": "amd64", "os": "linux",
                         "config": {"Entrypoint": ["/" + next(iter(files))], "User": user, "WorkingDir": "/"},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
                         "history": [{"created_by": "a test"}]}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(path, "w") as archive:
        add(archive, config_name, config, 0o644)
        add(archive, "layer.tar", layer, 0o644)
        add(archive, "manifest.json", manifest, 0o644)
