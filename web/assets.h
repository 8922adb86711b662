// The files of the pages, embedded in the binary. Constants.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace disttf::web {

struct Asset {
  std::string_view path;          // "/assets/app.js"; "/" for index.html
  std::string_view content_type;  // "text/javascript; charset=utf-8"
  std::string_view tag;           // ETag, in quotes; differs if the bytes do
  std::span<const unsigned char> gzip;
  std::size_t bytes = 0;  // uncompressed size
};

[[nodiscard]] std::span<const Asset> assets() noexcept;

}  // namespace disttf::web
