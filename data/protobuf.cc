#include "data/protobuf.h"

#include "data/little_endian.h"

namespace disttf::data {
namespace {

// What tells a reader how long a field is that it does not know.
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kEightBytes = 1;
constexpr std::uint32_t kLengthFirst = 2;
constexpr std::uint32_t kFourBytes = 5;

}  // namespace

void ProtobufMessage::add_varint(std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;  // seven bits a byte, the lowest first
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

}  // namespace disttf::data
