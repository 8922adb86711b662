// How a message lies in the header of its frame. A message describes this once, in fields(); from
// that follow its to_header() and from_header(), and what a header of its kind may not have.
//
//   struct Work {
//     std::uint64_t request_id = 0;
//     std::uint64_t step = 0;
//     std::uint64_t micro_batch = 0;
//
//     [[nodiscard]] static constexpr auto fields() {
//       return frame(FrameKind::kWork, word(&Work::request_id, &FrameHeader::request_id),
//                    word(&Work::step, &FrameHeader::step),
//                    word(&Work::micro_batch, &FrameHeader::sequence));
//     }
//     [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
//     [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
//       return read_fields(header, *this);
//     }
//   };
//
// fields() comes before the two functions that use it. Pure; callable from any thread.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <tuple>

#include "net/wire/frame.h"

namespace disttf::net {

[[nodiscard]] constexpr bool has(const FrameHeader& header, FrameFlags flag) noexcept {
  return (header.flags & flag) != 0;
}

// A value of 64 bits that is no plain number has a pair of these. from_word() returns false for a
// word that is no such value.
[[nodiscard]] constexpr std::uint64_t to_word(std::uint64_t value) noexcept { return value; }
[[nodiscard]] constexpr bool from_word(std::uint64_t word, std::uint64_t& value) noexcept {
  value = word;
  return true;
}
// The bits of a finite number: a NaN would compare false with every other.
[[nodiscard]] constexpr std::uint64_t to_word(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value);
}
[[nodiscard]] inline bool from_word(std::uint64_t word, double& value) noexcept {
  value = std::bit_cast<double>(word);
  return std::isfinite(value);
}

// The parts of a description. Each writes its part of a header, removes from a header what it has
// read, and returns false if that is no value that it may have.

// A member in one word of the header.
template <typename Message, typename Value>
struct WordField {
  Value Message::*member;
  std::uint64_t FrameHeader::*place;

  constexpr void write(const Message& message, FrameHeader& header) const noexcept {
    header.*place = to_word(message.*member);
  }
  constexpr bool take(FrameHeader& rest, Message& message) const noexcept {
    const std::uint64_t word = rest.*place;
    rest.*place = 0;
    return from_word(word, message.*member);
  }
};

// A member that is a flag.
template <typename Message>
struct FlagField {
  bool Message::*member;
  FrameFlags flag;

  constexpr void write(const Message& message, FrameHeader& header) const noexcept {
    header.flags |= message.*member ? std::uint16_t{flag} : std::uint16_t{0};
  }
  constexpr bool take(FrameHeader& rest, Message& message) const noexcept {
    message.*member = has(rest, flag);
    rest.flags &= static_cast<std::uint16_t>(~unsigned{flag});
    return true;
  }
};

// A member that is any of several flags.
template <typename Message>
struct FlagsField {
  std::uint16_t Message::*member;
  std::uint16_t flags;

  constexpr void write(const Message& message, FrameHeader& header) const noexcept {
    header.flags |= message.*member;
  }
  constexpr bool take(FrameHeader& rest, Message& message) const noexcept {
    message.*member = rest.flags & flags;
    rest.flags &= static_cast<std::uint16_t>(~unsigned{flags});
    return true;
  }
};

template <typename Message, typename Value>
[[nodiscard]] constexpr WordField<Message, Value> word(Value Message::*member,
                                                       std::uint64_t FrameHeader::*place) noexcept {
  return {member, place};
}
template <typename Message>
[[nodiscard]] constexpr FlagField<Message> flag(bool Message::*member, FrameFlags flag) noexcept {
  return {member, flag};
}
template <typename Message>
[[nodiscard]] constexpr FlagsField<Message> flags(std::uint16_t Message::*member,
                                                  std::uint16_t flags) noexcept {
  return {member, flags};
}

template <typename... Fields>
struct MessageFields {
  FrameKind kind;
  std::tuple<Fields...> fields;
  FrameFlags always = {};  // a flag that distinguishes the message from others of its kind

  [[nodiscard]] constexpr MessageFields with(FrameFlags flag) const noexcept {
    MessageFields result = *this;
    result.always = flag;
    return result;
  }
};
template <typename... Fields>
[[nodiscard]] constexpr MessageFields<Fields...> frame(FrameKind kind, Fields... fields) noexcept {
  return {.kind = kind, .fields = {fields...}};
}

// The body and its place are the sender's affair.
template <typename Message>
[[nodiscard]] constexpr FrameHeader header_of_fields(const Message& message) noexcept {
  constexpr auto kFields = Message::fields();
  FrameHeader header{.kind = kFields.kind, .flags = kFields.always};
  std::apply([&](const auto&... field) { (field.write(message, header), ...); }, kFields.fields);
  return header;
}

// Returns WireError::kUnexpected for another kind, kBadFlags or kBadReserved for a flag or a value
// that the message does not have, kBadBody for a word that is no value of its field. `message` is
// then unchanged.
template <typename Message>
[[nodiscard]] std::error_code read_fields(const FrameHeader& header, Message& message) noexcept {
  constexpr auto kFields = Message::fields();
  if (header.kind != kFields.kind) return WireError::kUnexpected;
  if ((header.flags & kFields.always) != kFields.always) return WireError::kBadFlags;
  Message read;
  FrameHeader rest = header;
  rest.flags &= static_cast<std::uint16_t>(~unsigned{kFields.always});
  bool are_values = true;
  const auto take = [&](const auto& field) { are_values = field.take(rest, read) && are_values; };
  std::apply([&take](const auto&... field) { (take(field), ...); }, kFields.fields);
  if (rest.flags != 0) return WireError::kBadFlags;
  const bool is_empty =
      (rest.request_id | rest.step | rest.sequence | rest.range_begin | rest.generation) == 0;
  if (!is_empty) return WireError::kBadReserved;
  if (!are_values) return WireError::kBadBody;
  message = read;
  return {};
}

}  // namespace disttf::net
