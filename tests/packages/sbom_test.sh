#!/bin/bash
# Usage: sbom_test.sh BUILD
#
# The SBOM is what CycloneDX's schema asks for, names the file by its checksum, and the libraries
# that are known to be in it, with the versions that are installed here.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

sbom=$(only "$1/packages/*.cdx.json")
need "$tools/python"
"$tools/python" - "$sbom" "$1/disttf" <<'EOF'
import hashlib, json, subprocess, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1]).read()
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
assert error is None, error
broken = text.replace('"library"', '"lyceum"', 1)
assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(broken) is not None, "the validator takes anything"

told = json.loads(text)
checksum = hashlib.sha256(open(sys.argv[2], "rb").read()).hexdigest()
assert told["metadata"]["component"]["hashes"][0]["content"] == checksum
versions = {each["name"]: each["version"] for each in told["components"]}
assert "uPlot" in versions
for name in ("libssl-dev", "zlib1g-dev", "libpng-dev", "libjpeg62-turbo-dev", "libc6-dev", "libstdc++-12-dev", "libasio-dev", "libeigen3-dev"):
    here = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", name], check=True, capture_output=True, text=True).stdout
    assert versions[name] == here, (name, versions[name], here)
EOF
