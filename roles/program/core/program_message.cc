#include "roles/program/core/program_message.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace disttf::roles {
namespace {

constexpr std::array<std::byte, 4> kMagic = {std::byte{'D'}, std::byte{'T'}, std::byte{'P'},
                                             std::byte{'1'}};
// Offsets of the header's fields.
constexpr std::size_t kKindAt = 4;
constexpr std::size_t kFlagsAt = 6;
constexpr std::size_t kBodySizeAt = 8;
constexpr std::size_t kNumberAt = 12;
constexpr std::size_t kStepAt = 16;
constexpr std::size_t kSlotAt = 24;
constexpr std::size_t kSeedAt = 32;
constexpr std::size_t kCountAt = 40;
constexpr std::size_t kValueAt = 48;
constexpr std::size_t kReservedAt = 56;

// Both families of processors that disttf runs on are little-endian, as the format is.
static_assert(std::endian::native == std::endian::little);

template <typename Number>
void put(std::span<std::byte> to, std::size_t at, Number number) noexcept {
  std::memcpy(to.data() + at, &number, sizeof(number));
}

template <typename Number>
Number get(std::span<const std::byte> from, std::size_t at) noexcept {
  Number number{};
  std::memcpy(&number, from.data() + at, sizeof(number));
  return number;
}

}  // namespace

std::array<std::byte, kProgramHeaderBytes> encode(const ProgramMessage& message,
                                                  std::size_t body_size) noexcept {
  assert(body_size <= kMaxProgramBody);
  std::array<std::byte, kProgramHeaderBytes> bytes{};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  put(bytes, kKindAt, static_cast<std::uint16_t>(message.kind));
  put(bytes, kBodySizeAt, static_cast<std::uint32_t>(body_size));
  put(bytes, kNumberAt, message.number);
  put(bytes, kStepAt, message.step);
  put(bytes, kSlotAt, message.slot);
  put(bytes, kSeedAt, message.seed);
  put(bytes, kCountAt, message.count);
  put(bytes, kValueAt, message.value);
  return bytes;
}

std::optional<ProgramPacket> decode(std::span<const std::byte> packet, std::string& why) {
  if (packet.size() < kProgramHeaderBytes ||
      !std::ranges::equal(packet.first(kMagic.size()), kMagic)) {
    why = "a packet of " + std::to_string(packet.size()) + " bytes that does not begin with DTP1";
    return std::nullopt;
  }
  const std::size_t body = packet.size() - kProgramHeaderBytes;
  if (get<std::uint32_t>(packet, kBodySizeAt) != body) {
    why = "a packet of " + std::to_string(packet.size()) + " bytes whose body_size is " +
          std::to_string(get<std::uint32_t>(packet, kBodySizeAt));
    return std::nullopt;
  }
  // A later version may use them, and means something that this one would miss.
  if (get<std::uint16_t>(packet, kFlagsAt) != 0 || get<std::uint64_t>(packet, kReservedAt) != 0) {
    why = "a message whose flags or reserved bytes are not 0";
    return std::nullopt;
  }
  return ProgramPacket{
      .message = {.kind = static_cast<ProgramKind>(get<std::uint16_t>(packet, kKindAt)),
                  .number = get<std::uint32_t>(packet, kNumberAt),
                  .step = get<std::uint64_t>(packet, kStepAt),
                  .slot = get<std::uint64_t>(packet, kSlotAt),
                  .seed = get<std::uint64_t>(packet, kSeedAt),
                  .count = get<std::uint64_t>(packet, kCountAt),
                  .value = get<double>(packet, kValueAt)},
      .body = packet.subspan(kProgramHeaderBytes)};
}

std::string name_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kHello:
      return "HELLO";
    case ProgramKind::kVariable:
      return "VARIABLE";
    case ProgramKind::kLayout:
      return "LAYOUT";
    case ProgramKind::kInitial:
      return "INITIAL";
    case ProgramKind::kGradient:
      return "GRADIENT";
    case ProgramKind::kEvaluation:
      return "EVALUATION";
    case ProgramKind::kAskRows:
      return "ASK_ROWS";
    case ProgramKind::kFailed:
      return "FAILED";
    case ProgramKind::kWelcome:
      return "WELCOME";
    case ProgramKind::kGiveInitial:
      return "GIVE_INITIAL";
    case ProgramKind::kCompute:
      return "COMPUTE";
    case ProgramKind::kEvaluate:
      return "EVALUATE";
    case ProgramKind::kRows:
      return "ROWS";
    case ProgramKind::kEnd:
      return "END";
    case ProgramKind::kRefused:
      return "REFUSED";
    case ProgramKind::kStarted:
      return "STARTED";
    case ProgramKind::kEnded:
      return "ENDED";
    case ProgramKind::kRestart:
      return "RESTART";
    case ProgramKind::kRelease:
      return "RELEASE";
    case ProgramKind::kSteady:
      return "STEADY";
  }
  return "a message of kind " + std::to_string(static_cast<unsigned>(kind));
}

}  // namespace disttf::roles
