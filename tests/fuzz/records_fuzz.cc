// The reader of records: returns only complete records, as many images as labels, each byte once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/records.h"
#include "tests/fuzz/input.h"

using disttf::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  constexpr ImageShape kShape{.height = 2, .width = 3, .channels = 2};
  constexpr std::size_t kRecord = 13;
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
  std::string detail;
  if (parse_records({data, size}, kShape, 10, images, labels, detail)) {
    require(images.empty() && labels.empty() && !detail.empty());
    return 0;
  }
  require(labels.size() * kRecord == size && images.size() == labels.size() * kShape.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    require(labels[row] == data[row * kRecord] && labels[row] < 10);
    std::vector<std::uint8_t> in(data + row * kRecord + 1, data + (row + 1) * kRecord);
    const auto from = images.begin() + static_cast<std::ptrdiff_t>(row * kShape.size());
    std::vector<std::uint8_t> out(from, from + static_cast<std::ptrdiff_t>(kShape.size()));
    require(out[0] == in[0] && out[1] == in[6]);
    std::ranges::sort(in);
    std::ranges::sort(out);
    require(in == out);
  }
  return 0;
}
