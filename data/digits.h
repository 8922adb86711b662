// The built-in data set: drawn digits that look handwritten, for use when MNIST is not available.
// It has MNIST's shape: 60,000 + 10,000 images of 28x28, ten classes of equal size.
//
// A digit consists of a few strokes in one of several styles. The drawing applies a random affine
// map (rotation, shear, scale, aspect) and a smooth elastic deformation, uses a pen of random width
// that may run dry, centres the digit by its centre of mass, and adds noise to the ink. Most digits
// are drawn evenly, a few are hardly legible. The set is about as difficult as MNIST: after 2000
// steps of 200 images, seeds 1 to 5, a linear model is right for 0.897 of the test images (MNIST:
// 0.928), and a model with 100 hidden units for 0.977 (0.979).
//
// The images are bit-identical on every machine and build: the code uses only + - * / sqrt on
// floats, which IEEE 754 defines exactly, and integers. It calls no libm function, because the last
// bit of those depends on the CPU. Every image is a function of (seed, purpose, row) alone.
// tests/data/digits_test.cc pins the SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/dataset.h"
#include "data/file_set.h"
#include "data/sampler.h"

namespace disttf::data {

// The source of randomness; math::random_bits with math::Purpose::kDigits in production.
struct DigitsRandomness {
  std::uint32_t purpose = 0;
  RandomBits random_bits = nullptr;
};

// Returns the four files that production's randomness generates.
[[nodiscard]] const FileSet& digits() noexcept;

// Returns the contents of the four IDX files, in the order of digits().files. Takes about 1 s.
[[nodiscard]] std::array<std::vector<std::uint8_t>, 4> make_digits(
    const DigitsRandomness& randomness);

// Returns the data set. Reads it from `directory` if an earlier call stored it there; otherwise
// generates and stores it. If the directory is not writable, the set stays in memory and on_warning
// receives a sentence; on_extract is not called. Throws std::system_error with
// DataError::kWrongChecksum if the generated set differs from what digits() pins, because of other
// randomness than production's or a build that changes float arithmetic.
[[nodiscard]] Dataset open_digits(const std::filesystem::path& directory,
                                  const DigitsRandomness& randomness,
                                  const OpenOptions& options = {});

}  // namespace disttf::data
