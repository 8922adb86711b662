#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>

#include "data/error.h"

namespace disttf::data {
namespace {

// The output buffer doubles from here. Its size follows the bytes that were really inflated,
// because a size field in the input can claim anything.
constexpr std::size_t kFirstOutputBytes = std::size_t{64} << 10U;
// The largest piece that gunzip_pieces() passes to its caller.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
// zlib counts in unsigned int, so larger spans are passed in several calls.
constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30U;

// Releases inflateInit2's memory on every return path.
class Inflater {
 public:
  Inflater() {
    // 15 bits of window is the maximum; +16 accepts only a gzip header and trailer.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Inflates from the front of `in` to the front of `out`, and reduces both to what is left.
  int inflate_some(std::span<const std::uint8_t>& in, std::span<std::uint8_t>& out) {
    const std::size_t in_bytes = std::min(in.size(), kMaxPieceBytes);
    const std::size_t out_bytes = std::min(out.size(), kMaxPieceBytes);
    // zlib's interface is not const without ZLIB_CONST, but zlib does not write to its input.
    stream_.next_in = const_cast<Bytef*>(in.data());
    stream_.avail_in = static_cast<uInt>(in_bytes);
    stream_.next_out = out.data();
    stream_.avail_out = static_cast<uInt>(out_bytes);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(in_bytes - stream_.avail_in);
    out = out.subspan(out_bytes - stream_.avail_out);
    return result;
  }

 private:
  z_stream stream_{};
};

std::error_code inflate_member(std::span<const std::uint8_t> in, std::size_t max_bytes,
                               std::vector<std::uint8_t>& out) {
  Inflater inflater;
  // One byte over the limit distinguishes a stream that exceeds it from one that fits exactly.
  const std::size_t most = max_bytes + 1;
  std::size_t written = 0;
  while (true) {
    if (written == out.size()) {
      out.resize(std::min(most, std::max(kFirstOutputBytes, 2 * out.size())));
    }
    std::span<std::uint8_t> room = std::span(out).subspan(written);
    const int result = inflater.inflate_some(in, room);
    written = out.size() - room.size();
    if (written > max_bytes) return DataError::kGzipTooLarge;
    if (result == Z_STREAM_END) break;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    // No progress in spite of free space means that the input has ended.
    if (result == Z_BUF_ERROR) return DataError::kGzipTruncated;
    if (result != Z_OK) return DataError::kGzipCorrupt;
  }
  // A second member or appended bytes: such a file is not the one that is expected.
  if (!in.empty()) return DataError::kGzipTrailingBytes;
  out.resize(written);
  return {};
}

}  // namespace

std::error_code gunzip(std::span<const std::uint8_t> compressed, std::size_t max_bytes,
                       std::vector<std::uint8_t>& out) {
  assert(max_bytes < std::numeric_limits<std::size_t>::max() / 2);
  out.clear();
  // RFC 1952: two fixed bytes, then the method; only 8 (deflate) exists.
  constexpr std::uint8_t kStart[] = {0x1f, 0x8b, 8};
  // A file that ends inside these bytes is truncated, not another format; inflate reports it.
  const std::size_t known = std::min(compressed.size(), std::size(kStart));
  if (!std::equal(compressed.begin(), compressed.begin() + static_cast<std::ptrdiff_t>(known),
                  kStart)) {
    return DataError::kNotGzip;
  }
  const std::error_code error = inflate_member(compressed, max_bytes, out);
  if (error) out.clear();
  return error;
}

std::error_code gunzip_pieces(
    const std::function<std::span<const std::uint8_t>()>& next,
    const std::function<std::error_code(std::span<const std::uint8_t>)>& take) {
  Inflater inflater;
  std::vector<std::uint8_t> piece(kPieceBytes);
  std::span<const std::uint8_t> in = next();
  if (in.empty() || in[0] != 0x1f) return DataError::kNotGzip;
  bool has_ended = false;
  while (!has_ended) {
    // Input must follow even if zlib still holds output, because the trailer has not been read.
    if (in.empty()) in = next();
    if (in.empty()) return DataError::kGzipTruncated;
    std::span<std::uint8_t> room(piece);
    const int result = inflater.inflate_some(in, room);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    has_ended = result == Z_STREAM_END;
    if (!has_ended && result != Z_OK) return DataError::kGzipCorrupt;
    const auto out = std::span<const std::uint8_t>(piece).first(piece.size() - room.size());
    // The caller can stop here, before the rest of a large input is inflated.
    if (const std::error_code error = out.empty() ? std::error_code{} : take(out)) return error;
  }
  return in.empty() && next().empty() ? std::error_code{} : DataError::kGzipTrailingBytes;
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kMemory = 8;  // zlib's default
  // 15 bits of window; +16 writes a gzip header and trailer.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  assert(bytes.size() < kMaxPieceBytes);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::deflate(&stream, Z_FINISH);  // cannot fail: the buffer has deflateBound() bytes
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace disttf::data
