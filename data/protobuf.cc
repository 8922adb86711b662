#include "data/protobuf.h"

#include <cstring>

#include "data/little_endian.h"

namespace disttf::data {
namespace {

// Wire types, from which a reader gets the length of an unknown field.
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kEightBytes = 1;
constexpr std::uint32_t kLengthFirst = 2;
constexpr std::uint32_t kFourBytes = 5;

}  // namespace

void ProtobufMessage::add_varint(std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;  // seven bits a byte, the lowest first
  // The top bit of a byte says that another one follows.
  while (value >= kMore) {
    bytes_ += static_cast<char>(value | kMore);
    value >>= 7U;
  }
  bytes_ += static_cast<char>(value);
}

void ProtobufMessage::add_key(std::uint32_t field, std::uint32_t wire_type) {
  add_varint(std::uint64_t{field} << 3U | wire_type);
}

ProtobufMessage& ProtobufMessage::add_number(std::uint32_t field, std::uint64_t value) {
  add_key(field, kVarint);
  add_varint(value);
  return *this;
}

ProtobufMessage& ProtobufMessage::add_double(std::uint32_t field, double value) {
  add_key(field, kEightBytes);
  append_little_endian(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::add_float(std::uint32_t field, float value) {
  add_key(field, kFourBytes);
  append_little_endian(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::add_bytes(std::uint32_t field, std::string_view value) {
  add_key(field, kLengthFirst);
  add_varint(value.size());
  bytes_ += value;
  return *this;
}

ProtobufMessage& ProtobufMessage::add_message(std::uint32_t field, const ProtobufMessage& value) {
  return add_bytes(field, value.bytes());
}

// Packed: one key and length for all values.
ProtobufMessage& ProtobufMessage::add_doubles(std::uint32_t field, std::span<const double> values) {
  add_key(field, kLengthFirst);
  add_varint(values.size_bytes());
  for (const double value : values) {
    append_little_endian(bytes_, value);
  }
  return *this;
}

ProtobufMessage& ProtobufMessage::add_floats(std::uint32_t field, std::span<const float> values) {
  add_key(field, kLengthFirst);
  add_varint(values.size_bytes());
  for (const float value : values) {
    append_little_endian(bytes_, value);
  }
  return *this;
}

bool ProtobufReader::take_varint(std::uint64_t& out) noexcept {
  constexpr unsigned kMostBits = 64;
  out = 0;
  // At most ten bytes, so a run of continuation bytes cannot shift by more than 63.
  for (unsigned shift = 0; shift < kMostBits && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    out |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80U) {
      return true;
    }
  }
  return false;
}

bool ProtobufReader::take_fixed(std::size_t size, std::uint64_t& out) noexcept {
  if (rest_.size() < size) {
    return false;
  }
  out = 0;
  std::memcpy(&out, rest_.data(), size);  // little-endian, as this machine is
  rest_.remove_prefix(size);
  return true;
}

bool ProtobufReader::next(ProtobufField& out) noexcept {
  if (rest_.empty() || !is_whole_) {
    return false;
  }
  std::uint64_t key = 0;
  // Field 0 is reserved, and numbers above 32 bits are damage.
  bool is_good = take_varint(key) && key >> 3U != 0 && key >> 32U == 0;
  out = {.number = static_cast<std::uint32_t>(key >> 3U)};
  switch (key & 7U) {
    case kVarint:
      is_good = is_good && take_varint(out.value);
      break;
    case kEightBytes:
      is_good = is_good && take_fixed(8, out.value);
      break;
    case kFourBytes:
      is_good = is_good && take_fixed(4, out.value);
      break;
    case kLengthFirst: {
      std::uint64_t size = 0;
      // The length comes from the file, so it is compared before it is used.
      is_good = is_good && take_varint(size) && size <= rest_.size();
      if (is_good) {
        out.kind = ProtobufField::Kind::kBytes;
        out.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
      }
      break;
    }
    default:  // groups, which are deprecated
      is_good = false;
  }
  // Stays false: after one damaged field the position of the next is unknown.
  is_whole_ = is_good;
  return is_good;
}

bool append_varints(const ProtobufField& field, std::vector<std::int64_t>& to) {
  if (field.kind == ProtobufField::Kind::kNumber) {
    to.push_back(static_cast<std::int64_t>(field.value));
    return true;
  }
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char each : field.bytes) {
    const auto byte = static_cast<std::uint8_t>(each);
    if (shift > 63) {
      return false;
    }
    value |= std::uint64_t{byte & 0x7FU} << shift;
    shift += 7;
    if (byte < 0x80U) {
      to.push_back(static_cast<std::int64_t>(value));
      value = 0;
      shift = 0;
    }
  }
  // False if the last number is incomplete.
  return shift == 0;
}

}  // namespace disttf::data
