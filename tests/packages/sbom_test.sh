#!/bin/bash
# Usage: sbom_test.sh BUILD
#
# The SBOM conforms to CycloneDX's schema, names the executable by its checksum, and lists the
# libraries known to be in it, with the installed versions.
# shellcheck source=common.sh
. "${BASH_SOURCE%/*}/common.sh"

sbom=$(only "$1/packages/*.cdx.json")
need "$tools/python"
"$tools/python" - "$sbom" "$1/disttf" <<'EOF'
import hashlib, json, re, subprocess, sys
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
# The executable lists its components: each has the installed version, and none is missing except
# the compiler's own libraries and the system's headers.
packages = {"Asio": "libasio-dev", "CLI11": "libcli11-dev", "Eigen": "libeigen3-dev", "fmt": "libfmt-dev", "glibc": "libc6-dev",
            "http_parser": "libhttp-parser-dev", "JSON for Modern C++": "nlohmann-json3-dev", "libjpeg-turbo": "libjpeg62-turbo-dev",
            "libpng": "libpng-dev", "minizip": "libminizip-dev", "OpenSSL": "libssl-dev", "spdlog": "libspdlog-dev",
            "toml++": "libtomlplusplus-dev", "zlib": "zlib1g-dev"}
lines = subprocess.run([sys.argv[2], "--version", "--verbose"], check=True, capture_output=True, text=True).stdout.splitlines()
said = lines[lines.index("libraries in it:") + 1:]
for name, package in packages.items():
    line = next((line for line in said if re.match(rf"  {re.escape(name)}( [0-9]| [(]|$)", line)), None)
    assert line, f"--version --verbose does not name {name}"
    assert line.endswith(f" ({package} {versions[package]})"), (line, versions[package])
    number = line.removeprefix(f"  {name}").split(" (")[0].strip()
    assert not number or re.search(rf"(^|:){re.escape(number)}([^0-9]|$)", versions[package]), (line, versions[package])
assert len(said) == len(packages), said
forgotten = set(versions) - set(packages.values()) - {"uPlot", "libstdc++-12-dev", "libgcc-12-dev", "linux-libc-dev", "libcrypt-dev"}
assert not forgotten, f"--version --verbose does not name what is in the SBOM: {forgotten}"
EOF
