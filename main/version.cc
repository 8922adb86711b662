#include "main/version.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <http_parser.h>
#include <jpeglib.h>
#include <openssl/crypto.h>
#include <png.h>
#include <spdlog/version.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <Eigen/Core>
#include <asio/version.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

#include "main/toml.h"
#include "net/wire/frame.h"

namespace disttf {
namespace {

#define DISTTF_TEXT_OF(macro) DISTTF_QUOTE(macro)
#define DISTTF_QUOTE(text) #text

std::string dotted(unsigned major, unsigned minor, unsigned patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

// Linked archives report their version by a function, as the headers could belong to another
// release. The others consist of headers alone.
std::vector<Library> libraries() {
  const unsigned long parser = http_parser_version();
  return {
      {"Asio", dotted(ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100),
       "libasio-dev"},
      {"CLI11", CLI11_VERSION, "libcli11-dev"},
      {"Eigen", dotted(EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION),
       "libeigen3-dev"},
      {"fmt", dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
       "libfmt-dev"},
      {"glibc", gnu_get_libc_version(), "libc6-dev"},
      {"http_parser", dotted(parser >> 16U & 0xFFU, parser >> 8U & 0xFFU, parser & 0xFFU),
       "libhttp-parser-dev"},
      {"JSON for Modern C++",
       dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
              NLOHMANN_JSON_VERSION_PATCH),
       "nlohmann-json3-dev"},
      {"libjpeg-turbo", DISTTF_TEXT_OF(LIBJPEG_TURBO_VERSION), "libjpeg62-turbo-dev"},
      {"libpng", png_get_libpng_ver(nullptr), "libpng-dev"},
      {"minizip", "", "libminizip-dev"},
      {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING), "libssl-dev"},
      {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH), "libspdlog-dev"},
      {"toml++", dotted(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH), "libtomlplusplus-dev"},
      {"zlib", zlibVersion(), "zlib1g-dev"},
  };
}

std::string version_in_full() {
  std::string text = fmt::format("disttf {}\nwire version {}\ncompiled by GCC {} for {}\n",
                                 kVersion, net::kWireVersion, __VERSION__,
#if defined(__x86_64__)
                                 "x86-64"
#elif defined(__aarch64__)
                                 "aarch64"
#else
                                 "this processor"
#endif
  );
  text += "libraries in it:\n";
  for (const Library& library : libraries()) {
    const std::string_view debian = debian_version_of(library.package);
    text += fmt::format("  {}{}{}{}\n", library.name, library.version.empty() ? "" : " ",
                        library.version,
                        debian.empty() ? "" : fmt::format(" ({} {})", library.package, debian));
  }
  return text;
}

}  // namespace disttf
