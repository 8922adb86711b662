#include "model/import/weights_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "data/json/json_text.h"
#include "data/own/npy.h"
#include "data/own/row_source.h"
#include "data/zip.h"
#include "net/wire/text.h"
#include "run/run_config.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kArrayEnding = ".npy";
constexpr const char* kFactsMember = "disttf.json";
constexpr std::size_t kMostFactBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostHeaderBytes = std::size_t{64} << 10U;
// Of float64 and int64, the widest types that are read.
constexpr std::size_t kMostElementBytes = 8;

}  // namespace

WeightsFile::Kind WeightsFile::kind_of(std::span<const std::uint8_t> bytes) noexcept {
  // Behind the 8 bytes of its size, safetensors begins with a JSON object.
  if (bytes.size() > data::kSafetensorsSizeBytes && bytes[data::kSafetensorsSizeBytes] == '{') {
    return Kind::kSafetensors;
  }
  // ONNX has no magic bytes, so kNone includes it.
  return bytes.size() > 2 && bytes[0] == 'P' && bytes[1] == 'K' ? Kind::kNpz : Kind::kNone;
}

WeightsFile::WeightsFile(std::span<const std::uint8_t> bytes, const std::string& where)
    : bytes_(bytes), where_(where), kind_(kind_of(bytes)) {
  kind_ == Kind::kSafetensors ? open_safetensors() : open_npz();
}

void WeightsFile::refuse(const std::string& why) const {
  throw std::invalid_argument(where_ + ": " + why);
}

void WeightsFile::open_safetensors() {
  std::string detail;
  // Checks all offsets against the file's size, on which the copies below rely.
  if (const auto error = data::parse_safetensors(bytes_, bytes_.size(), header_, detail)) {
    refuse(error.message() + ": " + detail);
  }
  facts_ = header_.metadata;
  for (const data::SafetensorsEntry& entry : header_.tensors) {
    names_.push_back(entry.name);
  }
}

void WeightsFile::open_npz() {
  std::vector<data::ZipMember> members;
  if (const auto error = data::list_zip(data::zip_source(bytes_), members)) {
    refuse(error.message());
  }
  for (const data::ZipMember& member : members) {
    if (member.name.ends_with(kArrayEnding)) {
      // Only the list is read now; read() extracts the arrays that the model needs.
      names_.push_back(member.name.substr(0, member.name.size() - kArrayEnding.size()));
    } else if (member.name == kFactsMember) {
      read_facts();
    }
  }
}

// Reads an archive's metadata; ignores what is malformed.
void WeightsFile::read_facts() {
  // An object of strings; a limit keeps hostile nesting off the parser's stack.
  constexpr std::size_t kDeepest = 2;
  std::vector<std::uint8_t> text;
  if (const auto error =
          data::read_zip_member(data::zip_source(bytes_), kFactsMember, kMostFactBytes, text)) {
    refuse(std::string(kFactsMember) + ": " + error.message());
  }
  const std::string_view view(reinterpret_cast<const char*>(text.data()), text.size());
  const auto json = data::parse_json(view, kDeepest);
  if (!json.is_object()) {
    return;
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) {
      facts_[key] = value.get<std::string>();
    }
  }
}

bool WeightsFile::can_hold(std::size_t numbers) const noexcept {
  // Deflate expands a byte to at most 1032, and a number takes at least one byte.
  constexpr std::size_t kMostOfByte = 1032;
  // Divisions instead of products, which could overflow.
  const bool is_enough = kind_ == Kind::kSafetensors ? numbers <= bytes_.size() / sizeof(float)
                                                     : numbers / kMostOfByte <= bytes_.size();
  return numbers <= kMaxParameters && is_enough;
}

void WeightsFile::read(const math::ParameterLayout& layout, std::span<float> parameters) const {
  for (const math::Variable& variable : layout.variables()) {
    if (std::ranges::find(names_, variable.name) == names_.end()) {
      refuse("it lacks " + net::quoted(variable.name) + ", which the model has with the shape " +
             math::shape_text(variable.shape));
    }
    const std::span<float> to = parameters.subspan(variable.offset, variable.size);
    kind_ == Kind::kSafetensors ? read_safetensors(variable, to) : read_npz(variable, to);
    if (!std::ranges::all_of(to, [](float x) { return std::isfinite(x); })) {
      refuse(net::quoted(variable.name) + " contains a value that is not a finite number");
    }
  }
}

std::vector<std::string> WeightsFile::others(const math::ParameterLayout& layout) const {
  std::vector<std::string> others;
  for (const std::string& name : names_) {
    if (std::ranges::find(layout.variables(), name, &math::Variable::name) ==
        layout.variables().end()) {
      others.push_back(name);
    }
  }
  return others;
}

void WeightsFile::check_shape(const math::Variable& variable,
                              std::span<const std::uint64_t> shape) const {
  if (!std::ranges::equal(variable.shape, shape)) {
    const std::vector<std::size_t> found(shape.begin(), shape.end());
    refuse(net::quoted(variable.name) + " has the shape " + math::shape_text(found) +
           ", in the model " + math::shape_text(variable.shape));
  }
}

void WeightsFile::read_safetensors(const math::Variable& variable, std::span<float> to) const {
  const auto entry =
      std::ranges::find(header_.tensors, variable.name, &data::SafetensorsEntry::name);
  // The copy relies on this: the same shape means the same number of bytes.
  check_shape(variable, entry->shape);
  // parse_safetensors() accepts only float32, and has checked that the tensor is in the file.
  std::memcpy(to.data(), bytes_.data() + entry->begin_bytes, to.size_bytes());
}

void WeightsFile::read_npz(const math::Variable& variable, std::span<float> to) const {
  const std::string member = variable.name + std::string(kArrayEnding);
  std::vector<std::uint8_t> array;
  // Bounded by what the variable needs, whatever size the archive claims.
  if (const auto error =
          data::read_zip_member(data::zip_source(bytes_), member,
                                kMostHeaderBytes + to.size() * kMostElementBytes, array)) {
    refuse(net::quoted(member) + ": " + error.message());
  }
  const std::string name = where_ + ": " + variable.name;
  const std::span<const std::uint8_t> all(array);
  try {
    const data::NpyPrefix prefix =
        data::parse_npy_prefix(all.first(std::min(all.size(), data::kNpyPrefixBytes)), name);
    const std::size_t begin = prefix.dict_begin + prefix.dict_bytes;
    // Before the dict is read through an unchecked pointer.
    if (begin > all.size()) {
      refuse(net::quoted(member) + " is truncated");
    }
    const data::NpyHeader header = data::parse_npy_dict(
        {reinterpret_cast<const char*>(all.data()) + prefix.dict_begin, prefix.dict_bytes}, name);
    check_shape(variable, header.shape);
    if (all.size() - begin != to.size() * header.element_bytes) {
      refuse(net::quoted(member) + " has a size that does not match its shape");
    }
    if (data::npy_numbers(header, all.subspan(begin), to) != to.size()) {
      refuse(net::quoted(variable.name) + " contains a value that is not a finite number");
    }
  } catch (const data::UnusableData& error) {
    throw std::invalid_argument(error.what());
  }
}

}  // namespace disttf::roles
