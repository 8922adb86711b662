#include "data/own/text_pieces.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "data/own/row_source.h"
#include "data/own/text_encoding.h"

namespace disttf::data {
namespace {

constexpr std::uint64_t kLeastRoom = 4096;  // bytes

// Uses memchr, which is vectorized and fast for rare characters.
std::uint64_t count_of(char wanted, std::string_view text) {
  std::uint64_t count = 0;
  while (!text.empty()) {
    const void* const found = std::memchr(text.data(), wanted, text.size());
    if (found == nullptr) break;
    ++count;
    text.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1);
  }
  return count;
}

// Returns the length of all whole lines of `text`, which begins outside quotes; 0 if there is none.
std::size_t whole_lines(std::string_view text, TextPieces::Quotes meaning) {
  if (meaning == TextPieces::Quotes::kMeanNothing) {
    return text.rfind('\n') + 1;
  }
  // A newline ends a row if an even number of quotes precedes it. The count goes down from the end,
  // because the last such newline is wanted and usually lies near the end.
  std::uint64_t quotes = count_of('"', text);
  for (std::size_t end = text.rfind('\n'); end != std::string_view::npos;
       end = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1)) {
    quotes -= count_of('"', text.substr(end));
    if (quotes % 2 == 0) {
      return end + 1;
    }
    text = text.substr(0, end);
  }
  return 0;
}

}  // namespace

TextPieces::TextPieces(const std::filesystem::path& path, Quotes quotes, std::size_t skipped_lines,
                       std::size_t piece_bytes)
    : path_(path), quotes_(quotes), piece_bytes_(piece_bytes) {
  struct stat status {};
  file_ = open_for_reading(path, status);
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
  // The encoding is checked before anything is skipped: lines of UTF-16 text cannot be counted.
  const auto head = read_open_file(file_, kEncodingHeadBytes, path);
  const std::string refusal =
      refused_encoding({reinterpret_cast<const char*>(head.data()), head.size()});
  if (!refusal.empty()) throw UnusableData(path.string() + ": " + refusal);
  while (rest_.size() < kByteOrderMarkBytes && read_more(rest_)) {
  }
  rest_.erase(0, rest_.size() - without_byte_order_mark(rest_).size());
  skip(skipped_lines);
}

void TextPieces::skip(std::size_t lines) {
  std::size_t at = 0;
  while (lines > 0) {
    const std::size_t end = rest_.find('\n', at);
    if (end != std::string::npos) {
      at = end + 1;
      ++line_;
      --lines;
      continue;
    }
    // No newline in what has been read: all of it belongs to the skipped lines and is dropped, so
    // that a long line needs no memory.
    rest_.clear();
    at = 0;
    if (!read_more(rest_)) {
      return;
    }
  }
  rest_.erase(0, at);
}

bool TextPieces::read_more(std::string& text) {
  // Allocates no more than the rest of the file, because resize() zeroes the memory: under the
  // address sanitizer that dominated the time for small files. The minimum is for a file that has
  // grown meanwhile.
  const std::uint64_t left = size_bytes_ > offset_ ? size_bytes_ - offset_ : 0;
  const auto room =
      static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes_, std::max(left, kLeastRoom)));
  const std::size_t before = text.size();
  text.resize(before + room);
  const std::span<char> to = std::span(text).subspan(before);
  const std::size_t done = read_at(file_, offset_, std::as_writable_bytes(to), path_);
  offset_ += done;
  text.resize(before + done);
  return done > 0;
}

bool TextPieces::next(TextPiece& piece) {
  // Begins with the incomplete line that the previous piece left.
  std::string text = std::exchange(rest_, {});
  for (;;) {
    const bool has_more = read_more(text);
    // At the end of the file the rest is a line even without a newline.
    const std::size_t length = has_more ? whole_lines(text, quotes_) : text.size();
    if (length > 0) {
      rest_ = text.substr(length);
      text.resize(length);
      break;
    }
    if (!has_more) {
      return false;
    }
    // Without a limit one unclosed quote would read the whole file into memory.
    if (text.size() > kMostLineBytes) {
      throw UnusableData(
          path_.string() + ", line " + std::to_string(line_) + ": it is longer than 64 MiB" +
          (quotes_ == Quotes::kHoldNewlines ? "; it may contain an unclosed quote" : ""));
    }
  }
  piece.text = std::move(text);
  piece.first_line = line_;
  line_ += count_of('\n', piece.text);
  return true;
}

}  // namespace disttf::data
