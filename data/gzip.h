// Decompresses one gzip member (RFC 1952) that fills its input exactly, and makes one.
//
// Stricter than gunzip on purpose: a data file is one member with nothing after it, so a second
// member or padding is refused, as is everything that does not fit its own CRC-32 and size.
// Pure functions but for what they call; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace disttf::data {

// Decompresses `compressed` into `out`, which never holds more than `max_bytes` + 1 bytes however
// much the input would expand to (a "gzip bomb" ends as kGzipTooLarge). On error `out` is left
// empty. Throws std::bad_alloc only.
[[nodiscard]] std::error_code gunzip(std::span<const std::uint8_t> compressed,
                                     std::size_t max_bytes, std::vector<std::uint8_t>& out);

// The same of what is too large to be held. `next` gives the next compressed bytes, which it may
// overwrite when it is called again; none: there are no more. `take` gets what comes out of them,
// at most 256 KiB at a time, and ends it with an error of its own.
[[nodiscard]] std::error_code gunzip_pieces(
    const std::function<std::span<const std::uint8_t>()>& next,
    const std::function<std::error_code(std::span<const std::uint8_t>)>& take);

// One member with all of `bytes`, made fast rather than small. Throws std::bad_alloc only.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace disttf::data
