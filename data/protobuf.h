// A message in the encoding of protocol buffers, as much of it as is written and read here: fields
// stand in the order in which they are added, and are read in the order in which they stand.
//
// Not Debian's libprotobuf-lite: linked statically, with --gc-sections, with the code that protoc
// makes of these messages, it adds 0.46 MB to the file, and this 2 KB.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// A field of somebody else's message.
struct ProtobufField {
  enum class Kind : std::uint8_t { kNumber, kBytes };
  std::uint32_t number = 0;
  Kind kind = Kind::kNumber;
  std::uint64_t value = 0;   // of a varint; the bits of what has 4 or 8 bytes
  std::string_view bytes{};  // of text, of a message, of packed numbers; borrowed
};

// The fields of a message, one after the other. Messages in it are not looked into. Nothing is
// allocated.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) noexcept : rest_(message) {}
  // False: that was the last one, or what follows is no field; is_whole() says which.
  [[nodiscard]] bool next(ProtobufField& out) noexcept;
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

 private:
  [[nodiscard]] bool take_varint(std::uint64_t& out) noexcept;
  [[nodiscard]] bool take_fixed(std::size_t size, std::uint64_t& out) noexcept;

  std::string_view rest_;
  bool is_whole_ = true;
};

// Of a field of packed varints, each; or the one number that it is. False: they are cut short.
[[nodiscard]] bool append_varints(const ProtobufField& field, std::vector<std::int64_t>& to);

}  // namespace disttf::data
