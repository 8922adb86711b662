"""Finds the libraries in the executable: the archives that were linked and the headers that were compiled,
both from ninja's records; each with its Debian package."""
import dataclasses
import functools
import json
import pathlib
import re

from facts import SOURCE, output_of

# Packages that provide only constants and declarations: none of their code is compiled.
NOT_IN_THE_FILE = {"linux-libc-dev"}


@dataclasses.dataclass(frozen=True)
class Part:
    name: str  # "libssl-dev"
    version: str  # "3.0.15-1~deb12u1"
    source: str  # the source package: "openssl"; "": not Debian's
    how: str  # "archive", "headers" or "page"
    copyright: str
    license: str  # an SPDX expression, "Apache-2.0"


def license_of(name, source):
    """Returns the licence from deploy/licenses/components.json; exits if a linked component has none."""
    for row in json.loads((SOURCE / "deploy/licenses/components.json").read_text()):
        if row["source"] == source and (source or row["name"] == name):
            return row["license"]
    raise SystemExit(f"package: {name} (Debian source package {source or 'none'}) is linked into the program, but "
                     "deploy/licenses/components.json names no licence for it")


def inputs_of_the_file(build):
    return output_of("ninja", "-C", str(build), "-t", "inputs", "disttf").splitlines()


def archives(build):
    """Returns the library archives of the link line, with trimmed copies replaced by their originals,
    and the archives that the compiler adds itself."""
    line = output_of("ninja", "-C", str(build), "-t", "commands", "-s", "disttf")
    named = {pathlib.Path(word) for word in line.split() if word.endswith(".a")}
    copies = {path for path in named if path.parent.name == "static_archives"}
    names = {"libc.a", "libstdc++.a", "libgcc.a", "libgcc_eh.a", "libm.a"}
    names |= {path.name for path in copies}
    found = {str(path) for path in named - copies if path.is_absolute()}
    for name in names:
        path = output_of("g++", f"-print-file-name={name}")
        if path.startswith("/"):
            found.add(str(pathlib.Path(path).resolve()))
    return found


def headers(build):
    """Returns the headers outside of the checkout that the objects of the executable include."""
    objects = {name for name in inputs_of_the_file(build) if name.endswith(".o")}
    found = set()
    is_ours = False
    for line in output_of("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            is_ours = line.split(":")[0] in objects
        elif is_ours and line.strip().startswith("/usr/"):
            found.add(line.strip())
    return found


def packages_of(paths):
    """Returns the Debian packages that own these files; exits if a file belongs to none."""
    names = set()
    ordered = sorted(str(pathlib.Path(path).resolve()) for path in paths)
    owned = {}
    for begin in range(0, len(ordered), 500):
        for line in output_of("dpkg-query", "--search", *ordered[begin : begin + 500]).splitlines():
            package, path = line.split(": ", 1)
            owned[path] = package.split(",")[0].split(":")[0]
    for path in ordered:
        if path not in owned:
            raise SystemExit(f"package: {path} belongs to no Debian package")
        names.add(owned[path])
    return names - NOT_IN_THE_FILE


def debian_part(name, how):
    version, source = output_of(
        "dpkg-query", "--show", "--showformat=${Version} ${source:Package}\n", name
    ).splitlines()[0].split()
    text = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(errors="replace")
    return Part(name, version, source, how, text, license_of(name, source))


def page_part():
    """Returns uPlot, which draws the curves of a run's page."""
    vendor = SOURCE / "web/vendor"
    version = re.search(r"\(v([0-9.]+)\)", (vendor / "uPlot.iife.min.js").read_text()[:500])
    text = (vendor / "LICENSE").read_text()
    return Part("uPlot", version.group(1), "", "page", text, license_of("uPlot", ""))


@functools.cache
def parts_of(release):
    linked = packages_of(archives(release.build))
    compiled = packages_of(headers(release.build)) - linked
    debian = [debian_part(name, "archive") for name in linked]
    debian += [debian_part(name, "headers") for name in compiled]
    return [*sorted(debian, key=lambda part: part.name), page_part()]
