"""The installed files below /usr: the executable, man pages, completions, documents."""
import functools
import gzip
import io
import pathlib
import subprocess
import tarfile
import tempfile

from facts import NAME, SOURCE, output_of
import parts

COMPLETIONS = {
    "bash": "share/bash-completion/completions/disttf",
    "zsh": "share/zsh/site-functions/_disttf",
    "fish": "share/fish/vendor_completions.d/disttf.fish",
}
DEBIAN_ZSH = "share/zsh/vendor-completions/_disttf"


def compressed(data):
    """Compresses like gzip -9n, without name and time, so the result is reproducible."""
    return gzip.compress(data, compresslevel=9, mtime=0)


def manual_pages(release):
    """Returns {"disttf.1": bytes}."""
    with tempfile.TemporaryDirectory() as folder:
        program = release.build / "main/manual/disttf_manual"
        subprocess.run([program, folder, release.time.strftime("%Y-%m-%d")], check=True)
        return {page.name: page.read_bytes() for page in sorted(pathlib.Path(folder).iterdir())}


@functools.cache
def copyright_text(release):
    """Returns the notice and licence of disttf, then those of every library that is linked in."""
    blocks = {}  # identical texts are written once
    for part in parts.parts_of(release):
        blocks.setdefault(part.copyright, []).append(f"{part.name} {part.version}")
    text = output_of(str(release.file), "licenses") + "\n"
    text += "\nThe copyright files of the Debian packages that the program was linked with follow.\n"
    for notice, names in blocks.items():
        text += "\n" + "=" * 78 + "\n" + "\n".join(names) + "\n" + "=" * 78 + "\n\n" + notice.strip() + "\n"
    return text


@functools.cache
def files_of(release, zsh=COMPLETIONS["zsh"]):
    """Returns {path below /usr: (bytes, mode)}, sorted."""
    files = {"bin/disttf": (release.file.read_bytes(), 0o755)}
    for name, text in manual_pages(release).items():
        files[f"share/man/man1/{name}.gz"] = (compressed(text), 0o644)
    for shell, path in (COMPLETIONS | {"zsh": zsh}).items():
        files[path] = (output_of(str(release.file), "completion", shell).encode() + b"\n", 0o644)
    files["share/doc/disttf/copyright"] = (copyright_text(release).encode(), 0o644)
    files["share/doc/disttf/changelog.gz"] = (compressed((SOURCE / "docs/changelog.md").read_bytes()), 0o644)
    return dict(sorted(files.items()))


def tar_of(files, epoch, writable_folders=()):
    """Returns a tar of these files, their parent folders and empty folders that any user may write to. All
    entries are owned by root and have the same time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        folders = {str(folder) for path in files for folder in pathlib.PurePath(path).parents} - {"."}
        entries = [(path, None, 0o755) for path in folders] + [(path, None, 0o1777) for path in writable_folders]
        entries += [(path, data, mode) for path, (data, mode) in files.items()]
        for path, data, mode in sorted(entries, key=lambda entry: entry[0]):
            info = tarfile.TarInfo(path)
            info.mtime, info.mode, info.uname, info.gname = epoch, mode, "root", "root"
            if data is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_archive(release, folder):
    """Makes the archive for any Linux: unpack it anywhere, or over /usr/local."""
    top = f"{NAME}-{release.version}-linux-amd64"
    files = {f"{top}/{path}": entry for path, entry in files_of(release).items()}
    (folder / f"{top}.tar.gz").write_bytes(compressed(tar_of(files, release.epoch)))
