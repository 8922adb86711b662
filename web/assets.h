// The files of the page, as they are in the binary. Constants.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace disttf::web {

struct Asset {
  std::string_view path;          // "/assets/app.js"; of index.html "/"
  std::string_view content_type;  // "text/javascript; charset=utf-8"
  std::string_view tag;           // in quotes; other bytes have another
  std::span<const unsigned char> gzip;
  std::size_t bytes = 0;  // once it is unpacked
};

[[nodiscard]] std::span<const Asset> assets() noexcept;

}  // namespace disttf::web
