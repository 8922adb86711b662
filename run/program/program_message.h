// The messages between a task and a user's own program (docs/program_protocol.md), and those
// between the task and the supervisor that starts both. A message is one packet: a header of 64
// bytes, then a body.
//
// tests/run/program_message_test.cc pins the bytes. Pure functions; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace disttf::roles {

inline constexpr std::uint32_t kProgramProtocol = 1;  // the version
inline constexpr std::size_t kProgramHeaderBytes = 64;
inline constexpr std::size_t kMaxProgramBody = 64 * 1024;

// The variables that tell a program which descriptor is its socket, and whether it is a spare.
inline constexpr const char* kProgramFdVariable = "DISTTF_PROGRAM_FD";
inline constexpr const char* kProgramSpareVariable = "DISTTF_PROGRAM_SPARE";

enum class ProgramKind : std::uint16_t {
  // Of the program.
  kHello = 1,
  kVariable = 2,
  kLayout = 3,
  kInitial = 4,
  kGradient = 5,
  kEvaluation = 6,
  kAskRows = 7,
  kFailed = 8,
  // Of the task.
  kWelcome = 65,  // with two descriptors: parameters, gradient
  kGiveInitial = 66,
  kCompute = 67,
  kEvaluate = 68,
  kRows = 69,
  kEnd = 70,
  kRefused = 71,

  // Supervisor -> task. `step`: the number of the program, counted from 1.
  kStarted =
      129,       // a program is ready to be used; with one descriptor: the task's end of its socket
  kEnded = 130,  // it has ended; number: exit code; count: the signal that killed it, or 0
  // Task -> supervisor.
  // `step` of these: the number of the program; 0: the present one.
  kRestart = 131,  // the program hangs; number: the signal to send first. Start another one
  kRelease = 132,  // the run is over: the program ends by itself and is not started again. Sent
                   // before END, so that the supervisor knows it when the program has ended.
                   // number: 1: no program gets END, since none was welcomed
  kSteady = 133,   // a step was made: the time to start a spare. Again after kSettledSteps
};

// A program that has answered so many COMPUTE does not die of what it does in every step.
inline constexpr std::uint64_t kSettledSteps = 100;

// Members that a kind does not use are 0.
struct ProgramMessage {
  ProgramKind kind = ProgramKind::kHello;
  std::uint32_t number = 0;
  std::uint64_t step = 0;
  std::uint64_t slot = 0;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
  double value = 0;
  friend bool operator==(const ProgramMessage&, const ProgramMessage&) = default;
};

// REQUIRES: body_size <= kMaxProgramBody.
[[nodiscard]] std::array<std::byte, kProgramHeaderBytes> encode(const ProgramMessage& message,
                                                                std::size_t body_size) noexcept;

// What a packet from a program holds; the body is a part of `packet`.
struct ProgramPacket {
  ProgramMessage message;
  std::span<const std::byte> body;
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(body.data()), body.size()};  // NOLINT
  }
};
// Takes untrusted bytes. nullopt, and `why` as a part of a sentence ("a packet of 12 bytes"), if
// they are no message. Kinds that this version does not know are taken; the receiver refuses them.
[[nodiscard]] std::optional<ProgramPacket> decode(std::span<const std::byte> packet,
                                                  std::string& why);

// "GRADIENT"; "a message of kind 99" for unknown ones.
[[nodiscard]] std::string name_of(ProgramKind kind);

}  // namespace disttf::roles
