// Decompresses one gzip member (RFC 1952) that fills its input exactly, and compresses one.
//
// Intentionally stricter than gunzip: a data file is one member with nothing after it. A second
// member or padding is refused, and so is a member with a wrong CRC-32 or size.
// Pure functions apart from the callbacks; callable from any thread.
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

// Decompresses `compressed` into `out`. `out` never holds more than `max_bytes` + 1 bytes, whatever
// the input would expand to (a "gzip bomb" ends as kGzipTooLarge). On error `out` is empty. Throws
// only std::bad_alloc.
[[nodiscard]] std::error_code gunzip(std::span<const std::uint8_t> compressed,
                                     std::size_t max_bytes, std::vector<std::uint8_t>& out);

// Decompresses data that is too large for memory. `next` returns the next compressed bytes, which
// stay valid until its next call; an empty span ends the input. `take` receives the output, at most
// 256 KiB at a time, and can stop the process by returning an error.
[[nodiscard]] std::error_code gunzip_pieces(
    const std::function<std::span<const std::uint8_t>()>& next,
    const std::function<std::error_code(std::span<const std::uint8_t>)>& take);

// Returns `bytes` as one member, compressed for speed rather than size. Throws only std::bad_alloc.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace disttf::data
