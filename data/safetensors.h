// Safetensors, the file format of checkpoints: a JSON header followed by named tensors.
//
//   offset  size  field
//        0     8  n: size of the JSON, unsigned, little-endian
//        8     n  one JSON object, spaces at its end allowed: tensor name -> {"dtype": "F32",
//                 "shape": [784, 100], "data_offsets": [begin, end]}; and "__metadata__", which
//                 maps strings to strings. Offsets are in bytes from the first tensor
//      8+n        the tensors, row-major, little-endian; they leave no byte out and share none
//
// Only float32 is read and written. `detail` receives "expected ..., found ..." for the caller's
// error message, which adds the file's name. On error `out` is unchanged.
// parse and encode are pure functions. Callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace disttf::data {

inline constexpr std::size_t kSafetensorsSizeBytes = 8;
// The limit for the JSON of a file, as of Hugging Face's readers. A model of 16 layers, with its
// optimizer, needs 20 KB, the most and longest variables of a program 90 MB; parsing takes about
// ten times the size in memory.
inline constexpr std::size_t kMaxSafetensorsJsonBytes = 100'000'000;

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  std::vector<std::uint64_t> shape;  // empty: a single number
  std::uint64_t begin_bytes = 0;     // from the start of the file, not from the first tensor
  std::uint64_t size_bytes = 0;      // 4 times the product of shape
};

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their data
  std::size_t size_bytes = 0;             // the position of the first tensor
};

// Computes the position of the first tensor. `bytes`: the first 8 bytes or more, fewer if the file
// is shorter.
[[nodiscard]] std::error_code safetensors_header_size(std::span<const std::uint8_t> bytes,
                                                      std::uint64_t file_bytes, std::size_t& out,
                                                      std::string& detail);

// Parses the header. `bytes`: the beginning of a file of `file_bytes`, at least the whole header.
[[nodiscard]] std::error_code parse_safetensors(std::span<const std::uint8_t> bytes,
                                                std::uint64_t file_bytes, SafetensorsHeader& out,
                                                std::string& detail);

struct SafetensorsTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::span<const float> values;  // borrowed; as many as the product of shape
};

// Returns the bytes before the first tensor; the tensors follow in the given order. Padded with
// spaces to a multiple of 8, so the tensors are aligned in a mapped file.
[[nodiscard]] std::vector<std::uint8_t> encode_safetensors_header(
    const SafetensorsMetadata& metadata, std::span<const SafetensorsTensor> tensors);

// Returns the file's contents in order, as parts borrowed from the arguments.
[[nodiscard]] std::vector<std::span<const std::uint8_t>> safetensors_parts(
    std::span<const std::uint8_t> header, std::span<const SafetensorsTensor> tensors);

}  // namespace disttf::data
