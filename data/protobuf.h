// Encodes and decodes the needed subset of protocol buffers. Fields are written in the order in
// which they are added, and read in the order in which they occur.
//
// Replaces Debian's libprotobuf-lite, which adds 0.46 MB to the binary with protoc's code for these
// messages (linked statically, with --gc-sections); this implementation adds 2 KB.
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
  // int64, int32 and enum with values that are not negative; bool.
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

// One field of a received message.
struct ProtobufField {
  enum class Kind : std::uint8_t { kNumber, kBytes };
  std::uint32_t number = 0;
  Kind kind = Kind::kNumber;
  std::uint64_t value = 0;   // a varint's value, or the bits of a 4- or 8-byte field
  std::string_view bytes{};  // text, a message or packed numbers; borrowed
};

// Iterates over the fields of a message. Does not descend into nested messages. Allocates nothing.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) noexcept : rest_(message) {}
  // Returns false after the last field or at invalid data; is_whole() distinguishes the two.
  [[nodiscard]] bool next(ProtobufField& out) noexcept;
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

 private:
  [[nodiscard]] bool take_varint(std::uint64_t& out) noexcept;
  [[nodiscard]] bool take_fixed(std::size_t size, std::uint64_t& out) noexcept;

  std::string_view rest_;
  bool is_whole_ = true;
};

// Appends the numbers of a packed varint field, or its single number. Returns false if the data is
// truncated.
[[nodiscard]] bool append_varints(const ProtobufField& field, std::vector<std::int64_t>& to);

}  // namespace disttf::data
