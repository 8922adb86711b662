// The tar reader: one piece and small pieces give the same files, never more bytes than the input,
// and no more of a file than its header says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "data/tar.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;

struct File {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::vector<std::uint8_t> contents{};
  bool operator==(const File&) const = default;
};

struct Unpacked {
  std::error_code error;
  std::deque<File> files;
};

Unpacked unpack(std::span<const std::uint8_t> bytes, std::size_t piece_bytes) {
  Unpacked result;
  disttf::data::TarReader tar([&](std::string_view name, std::uint64_t size_bytes) {
    result.files.push_back({.name = std::string(name), .size_bytes = size_bytes});
    return &result.files.back().contents;
  });
  while (!bytes.empty() && !result.error) {
    const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
    bytes = bytes.subspan(piece.size());
    result.error = tar.take(piece);
  }
  if (!result.error) result.error = tar.end();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Unpacked whole = unpack({data, size}, std::max<std::size_t>(size, 1));
  const Unpacked pieces = unpack({data, size}, size == 0 ? 1 : 1 + data[size - 1]);
  require(whole.error == pieces.error && whole.files == pieces.files);
  std::size_t contents = 0;
  for (const File& file : whole.files) {
    require(file.name.size() <= 256);
    require(file.contents.size() <= file.size_bytes);
    contents += file.contents.size();
  }
  require(contents + whole.files.size() * 512 <= size);
  if (!whole.error) {
    for (const File& file : whole.files) require(file.contents.size() == file.size_bytes);
  }
  return 0;
}
