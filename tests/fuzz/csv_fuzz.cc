// open_csv: any bytes give rows of finite numbers with labels, or one sentence that begins with the
// file. The input is read in small pieces, so that it is cut at every position.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/own/csv.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  constexpr std::size_t kPieceBytes = 64;
  try {
    const auto source = disttf::data::open_csv(path, {}, kPieceBytes);
    require(!source->columns().empty());
    disttf::data::RowBlock block;
    while (source->next(block)) {
      require(block.rows() > 0);
      require(block.numbers.size() == block.rows() * source->columns().size());
      for (const float number : block.numbers) {
        require(std::isfinite(number));
      }
      for (const std::uint32_t label : block.labels) {
        require(label < block.words.size() && !block.words[label].empty());
      }
    }
  } catch (const disttf::data::UnusableData& error) {
    const std::string_view sentence = error.what();  // quotes names with any characters
    require(sentence.starts_with(path) && sentence.size() < 1000);
    require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
  }
  close(file);
  return 0;
}
