// A task's side of its program: which messages pass between them, through the deaths of programs
// (docs/program_protocol.md).
//
//   a program starts   HELLO, VARIABLEs, LAYOUT
//   the run is known   WELCOME, then whatever the trainer has asked and is not answered
//   it dies            the next one is welcomed, and asked the same again
//
// A state machine: the shell passes in what came and the time, and carries out effects(). Throws
// Failure if the task has to end. Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "math/parameter_layout.h"
#include "run/effects.h"
#include "run/program/program_facts.h"
#include "run/program/program_message.h"

namespace disttf::roles {

// What a trainer asks of its program, one at a time.
struct ProgramRequest {
  // kGiveInitial, kCompute or kEvaluate.
  ProgramKind kind = ProgramKind::kCompute;
  std::uint64_t step = 0;
  std::uint64_t slot = 0;
  std::uint64_t seed = 0;
};

// The answer.
struct ProgramAnswer {
  double loss = 0;  // of a gradient
  ProgramNumbers numbers;
};

// --- effects

struct SendToProgram {
  enum class Body : std::uint8_t { kNone, kWelcome, kRows, kText };
  ProgramMessage message;
  Body body =
      Body::kNone;   // kWelcome: welcome(), with the two descriptors; kRows: the batch's rows
  std::string text;  // for kText
};
struct SendToSupervisor {
  ProgramMessage message;
};
// The program asks for the rows of a batch of a data set of that many rows.
struct RowsAsked {
  std::uint64_t step = 0;
  std::uint64_t slot = 0;
  std::uint64_t rows = 0;
};
struct ProgramNote {
  bool is_warning = false;
  std::string text;
};

// How long a program that was suspended together with its task has afterwards, at most as long as
// it was suspended.
inline constexpr std::chrono::seconds kThawGrace{5};

class ProgramSession {
 public:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;
  using Effects = EffectQueue<SendToProgram, SendToSupervisor, RowsAsked, ProgramNote>;

  // `timeout`: how long a program may take for a gradient before it counts as hung; 20 times the
  // usual time if that is longer, and ten times that from its start to LAYOUT, for its first answer
  // and for an evaluation. 0: never.
  explicit ProgramSession(std::chrono::seconds timeout) noexcept : timeout_(timeout) {}

  // --- from the supervisor
  // Another program, with this number, has a socket; its messages follow. The task uses this one
  // from now on.
  void started(std::uint64_t number, TimePoint now);
  // The program has ended; the supervisor has logged how. `was_killed`: another one will start.
  // Otherwise the supervisor ends this task, unless the run is over.
  void ended(std::uint64_t number, bool was_killed);

  // --- from the program
  void packet(const ProgramPacket& packet, TimePoint now);
  // It has closed its socket, or what came cannot be read: `why`, empty for the former.
  void closed(const std::string& why, TimePoint now);

  // --- from the trainer
  // What the first program told; REQUIRES: has_layout().
  [[nodiscard]] bool has_layout() const noexcept { return layout_.has_value(); }
  [[nodiscard]] const ProgramHello& hello() const noexcept { return *hello_; }
  [[nodiscard]] const std::vector<math::Variable>& variables() const noexcept { return *layout_; }
  // The rows of its data set, as told last; 0: unknown.
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  // The run is known: programs are welcomed with this text from now on. REQUIRES: no program was
  // welcomed since restart().
  void welcome(std::string text, TimePoint now);
  // The run has another configuration, which the next welcome() brings: a program that was welcomed
  // is ended and started again, since a program is welcomed once.
  void restart();
  [[nodiscard]] const std::string& welcome_text() const noexcept { return welcome_; }
  // Asks; answer() is set once it is answered. REQUIRES: welcome(); nothing is asked.
  void ask(const ProgramRequest& request, TimePoint now);
  [[nodiscard]] const std::optional<ProgramAnswer>& answer() const noexcept { return answer_; }
  // The run is over with these parameters. A program that has not been welcomed yet, since the one
  // before it was killed, is welcomed first: what follows its loop runs on every worker.
  void end(std::uint64_t step);
  // The program was sent END, and ends by itself; or it has exited already.
  [[nodiscard]] bool is_released() const noexcept { return is_released_; }
  // The task fails, with this sentence.
  void refuse(int exit_code, const std::string& sentence);

  // --- time
  void time(TimePoint now);
  // This process was suspended for `missed`, until now. That time does not count, since the program
  // may have been suspended as well. As it may continue a little later, it has at least this long
  // from now on, or kThawGrace.
  void forgive(Clock::duration missed, TimePoint now);
  [[nodiscard]] TimePoint deadline() const noexcept { return hung_at_; }

  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  enum class State : std::uint8_t {
    kNone,       // there is no program
    kHello,      // HELLO is due
    kVariables,  // VARIABLE or LAYOUT is due
    kLaidOut,    // waits for WELCOME
    kWelcomed,
  };
  void take_hello(const ProgramPacket& packet);
  void take_variable(const ProgramPacket& packet);
  void take_layout(const ProgramPacket& packet, TimePoint now);
  void take_answer(const ProgramPacket& packet, TimePoint now);
  void send_welcome(TimePoint now);
  void send_request(TimePoint now);
  void release(bool is_told);
  void await_program(std::chrono::nanoseconds limit, TimePoint now);
  void warn(std::string text);
  [[noreturn]] void fail(const std::string& sentence);
  [[nodiscard]] std::chrono::nanoseconds patience() const;

  std::chrono::seconds timeout_;
  State state_ = State::kNone;
  std::uint64_t number_ = 0;  // of the program
  std::optional<ProgramHello> hello_;
  std::optional<ProgramHello> told_;  // of the present program
  std::vector<math::Variable> telling_;
  std::optional<std::vector<math::Variable>> layout_;
  std::uint64_t rows_ = 0;
  std::string welcome_;
  std::optional<ProgramRequest> request_;  // not answered yet
  std::optional<ProgramAnswer> answer_;
  std::optional<std::uint64_t> ended_at_;  // the run is over, with the parameters of this step
  bool is_released_ = false;
  bool has_exited_ = false;    // by itself; no other one follows
  bool has_answered_ = false;  // this program, once
  std::uint64_t steps_ = 0;    // this program's answers to COMPUTE
  TimePoint asked_at_{};       // since when the program is waited for
  TimePoint hung_at_ = TimePoint::max();
  // How long the last gradients took.
  std::array<std::chrono::nanoseconds, 31> times_{};
  std::size_t times_count_ = 0;
  Effects effects_;
};

}  // namespace disttf::roles
