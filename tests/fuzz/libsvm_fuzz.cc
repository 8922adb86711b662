// open_libsvm: any bytes give rows of finite numbers with labels, or one sentence that begins with
// the file. The input is read in small pieces and blocks, so that it is cut at every position.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/own/libsvm.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  constexpr std::size_t kPieceBytes = 64;
  constexpr std::size_t kBlockNumbers = 100;
  constexpr std::size_t kMostColumns = 1000;  // the limit of dense columns, to save time
  const LibsvmOptions options = {.label_is_number = size % 2 == 1};
  try {
    const LibsvmIndices indices = libsvm_indices(path, options, {});
    require(indices.rows > 0 && indices.largest <= kMostLibsvmIndex);
    if (indices.columns() > kMostColumns) return close(file);
    const auto source = open_libsvm(path, options, indices, kPieceBytes, kBlockNumbers);
    require(source->columns().size() == indices.columns());
    std::uint64_t rows = 0;
    RowBlock block;
    while (source->next(block)) {
      require(block.rows() > 0);
      require(block.numbers.size() == block.rows() * source->columns().size());
      require(
          std::ranges::all_of(block.numbers, [](float number) { return std::isfinite(number); }));
      for (const std::uint32_t label : block.labels) {
        require(label < block.words.size() && !block.words[label].empty());
      }
      require(
          std::ranges::all_of(block.targets, [](float target) { return std::isfinite(target); }));
      rows += block.rows();
    }
    require(rows == indices.rows);
  } catch (const UnusableData& error) {
    const std::string_view sentence = error.what();  // quotes words with any characters
    require(sentence.starts_with(path) && sentence.size() < 1000);
    require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
  }
  close(file);
  return 0;
}
