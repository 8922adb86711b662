// A message in the encoding of protocol buffers, as much of it as is written here: fields stand in
// the order in which they are added.
//
// Not Debian's libprotobuf-lite: linked statically, with --gc-sections, with the code that protoc
// makes of these messages, it adds 0.46 MB to the file, and this 2 KB.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace disttf::data {

class ProtobufMessage {
 public:
  // int64, int32 and enum, of values that are not negative; bool.
  ProtobufMessage& add_number(std::uint32_t field, std::uint64_t value);
  ProtobufMessage& add_double(std::uint32_t field, double value);
  ProtobufMessage& add_float(std::uint32_t field, float value);
  // string, bytes.
  ProtobufMessage& add_bytes(std::uint32_t field, std::string_view value);
  ProtobufMessage& add_message(std::uint32_t field, const ProtobufMessage& value);
  // repeated, packed.
  ProtobufMessage& add_doubles(std::uint32_t field, std::span<const double> values);
  ProtobufMessage& add_floats(std::uint32_t field, std::span<const float> values);

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void add_varint(std::uint64_t value);
  void add_key(std::uint32_t field, std::uint32_t wire_type);

  std::string bytes_;
};

}  // namespace disttf::data
