// Reads event files back in tests, like TensorBoard's Rust loader: written from the format's
// description, independent of the code that writes the files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

struct ReadEvents {
  std::vector<std::string> events;
  bool is_dead = false;  // a wrong checksum: nothing after it is ever read
  std::size_t rest = 0;  // bytes at the end that are not a complete record yet
};
[[nodiscard]] ReadEvents read_events(std::string_view file);

// A field of a protocol buffer: a number or bytes.
struct ReadField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of a varint, or of 4 or 8 bytes
  std::string bytes;
};
// Returns the fields in order. Throws std::out_of_range if the bytes are not a message.
[[nodiscard]] std::vector<ReadField> read_message(std::string_view bytes);
// Returns the first field with this number. Throws std::out_of_range if there is none.
[[nodiscard]] ReadField field_of(std::string_view bytes, std::uint32_t number);
[[nodiscard]] bool has_field(std::string_view bytes, std::uint32_t number);

// Returns the step of an event.
[[nodiscard]] std::uint64_t step_of(std::string_view event);
// Returns whether it is the START of a session.
[[nodiscard]] bool is_session_start(std::string_view event);
// Returns the values of its summary by tag; each is a TensorProto message.
[[nodiscard]] std::map<std::string, std::string> values_of(std::string_view event);
// Returns the value of a scalar's tensor.
[[nodiscard]] float scalar_of(const std::string& tensor);

}  // namespace disttf::data
