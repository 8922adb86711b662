#include "data/safetensors.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "data/error.h"
#include "data/json/json_text.h"

namespace disttf::data {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors go to the file as they are");

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kFloat32 = "F32";
constexpr std::size_t kDeepest = 3;  // header, tensor, shape

// Shortens a name from the file for use in a message.
std::string shown(std::string_view name) {
  constexpr std::size_t kMaxShown = 80;
  std::string text = "\"";
  for (const char c : name.substr(0, kMaxShown)) text += c >= ' ' && c <= '~' && c != '"' ? c : '?';
  return text + (name.size() > kMaxShown ? "\"..." : "\"");
}

bool is_list_of_counts(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& count) {
           return count.is_number_unsigned();
         });
}

const Json* find(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Computes the bytes of a tensor of this shape; returns false if no file can be that large.
bool count_bytes(std::span<const std::uint64_t> shape, std::uint64_t& bytes) {
  constexpr std::uint64_t kMost = PTRDIFF_MAX;
  bytes = sizeof(float);
  bool overflow = false;
  for (const std::uint64_t size : shape) {
    if (size == 0) {
      bytes = 0;
      return true;
    }
    overflow = overflow || bytes > kMost / size;
    if (!overflow) bytes *= size;
  }
  return !overflow;
}

std::error_code read_metadata(const Json& value, SafetensorsMetadata& out, std::string& detail) {
  const auto is_string = [](const Json& part) { return part.is_string(); };
  if (!value.is_object() || !std::all_of(value.begin(), value.end(), is_string)) {
    detail = sentence("__metadata__ to map strings to strings", "something else");
    return DataError::kSafetensorsBadHeader;
  }
  for (const auto& [key, text] : value.items()) out[key] = text.get<std::string>();
  return {};
}

// Reads an entry; its begin_bytes still counts from the first tensor.
std::error_code read_entry(const std::string& name, const Json& value, SafetensorsEntry& out,
                           std::string& detail) {
  if (!value.is_object()) {
    detail = sentence("an object for tensor " + shown(name), "something else");
    return DataError::kSafetensorsBadHeader;
  }
  const Json* dtype = find(value, "dtype");
  const Json* shape = find(value, "shape");
  const Json* offsets = find(value, "data_offsets");
  if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !is_list_of_counts(*shape) ||
      offsets == nullptr || !is_list_of_counts(*offsets) || offsets->size() != 2) {
    detail = sentence("dtype, shape and two data_offsets for tensor " + shown(name), "others");
    return DataError::kSafetensorsBadHeader;
  }
  if (const auto type = dtype->get<std::string>(); type != kFloat32) {
    detail = sentence("tensors of type F32", "tensor " + shown(name) + " of type " + shown(type));
    return DataError::kSafetensorsBadType;
  }
  out.name = name;
  out.shape = shape->get<std::vector<std::uint64_t>>();
  out.begin_bytes = (*offsets)[0].get<std::uint64_t>();
  const auto end = (*offsets)[1].get<std::uint64_t>();
  // The range and the shape both give the size; a reader that trusts only one of them could read
  // past the tensor.
  if (!count_bytes(out.shape, out.size_bytes) || end < out.begin_bytes ||
      end - out.begin_bytes != out.size_bytes) {
    detail = sentence("data_offsets of tensor " + shown(name) + " as far apart as its shape says",
                      std::to_string(out.begin_bytes) + " and " + std::to_string(end));
    return DataError::kSafetensorsBadOffsets;
  }
  return {};
}

// Sorts the tensors and converts their offsets to offsets in the file; together they must fill it.
std::error_code place(SafetensorsHeader& header, std::uint64_t file_bytes, std::string& detail) {
  // Empty tensors come before the tensor that begins at the same byte, so the chain of offsets
  // below has no gap.
  std::ranges::sort(header.tensors, {}, [](const SafetensorsEntry& entry) {
    return std::tie(entry.begin_bytes, entry.size_bytes);
  });
  std::uint64_t next = 0;
  for (SafetensorsEntry& entry : header.tensors) {
    // A gap could hide data, and an overlap could give two tensors one memory.
    if (entry.begin_bytes != next) {
      detail = sentence("tensor " + shown(entry.name) + " at byte " + std::to_string(next),
                        std::to_string(entry.begin_bytes));
      return DataError::kSafetensorsBadOffsets;
    }
    next += entry.size_bytes;  // cannot overflow: it equals the end offset in the header
    entry.begin_bytes += header.size_bytes;
  }
  const std::uint64_t present = file_bytes - header.size_bytes;
  if (next != present) {
    detail = sentence(std::to_string(next) + " bytes of tensors", std::to_string(present));
    return next > present ? DataError::kSafetensorsTruncated : DataError::kSafetensorsBadOffsets;
  }
  return {};
}

std::span<const std::uint8_t> bytes_of(std::span<const float> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace

std::error_code safetensors_header_size(std::span<const std::uint8_t> bytes,
                                        std::uint64_t file_bytes, std::size_t& out,
                                        std::string& detail) {
  if (bytes.size() < kSafetensorsSizeBytes || file_bytes < kSafetensorsSizeBytes) {
    detail = sentence("a header of at least 8 bytes", std::to_string(file_bytes) + " bytes");
    return DataError::kSafetensorsTruncated;
  }
  std::uint64_t size = 0;
  for (std::size_t i = kSafetensorsSizeBytes; i > 0;) size = size << 8U | bytes[--i];
  if (size > kMaxSafetensorsJsonBytes) {
    detail = sentence("a header of at most 100000000 bytes", std::to_string(size) + " bytes");
    return DataError::kSafetensorsBadHeader;
  }
  // By subtraction, because 8 plus a size from the file could overflow.
  if (size > file_bytes - kSafetensorsSizeBytes) {
    detail = sentence("a header of " + std::to_string(size) + " bytes",
                      std::to_string(file_bytes) + " bytes in all");
    return DataError::kSafetensorsTruncated;
  }
  out = kSafetensorsSizeBytes + static_cast<std::size_t>(size);
  return {};
}

std::error_code parse_safetensors(std::span<const std::uint8_t> bytes, std::uint64_t file_bytes,
                                  SafetensorsHeader& out, std::string& detail) {
  SafetensorsHeader header;
  if (const auto error = safetensors_header_size(bytes, file_bytes, header.size_bytes, detail)) {
    return error;
  }
  if (bytes.size() < header.size_bytes) {  // the file has shrunk since its size was read
    detail = sentence("a header of " + std::to_string(header.size_bytes) + " bytes",
                      std::to_string(bytes.size()));
    return DataError::kSafetensorsTruncated;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kSafetensorsSizeBytes,
                              header.size_bytes - kSafetensorsSizeBytes);
  // The format requires the bracket as the first byte, so that tools can recognize the file by it.
  const Json json = text.starts_with('{') ? parse_json(text, kDeepest) : Json();
  if (!json.is_object()) {
    detail = sentence("a header that is a JSON object of tensors", "something else");
    return DataError::kSafetensorsBadHeader;
  }
  for (const auto& [name, value] : json.items()) {
    std::error_code error;
    if (name == kMetadata) {
      error = read_metadata(value, header.metadata, detail);
    } else {
      error = read_entry(name, value, header.tensors.emplace_back(), detail);
    }
    if (error) return error;
  }
  if (const auto error = place(header, file_bytes, detail)) return error;
  out = std::move(header);
  return {};
}

std::vector<std::uint8_t> encode_safetensors_header(const SafetensorsMetadata& metadata,
                                                    std::span<const SafetensorsTensor> tensors) {
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  std::uint64_t begin = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    [[maybe_unused]] std::uint64_t expected = 0;
    assert(count_bytes(tensor.shape, expected) && expected == tensor.values.size_bytes());
    const std::uint64_t end = begin + tensor.values.size_bytes();
    json[tensor.name] = {
        {"dtype", kFloat32}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = json_text(json);
  constexpr std::size_t kAlignment = 8;
  // The format allows blanks after the JSON, so that the first tensor is aligned.
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::vector<std::uint8_t> bytes(kSafetensorsSizeBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(std::uint64_t{text.size()} >> 8U * i);
  }
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

std::vector<std::span<const std::uint8_t>> safetensors_parts(
    std::span<const std::uint8_t> header, std::span<const SafetensorsTensor> tensors) {
  std::vector<std::span<const std::uint8_t>> parts{header};
  for (const SafetensorsTensor& tensor : tensors) parts.push_back(bytes_of(tensor.values));
  return parts;
}

}  // namespace disttf::data
