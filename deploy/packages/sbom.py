"""Writes the SBOM of the executable in the CycloneDX format."""
import json
import uuid

from facts import LICENSE, MAINTAINER, NAME, SUMMARY
import parts


def component(part):
    if part.source:
        purl = f"pkg:deb/debian/{part.name}@{part.version.replace('+', '%2B').replace(':', '%3A')}?arch=amd64&distro=debian-12"
    else:
        purl = f"pkg:npm/{part.name.lower()}@{part.version}"
    told = [{"name": "disttf:linked", "value": part.how}]
    told += [{"name": "disttf:source-package", "value": part.source}] if part.source else []
    return {"type": "library", "bom-ref": purl, "name": part.name, "version": part.version, "purl": purl,
            "licenses": [{"expression": part.license}], "properties": told}


def make_sbom(release, folder):
    components = [component(part) for part in parts.parts_of(release)]
    itself = {
        "type": "application", "bom-ref": NAME, "name": NAME, "version": release.version,
        "description": SUMMARY, "licenses": [{"expression": LICENSE}], "supplier": {"name": MAINTAINER.split(" <")[0]},
        "hashes": [{"alg": "SHA-256", "content": release.checksum}],
    }
    text = json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        # The serial number is a function of the file.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, release.checksum)}",
        "metadata": {"timestamp": release.time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": itself},
        "components": components,
        "dependencies": [{"ref": NAME, "dependsOn": [each["bom-ref"] for each in components]}],
    }, indent=2)
    (folder / f"{NAME}-{release.version}.cdx.json").write_text(text + "\n")
