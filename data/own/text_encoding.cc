#include "data/own/text_encoding.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/shown_text.h"

namespace disttf::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Beginning {
  std::string_view bytes;
  std::string_view sentence;
};

using namespace std::string_view_literals;

// Longer signatures come first, because a shorter one can be their prefix.
constexpr std::array<Beginning, 10> kBeginnings = {{
    {"\xFF\xFE\0\0"sv,
     "it is UTF-32 text (little-endian); UTF-8 is read, which iconv -f UTF-32 -t UTF-8 makes"},
    {"\0\0\xFE\xFF"sv,
     "it is UTF-32 text (big-endian); UTF-8 is read, which iconv -f UTF-32 -t UTF-8 makes"},
    {"\xFF\xFE"sv,
     "it is UTF-16 text (little-endian, \"Unicode\" of Windows); UTF-8 is read, which "
     "iconv -f UTF-16 -t UTF-8 makes"},
    {"\xFE\xFF"sv,
     "it is UTF-16 text (big-endian); UTF-8 is read, which iconv -f UTF-16 -t UTF-8 makes"},
    {"\x1F\x8B"sv, "it is compressed by gzip; a text table is expected, which gunzip makes"},
    {"PK\3\4"sv, "it is a ZIP archive, such as a workbook (.xlsx); a text table is expected"},
    {"\xD0\xCF\x11\xE0"sv, "it is a workbook (.xls); a text table is expected"},
    {"PAR1"sv, "it is a Parquet file; a text table is expected"},
    {"BZh"sv, "it is compressed by bzip2; a text table is expected"},
    {"\xFD"
     "7zXZ"sv,
     "it is compressed by xz; a text table is expected"},
}};

// Counts the zero bytes by position modulo 4.
std::array<std::size_t, 4> zeros_of(std::string_view head) {
  std::array<std::size_t, 4> zeros{};
  for (std::size_t i = 0; i < head.size(); ++i) zeros.at(i % 4) += head[i] == '\0' ? 1U : 0U;
  return zeros;
}

// Detects UTF-16 and UTF-32 without a mark: the high bytes of digits, delimiters and line ends are
// 0.
std::string_view wide_encoding(std::string_view head) {
  // Fewer bytes are no evidence.
  constexpr std::size_t kFewest = 8;  // bytes
  if (head.size() < kFewest) return {};
  const auto zeros = zeros_of(head);
  const std::size_t quarter = head.size() / 4;
  const auto most = [&](std::size_t place) { return zeros.at(place) * 10 >= quarter * 7; };
  const auto few = [&](std::size_t place) { return zeros.at(place) * 10 <= quarter * 2; };
  // UTF-32 first: its zeros also cover the positions that UTF-16 has.
  if (most(1) && most(2) && most(3) && few(0)) return "UTF-32LE";
  if (most(0) && most(1) && most(2) && few(3)) return "UTF-32BE";
  if (most(1) && most(3) && few(0) && few(2)) return "UTF-16LE";
  if (most(0) && most(2) && few(1) && few(3)) return "UTF-16BE";
  return {};
}

// Returns whether a CR outside quotes ends a line, another line follows, and there is no LF.
bool has_lines_of_cr(std::string_view head) {
  // With an LF in the file a CR alone is most likely part of a cell.
  if (head.find('\n') != std::string_view::npos) return false;
  bool is_quoted = false;
  for (std::size_t at = 0; at < head.size(); ++at) {
    is_quoted = head[at] == '"' ? !is_quoted : is_quoted;
    if (head[at] == '\r' && !is_quoted &&
        head.find_first_not_of("\r ", at) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// The bytes 0x80 to 0x9F of Windows-1252; all other bytes equal their Unicode code.
constexpr std::array<std::uint16_t, 32> kWindows1252 = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178};

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) noexcept {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

std::string refused_encoding(std::string_view head) {
  for (const Beginning& each : kBeginnings) {
    if (head.starts_with(each.bytes)) return std::string(each.sentence);
  }
  if (const std::string_view wide = wide_encoding(head); !wide.empty()) {
    return "it is " + std::string(wide) + " text; UTF-8 is read, which iconv -f " +
           std::string(wide) + " -t UTF-8 makes";
  }
  if (const std::size_t zero = head.find('\0'); zero != std::string_view::npos) {
    return std::string(kNoText) + ": byte " + std::to_string(zero + 1) + " is zero";
  }
  if (has_lines_of_cr(head)) {
    return "its lines end in CR alone, as on old Macintoshes; LF or CR LF is read, which tr "
           "'\\r' '\\n' makes";
  }
  return {};
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = first_character(text).bytes;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string utf8_of(std::string_view text) {
  // Text in another encoding is very rarely valid UTF-8, so valid text is taken as it is.
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const std::uint32_t code = byte >= 0x80 && byte < 0xA0 ? kWindows1252.at(byte - 0x80U) : byte;
    append_utf8(out, code);
  }
  return out;
}

}  // namespace disttf::data
