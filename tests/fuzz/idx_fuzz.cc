// The IDX reader: in accepted bytes, its pointers lie inside the input.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/idx.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::fuzz::require;

bool is_inside(std::span<const std::uint8_t> part, std::span<const std::uint8_t> whole) {
  return part.data() >= whole.data() && part.data() + part.size() == whole.data() + whole.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::data;
  const std::span bytes(data, size);
  IdxView view;
  std::string detail;
  if (!parse_idx(bytes, view, detail)) {
    require(is_inside(view.elements, bytes));
    require(4 + 4 * view.dimensions + view.elements.size() == size);
  } else {
    require(!detail.empty());
  }
  std::span<const std::uint8_t> images;
  if (!parse_images(bytes, {}, images, detail)) {
    require(is_inside(images, bytes));
    require(images.size() % 784 == 0);
  }
  std::span<const std::uint8_t> labels;
  if (!parse_labels(bytes, 10, labels, detail)) {
    require(is_inside(labels, bytes));
    for (const std::uint8_t label : labels) require(label < 10);
  }
  std::vector<std::uint8_t> classes;
  if (!parse_label_table(bytes, 8, 10, classes, detail)) {
    require(12 + classes.size() * 8 * 4 == size);
    for (const std::uint8_t label : classes) require(label < 10);
  }
  return 0;
}
