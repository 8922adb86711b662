#include "data/tar.h"

#include <algorithm>
#include <string>

#include "data/error.h"

namespace disttf::data {
namespace {

// The position of a header field.
struct TarField {
  std::size_t offset = 0;
  std::size_t size = 0;
};
constexpr TarField kName{.offset = 0, .size = 100};
constexpr TarField kSize{.offset = 124, .size = 12};
constexpr TarField kSum{.offset = 148, .size = 8};
constexpr std::size_t kKind = 156;
constexpr TarField kMagic{.offset = 257, .size = 6};
constexpr TarField kPrefix{.offset = 345, .size = 155};  // only with the POSIX magic
constexpr std::string_view kPosixMagic("ustar\0", 6);

std::span<const std::uint8_t> field_bytes(std::span<const std::uint8_t> header,
                                          const TarField& field) {
  return header.subspan(field.offset, field.size);
}

// Returns the text up to the first zero byte.
std::string text_of(std::span<const std::uint8_t> header, const TarField& field) {
  const auto bytes = field_bytes(header, field);
  return {bytes.begin(), std::ranges::find(bytes, std::uint8_t{0})};
}

// Parses an octal number with blanks before it and blanks or zeros after it; returns false if it is
// malformed. At most twelve digits, so it cannot overflow.
bool octal_of(std::span<const std::uint8_t> header, const TarField& field, std::uint64_t& out) {
  const auto bytes = field_bytes(header, field);
  const auto is_digit = [](std::uint8_t byte) { return byte >= '0' && byte <= '7'; };
  const auto is_blank = [](std::uint8_t byte) { return byte == ' ' || byte == 0; };
  const auto begin = std::ranges::find_if_not(bytes, [](std::uint8_t byte) { return byte == ' '; });
  const auto end = std::find_if_not(begin, bytes.end(), is_digit);
  if (begin == end || !std::all_of(end, bytes.end(), is_blank)) return false;
  out = 0;
  for (auto digit = begin; digit != end; ++digit) out = out * 8 + (*digit - std::uint64_t{'0'});
  return true;
}

// Returns the sum of all bytes of the header, counting the sum field as blanks.
std::uint64_t sum_of(std::span<const std::uint8_t> header) {
  std::uint64_t sum = kSum.size * std::uint64_t{' '};
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i < kSum.offset || i >= kSum.offset + kSum.size) sum += header[i];
  }
  return sum;
}

std::string name_of(std::span<const std::uint8_t> header) {
  std::string name = text_of(header, kName);
  const auto magic = field_bytes(header, kMagic);
  if (!std::equal(magic.begin(), magic.end(), kPosixMagic.begin(), kPosixMagic.end())) return name;
  const std::string prefix = text_of(header, kPrefix);
  return prefix.empty() ? name : prefix + "/" + name;
}

}  // namespace

std::error_code TarReader::take_header() {
  if (std::ranges::all_of(header_, [](std::uint8_t byte) { return byte == 0; })) {
    has_ended_ = true;
    return {};
  }
  std::uint64_t sum = 0;
  // The checksum is tested before any other field is used.
  if (!octal_of(header_, kSum, sum) || sum != sum_of(header_)) return DataError::kTarBadHeader;
  if (!octal_of(header_, kSize, contents_left_)) return DataError::kTarBadHeader;
  // Contents fill whole blocks; the second remainder makes 0 of a whole block.
  padding_left_ = (kBlockBytes - contents_left_ % kBlockBytes) % kBlockBytes;
  // '0', or a zero byte in archives older than POSIX; '7' is a contiguous file.
  const std::uint8_t kind = header_[kKind];
  const bool is_file = kind == '0' || kind == 0 || kind == '7';
  // Contents of folders, links and extensions are skipped.
  contents_ = is_file ? begin_(name_of(header_), contents_left_) : nullptr;
  return {};
}

std::error_code TarReader::take(std::span<const std::uint8_t> bytes) {
  const auto take_some = [&bytes](std::uint64_t most) {
    const auto some = bytes.first(std::min<std::uint64_t>(most, bytes.size()));
    bytes = bytes.subspan(some.size());
    return some;
  };
  // Pieces of the archive end anywhere, so the reader keeps its position inside a header, contents
  // or padding.
  while (!bytes.empty() && !has_ended_) {
    if (contents_left_ > 0) {
      const auto some = take_some(contents_left_);
      if (contents_ != nullptr) contents_->insert(contents_->end(), some.begin(), some.end());
      contents_left_ -= some.size();
    } else if (padding_left_ > 0) {
      padding_left_ -= take_some(padding_left_).size();
    } else {
      const auto some = take_some(kBlockBytes - header_bytes_);
      std::copy(some.begin(), some.end(),
                header_.begin() + static_cast<std::ptrdiff_t>(header_bytes_));
      header_bytes_ += some.size();
      if (header_bytes_ < kBlockBytes) break;
      header_bytes_ = 0;
      if (const std::error_code error = take_header()) return error;
    }
  }
  return {};
}

std::error_code TarReader::end() const noexcept {
  return has_ended_ ? std::error_code{} : DataError::kTarTruncated;
}

}  // namespace disttf::data
