// The built-in data set: handwritten-looking digits drawn by code, for when MNIST cannot be had. It
// has MNIST's shape: 60,000 + 10,000 images of 28x28, ten classes, equally many of each.
//
// A digit is a few strokes in one of several styles, put through a random affine map (rotation,
// shear, scale, aspect) and a smooth elastic deformation, drawn with a pen of random width that may
// run dry on its way, centred by its mass, with noise on the ink. Most hands are even, a few hardly
// legible. About as difficult as MNIST: after 2000 steps of 200 images, seeds 1 to 5, a linear
// model is right for 0.897 of the test images (MNIST: 0.928), one with 100 hidden units for 0.977
// (0.979).
//
// The same bits on every machine and build: only + - * / sqrt on floats, which IEEE 754 fixes, and
// integers; no libm function, whose last bit depends on the CPU. Every image is a function of
// (seed, purpose, row) alone. tests/data/digits_test.cc pins the SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/dataset.h"
#include "data/file_set.h"
#include "data/sampler.h"

namespace disttf::data {

// Where the randomness comes from; math::random_bits with math::Purpose::kDigits in production.
struct DigitsRandomness {
  std::uint32_t purpose = 0;
  RandomBits random_bits = nullptr;
};

// The four files as production's randomness makes them.
[[nodiscard]] const FileSet& digits() noexcept;

// The contents of the four IDX files, in the order of digits().files. About 1 s.
[[nodiscard]] std::array<std::vector<std::uint8_t>, 4> make_digits(
    const DigitsRandomness& randomness);

// The data set: read from `directory` where an earlier call has left it, else made and left
// there; not kept where the directory cannot be written (on_warning says so; on_extract is
// not called). Throws std::system_error with DataError::kWrongChecksum when what was made is not
// what digits() pins: other randomness than production's, or a build that bends float arithmetic.
[[nodiscard]] Dataset open_digits(const std::filesystem::path& directory,
                                  const DigitsRandomness& randomness,
                                  const OpenOptions& options = {});

}  // namespace disttf::data
