// .npz: any bytes give blocks of images or of finite numbers with labels, or one sentence. The same
// bytes are also read as a single array, whose header is arbitrary.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/own/arrays.h"
#include "data/own/npy.h"
#include "tests/fuzz/input.h"

namespace {

using namespace disttf::data;
using disttf::fuzz::require;

void require_one_line(std::string_view sentence) {
  require(!sentence.empty() && sentence.size() < 2000);
  require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
}

void read_archive(const std::string& path) {
  for (const ArrayPair& pair : arrays_of_archive(path)) {
    const auto source = open_arrays(pair, false);
    require(source->images().has_value() == are_images(pair.examples));
    RowBlock block;
    while (source->next(block)) {
      require(block.rows() > 0);
      require(block.numbers.size() == block.rows() * source->columns().size());
      require(block.pixels.size() ==
              block.rows() * (source->images() ? source->images()->size() : 0));
      require(
          std::ranges::all_of(block.numbers, [](float number) { return std::isfinite(number); }));
      for (const std::uint32_t label : block.labels) {
        require(label < block.words.size() && !block.words[label].empty());
      }
    }
  }
}

void read_header(std::span<const std::uint8_t> bytes) {
  const NpyPrefix prefix =
      parse_npy_prefix(bytes.first(std::min(bytes.size(), kNpyPrefixBytes)), "a.npy");
  const std::string dict(bytes.begin() + static_cast<std::ptrdiff_t>(prefix.dict_begin),
                         bytes.end());
  const NpyHeader header =
      parse_npy_dict(std::string_view(dict).substr(0, prefix.dict_bytes), "a.npy");
  require(header.element_bytes >= 1 && header.element_bytes <= 8);
}

template <typename Use>
void refused_in_a_line(Use use) {
  try {
    use();
  } catch (const UnusableData& error) {
    require_one_line(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size));
  refused_in_a_line([&] { read_archive("/proc/self/fd/" + std::to_string(file)); });
  refused_in_a_line([&] { read_header({data, size}); });
  close(file);
  return 0;
}
