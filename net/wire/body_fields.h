// How the body of a message lies. A message describes this once, in fields_of_body(), in the order
// of the bytes; from that follow its encode() and decode(), its size (kBodyBytes), and what
// docs/wire_format.md is compared with (tests/net/body_tables_test.cc).
//
//   struct View {
//     ViewNumber number = {};
//     std::uint8_t primary = 0;
//     bool paired = false;
//
//     template <typename Fields, typename Self>
//     static constexpr void fields_of_body(Fields& fields, Self& self) {
//       ViewNumber::fields_of_body(fields, self.number);
//       fields.u8("primary", self.primary, 0, 1);
//       fields.u8("paired", self.paired, 0, 1);
//       fields.reserved(2);
//     }
//   };
//
// `Fields` is BodyWriter with a const message, BodyReader, or BodyMeter:
//
//   u8, u32, u64(name, member, least, most)   an integer, enumerator, bool or duration as an
//                                             unsigned integer of that width, signed ones in two's
//                                             complement; without least and most any value
//   bits(name, member...)                     bools in one byte, from bit 0 on; other bits are 0
//   array(name, member)                       its elements
//   words(name, member)                       all words of 64 bits up to the end of the body
//   text(name, member, most)                  all bytes up to the end of the body, UTF-8. The
//                                             writer cuts it to `most` bytes, the reader makes it
//                                             safe to log (one_line())
//   reserved(count)                           bytes that are 0 until a version defines them
//   require(condition)                        what else holds for the values that were read
//
// Integers are little-endian. decode() takes untrusted bytes: another length, or a value that its
// field does not have, is WireError::kBadBody, and `out` is then unchanged. Pure; callable from any
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/wire/codec.h"
#include "net/wire/frame.h"
#include "net/wire/text.h"

namespace disttf::net {

template <typename Value>
[[nodiscard]] constexpr std::uint64_t to_number(const Value& value) noexcept {
  if constexpr (requires { value.count(); }) {
    return static_cast<std::uint64_t>(value.count());
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

class BodyWriter {
 public:
  explicit BodyWriter(std::size_t expected_bytes) : bytes_(expected_bytes) {}

  template <typename Value, typename... Limits>
  void u8(std::string_view /*name*/, const Value& member, Limits... /*limits*/) {
    bytes_.put(static_cast<std::uint8_t>(to_number(member)));
  }
  template <typename Value, typename... Limits>
  void u32(std::string_view /*name*/, const Value& member, Limits... /*limits*/) {
    bytes_.put(static_cast<std::uint32_t>(to_number(member)));
  }
  template <typename Value, typename... Limits>
  void u64(std::string_view /*name*/, const Value& member, Limits... /*limits*/) {
    bytes_.put(to_number(member));
  }
  template <typename... Bools>
  void bits(std::string_view /*name*/, const Bools&... members) {
    unsigned all = 0;
    unsigned bit = 1;
    const auto put = [&](bool is_set) {
      all |= is_set ? bit : 0U;
      bit <<= 1U;
    };
    (put(members), ...);
    bytes_.put(static_cast<std::uint8_t>(all));
  }
  template <typename Integer, std::size_t kCount>
  void array(std::string_view /*name*/, const std::array<Integer, kCount>& member) {
    for (const Integer each : member) bytes_.put(each);
  }
  void words(std::string_view /*name*/, const std::vector<std::uint64_t>& member) {
    for (const std::uint64_t word : member) bytes_.put(word);
  }
  void text(std::string_view /*name*/, const std::string& member, std::size_t most) {
    bytes_.put_bytes(std::as_bytes(std::span(cut_utf8(member, most))));
  }
  void reserved(std::size_t count) {
    for (; count > 0; --count) bytes_.put(std::uint8_t{0});
  }
  void require(bool /*condition*/) {}

  [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_).take(); }

 private:
  ByteWriter bytes_;
};

class BodyReader {
 public:
  explicit BodyReader(std::span<const std::byte> body) noexcept : bytes_(body) {}

  template <typename Value, typename... Limits>
  void u8(std::string_view /*name*/, Value& member, Limits... limits) noexcept {
    number<std::uint8_t>(member, limits...);
  }
  template <typename Value, typename... Limits>
  void u32(std::string_view /*name*/, Value& member, Limits... limits) noexcept {
    number<std::uint32_t>(member, limits...);
  }
  template <typename Value, typename... Limits>
  void u64(std::string_view /*name*/, Value& member, Limits... limits) noexcept {
    number<std::uint64_t>(member, limits...);
  }
  template <typename... Bools>
  void bits(std::string_view /*name*/, Bools&... members) noexcept {
    unsigned rest = bytes_.get<std::uint8_t>();
    const auto take = [&](bool& is_set) {
      is_set = (rest & 1U) != 0;
      rest >>= 1U;
    };
    (take(members), ...);
    require(rest == 0);
  }
  template <typename Integer, std::size_t kCount>
  void array(std::string_view /*name*/, std::array<Integer, kCount>& member) noexcept {
    for (Integer& each : member) each = bytes_.get<Integer>();
  }
  void words(std::string_view /*name*/, std::vector<std::uint64_t>& member) {
    member.reserve(bytes_.rest().size() / sizeof(std::uint64_t));
    while (bytes_.ok() && !bytes_.rest().empty()) member.push_back(bytes_.get<std::uint64_t>());
  }
  void text(std::string_view /*name*/, std::string& member, std::size_t most) {
    const std::span<const std::byte> rest = bytes_.rest();
    require(rest.size() <= most);
    if (!are_values_) return;
    member = one_line({reinterpret_cast<const char*>(rest.data()), rest.size()});
    ends_with_text_ = true;
  }
  void reserved(std::size_t count) noexcept {
    for (; count > 0; --count) require(bytes_.get<std::uint8_t>() == 0);
  }
  void require(bool condition) noexcept { are_values_ = are_values_ && condition; }

  // Whether nothing was missing, and every value was one of its field.
  [[nodiscard]] bool ok() const noexcept { return bytes_.ok() && are_values_; }
  // The same, and no byte is left.
  [[nodiscard]] bool complete() const noexcept {
    return ok() && (ends_with_text_ || bytes_.complete());
  }

 private:
  template <typename Wire, typename Value>
  void number(Value& member) noexcept {
    member = static_cast<Value>(bytes_.get<Wire>());
  }
  template <typename Wire, typename Value, typename Least, typename Most>
  void number(Value& member, Least least, Most most) noexcept {
    const Wire got = bytes_.get<Wire>();
    require(to_number(least) <= got && got <= to_number(most));
    member = static_cast<Value>(got);
  }

  ByteReader bytes_;
  bool are_values_ = true;
  bool ends_with_text_ = false;
};

// Counts the bytes, or a few more where a text is cut.
class BodyMeter {
 public:
  template <typename... Arguments>
  constexpr void u8(const Arguments&... /*arguments*/) noexcept {
    bytes_ += 1;
  }
  template <typename... Arguments>
  constexpr void u32(const Arguments&... /*arguments*/) noexcept {
    bytes_ += 4;
  }
  template <typename... Arguments>
  constexpr void u64(const Arguments&... /*arguments*/) noexcept {
    bytes_ += 8;
  }
  template <typename... Bools>
  constexpr void bits(std::string_view /*name*/, const Bools&... /*members*/) noexcept {
    bytes_ += 1;
  }
  template <typename Integer, std::size_t kCount>
  constexpr void array(std::string_view /*name*/,
                       const std::array<Integer, kCount>& /*member*/) noexcept {
    bytes_ += kCount * sizeof(Integer);
  }
  constexpr void words(std::string_view /*name*/,
                       const std::vector<std::uint64_t>& member) noexcept {
    bytes_ += member.size() * sizeof(std::uint64_t);
  }
  constexpr void text(std::string_view /*name*/, const std::string& member,
                      std::size_t most) noexcept {
    bytes_ += std::min(member.size(), most);
  }
  constexpr void reserved(std::size_t count) noexcept { bytes_ += count; }
  constexpr void require(bool /*condition*/) noexcept {}

  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <typename Message>
concept HasBodyFields = requires(BodyWriter& fields, const Message& message) {
  Message::fields_of_body(fields, message);
};

template <HasBodyFields Message>
[[nodiscard]] constexpr std::size_t measure(const Message& message) noexcept {
  BodyMeter meter;
  Message::fields_of_body(meter, message);
  return meter.bytes();
}

// The size of every body of the message.
template <HasBodyFields Message>
inline constexpr std::size_t kBodyBytes = measure(Message{});

template <HasBodyFields Message>
[[nodiscard]] std::vector<std::byte> encode(const Message& message) {
  BodyWriter fields(measure(message));
  Message::fields_of_body(fields, message);
  return std::move(fields).take();
}

template <HasBodyFields Message>
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Message& out) {
  BodyReader fields(body);
  Message message;
  Message::fields_of_body(fields, message);
  // Everything is checked before `out` is assigned, so a refused body changes nothing.
  if (!fields.complete()) return WireError::kBadBody;
  out = std::move(message);
  return {};
}

}  // namespace disttf::net
