#include "run/program/program_message.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "net/wire/codec.h"

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

}  // namespace

std::array<std::byte, kProgramHeaderBytes> encode(const ProgramMessage& message,
                                                  std::size_t body_size) noexcept {
  assert(body_size <= kMaxProgramBody);
  std::array<std::byte, kProgramHeaderBytes> bytes{};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  net::store_le(static_cast<std::uint16_t>(message.kind), std::span(bytes).subspan(kKindAt));
  net::store_le(static_cast<std::uint32_t>(body_size), std::span(bytes).subspan(kBodySizeAt));
  net::store_le(message.number, std::span(bytes).subspan(kNumberAt));
  net::store_le(message.step, std::span(bytes).subspan(kStepAt));
  net::store_le(message.slot, std::span(bytes).subspan(kSlotAt));
  net::store_le(message.seed, std::span(bytes).subspan(kSeedAt));
  net::store_le(message.count, std::span(bytes).subspan(kCountAt));
  net::store_le(std::bit_cast<std::uint64_t>(message.value), std::span(bytes).subspan(kValueAt));
  return bytes;
}

std::optional<ProgramPacket> decode(std::span<const std::byte> packet, std::string& why) {
  if (packet.size() < kProgramHeaderBytes ||
      !std::ranges::equal(packet.first(kMagic.size()), kMagic)) {
    why = "a packet of " + std::to_string(packet.size()) + " bytes that does not begin with DTP1";
    return std::nullopt;
  }
  const std::size_t body = packet.size() - kProgramHeaderBytes;
  if (net::load_le<std::uint32_t>(packet.subspan(kBodySizeAt)) != body) {
    why = "a packet of " + std::to_string(packet.size()) + " bytes whose body_size is " +
          std::to_string(net::load_le<std::uint32_t>(packet.subspan(kBodySizeAt)));
    return std::nullopt;
  }
  // A later version may use them, and means something that this one would miss.
  if (net::load_le<std::uint16_t>(packet.subspan(kFlagsAt)) != 0 ||
      net::load_le<std::uint64_t>(packet.subspan(kReservedAt)) != 0) {
    why = "a message whose flags or reserved bytes are not 0";
    return std::nullopt;
  }
  return ProgramPacket{.message = {.kind = static_cast<ProgramKind>(
                                       net::load_le<std::uint16_t>(packet.subspan(kKindAt))),
                                   .number = net::load_le<std::uint32_t>(packet.subspan(kNumberAt)),
                                   .step = net::load_le<std::uint64_t>(packet.subspan(kStepAt)),
                                   .slot = net::load_le<std::uint64_t>(packet.subspan(kSlotAt)),
                                   .seed = net::load_le<std::uint64_t>(packet.subspan(kSeedAt)),
                                   .count = net::load_le<std::uint64_t>(packet.subspan(kCountAt)),
                                   .value = std::bit_cast<double>(
                                       net::load_le<std::uint64_t>(packet.subspan(kValueAt)))},
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
