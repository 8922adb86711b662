// Records of an image and its label in the format of CIFAR-10's binary version, one after the other
// without anything between or before them:
//
//   offset     size  field
//        0        1  label
//        1  H*W*C    the image in planes: all of the first channel (red), row after row, then all
//                    of the second
//
// Pure function; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "data/dataset.h"

namespace disttf::data {

// Appends the images to `images`, channels last, and their labels to `labels`. `detail` receives
// "expected ..., found ...". On error both vectors are unchanged. REQUIRES: shape.size() > 0;
// classes <= 256.
[[nodiscard]] std::error_code parse_records(std::span<const std::uint8_t> bytes,
                                            const ImageShape& shape, std::size_t classes,
                                            std::vector<std::uint8_t>& images,
                                            std::vector<std::uint8_t>& labels, std::string& detail);

}  // namespace disttf::data
