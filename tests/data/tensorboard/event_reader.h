// Event files read back, for tests: as TensorBoard's loader in Rust reads them, by the description
// of the format and not by the code that writes it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace disttf::data {

struct ReadEvents {
  std::vector<std::string> events;
  bool is_dead = false;  // a checksum is wrong: nothing behind it is read, ever
  std::size_t rest = 0;  // bytes at the end that are not a whole record, yet
};
[[nodiscard]] ReadEvents read_events(std::string_view file);

// A field of a protocol buffer: a number, or what its bytes are.
struct ReadField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // of a varint, of 4 or 8 bytes
  std::string bytes;
};
// Its fields in the order in which they stand there. Throws std::out_of_range where it is none.
[[nodiscard]] std::vector<ReadField> read_message(std::string_view bytes);
// The first one of this number. Throws std::out_of_range.
[[nodiscard]] ReadField field_of(std::string_view bytes, std::uint32_t number);
[[nodiscard]] bool has_field(std::string_view bytes, std::uint32_t number);

// The step of an event.
[[nodiscard]] std::uint64_t step_of(std::string_view event);
// Whether it is the START of a session.
[[nodiscard]] bool is_session_start(std::string_view event);
// The values of its summary by their tags; each is the message TensorProto.
[[nodiscard]] std::map<std::string, std::string> values_of(std::string_view event);
// Of a scalar's tensor.
[[nodiscard]] float scalar_of(const std::string& tensor);

}  // namespace disttf::data
