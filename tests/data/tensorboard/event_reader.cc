#include "tests/data/tensorboard/event_reader.h"

#include <bit>
#include <stdexcept>

namespace disttf::data {
namespace {

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  }
  return value;
}

// Bit by bit, directly from the polynomial.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82F63B78U : crc >> 1U;
    }
  }
  crc = ~crc;
  return (crc >> 15U | crc << 17U) + 0xA282EAD8U;
}

}  // namespace

ReadEvents read_events(std::string_view file) {
  constexpr std::size_t kHead = 12;
  constexpr std::size_t kTail = 4;
  ReadEvents read;
  while (file.size() >= kHead) {
    if (number_at(file, 8, 4) != checksum(file.substr(0, 8))) {
      read.is_dead = true;
      break;
    }
    const std::uint64_t length = number_at(file, 0, 8);
    if (file.size() < kHead + length + kTail) {
      break;
    }
    const std::string_view data = file.substr(kHead, length);
    if (number_at(file, kHead + length, 4) != checksum(data)) {
      read.is_dead = true;
      break;
    }
    read.events.emplace_back(data);
    file.remove_prefix(kHead + length + kTail);
  }
  read.rest = file.size();
  return read;
}

std::vector<ReadField> read_message(std::string_view bytes) {
  std::vector<ReadField> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    ReadField field{.number = static_cast<std::uint32_t>(key >> 3U), .bytes = {}};
    switch (key & 7U) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = number_at(bytes, at, 8);
        at += 8;
        break;
      case 2: {
        const std::uint64_t size = varint();
        field.bytes = std::string(bytes.substr(at, size));
        at += size;
        break;
      }
      case 5:
        field.value = number_at(bytes, at, 4);
        at += 4;
        break;
      default:
        throw std::out_of_range("no such type of field");
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

bool has_field(std::string_view bytes, std::uint32_t number) {
  for (const ReadField& field : read_message(bytes)) {
    if (field.number == number) {
      return true;
    }
  }
  return false;
}

ReadField field_of(std::string_view bytes, std::uint32_t number) {
  for (ReadField& field : read_message(bytes)) {
    if (field.number == number) {
      return field;
    }
  }
  throw std::out_of_range("the message has no field " + std::to_string(number));
}

std::uint64_t step_of(std::string_view event) {
  return has_field(event, 2) ? field_of(event, 2).value : 0;
}

bool is_session_start(std::string_view event) {
  return has_field(event, 7) && field_of(field_of(event, 7).bytes, 1).value == 1;
}

std::map<std::string, std::string> values_of(std::string_view event) {
  std::map<std::string, std::string> values;
  if (has_field(event, 5)) {
    for (const ReadField& value : read_message(field_of(event, 5).bytes)) {
      values[field_of(value.bytes, 1).bytes] = field_of(value.bytes, 8).bytes;
    }
  }
  return values;
}

float scalar_of(const std::string& tensor) {
  const std::string packed = field_of(tensor, 5).bytes;
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_at(packed, 0, 4)));
}

}  // namespace disttf::data
