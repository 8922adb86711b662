// A simulated program of a user, which computes a trainer's gradients. It speaks
// docs/program_protocol.md through a simulated socket, in virtual time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "roles/launch/core/own_program_supervisor.h"
#include "run/program/program_message.h"
#include "tests/sim/checks.h"
#include "tests/sim/network.h"
#include "tests/sim/world.h"

namespace disttf::sim {

// What is written over memory whose contents are being computed.
inline constexpr float kHalfComputed = 12345.0F;
// The rows of the program's data set.
inline constexpr std::uint64_t kProgramRows = 60'000;
// The row of a batch, of which there is one.
[[nodiscard]] std::uint32_t row_of(std::uint64_t step, std::uint64_t slot);

struct ProgramOptions {
  std::uint64_t import_ms = 20;  // about, before it says HELLO
  std::uint64_t save_ms = 5;     // about, from END to its exit
  bool has_spare = true;
  bool asks_rows = false;
  bool ignores_abort = false;            // it does not end by SIGABRT
  std::uint64_t start_fails_one_in = 0;  // one start of a process in so many fails; 0: none
  std::chrono::seconds timeout{5};       // as --program_timeout_secs
};

// The memory that a task shares with its programs.
struct ProgramMemory {
  Values parameters;
  Values gradient;
  Checks::Components components;  // of the gradient that is asked
  std::uint64_t asked = 0;        // numbers what the task asks; these are its parameters
  std::uint64_t made = 0;         // what the gradient is an answer to
};

// The two ends of a program's socket. A packet can be read as soon as it is sent; that the reader
// wakes takes time. Packets outlive the end that has sent them.
struct ProgramSocket {
  struct Packet {
    Bytes bytes;
    std::shared_ptr<ProgramMemory> memory = {};  // the descriptors of WELCOME
  };
  std::deque<Packet> to_task;
  std::deque<Packet> to_program;
  bool task_has_closed = false;
  bool program_has_closed = false;
};
[[nodiscard]] Bytes bytes_of(const roles::ProgramMessage& message, std::string_view body = {});

// What a program does wrong, once.
enum class ProgramWrong : std::uint8_t {
  kNothing,
  kExits,        // before the run is over
  kOtherStep,    // answers for another step
  kOtherLayout,  // tells other variables than the program before it
  kFails,        // sends FAILED
};

inline constexpr std::uint64_t kProgramWrongs = 4;

// The moment at which a program is killed.
enum class ProgramMoment : std::uint8_t { kNever, kWhileComputing, kWithAnswer };

class SimulatedProgram final : public Actor {
 public:
  // What surrounds a program: its machine, and the list of faults.
  class Machine {
   public:
    Machine() = default;
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
    virtual ~Machine() = default;
    // Returns true if the machine's processes are frozen; the event then happens later.
    virtual bool defers(Actor& actor, std::uint32_t what, std::uint64_t a, std::uint64_t b) = 0;
    // The program has sent a packet, or closed its socket.
    virtual void has_written(const ProgramSocket& socket) = 0;
    virtual void has_died(SimulatedProgram& program) = 0;
    // Returns whether the run survives that this program is killed.
    virtual bool may_die(const SimulatedProgram& program) = 0;
    // Returns true, once, if the program is to do this.
    virtual bool takes_wrong(ProgramWrong wrong) = 0;
  };
  struct Work {
    Checks& checks;
    std::size_t size;
    std::uint64_t compute_us;
    std::uint64_t slow_one_in;
    bool is_exact;  // every gradient counts: the first parameters are not 0
    ProgramOptions options;
  };

  // `stream`: identifies it among all programs of its task; `name`: for messages.
  SimulatedProgram(World& world, Machine& machine, const Work& work, roles::ProgramId id,
                   bool is_spare, std::uint64_t stream, std::string name);

  [[nodiscard]] roles::ProgramId id() const noexcept { return id_; }
  [[nodiscard]] bool is_spare() const noexcept { return is_spare_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_alive() const noexcept { return !ending_; }
  [[nodiscard]] const std::optional<roles::Ending>& ending() const noexcept { return ending_; }
  [[nodiscard]] const std::shared_ptr<ProgramSocket>& socket() const noexcept { return socket_; }
  [[nodiscard]] bool is_computing() const noexcept { return stage_ == Stage::kComputing; }
  [[nodiscard]] bool is_ending() const noexcept { return stage_ == Stage::kEnding; }
  // Whether it does nothing now, or is to be killed.
  [[nodiscard]] bool is_endangered() const noexcept {
    return world_.now() < stuck_until_ || moment_ != ProgramMoment::kNever;
  }

  void start();
  // The task has written to the socket, or closed it.
  void wake();
  // Its process group gets a signal.
  void signal(int number);
  // It does nothing until then, but can be killed.
  void freeze(Time until);
  void kill_at(ProgramMoment moment) noexcept { moment_ = moment; }
  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;

 private:
  enum Happening : std::uint32_t { kImported = 1, kReads, kMade, kSaved, kKilled };
  enum class Stage : std::uint8_t { kImporting, kLaidOut, kIdle, kAsksRows, kComputing, kEnding };

  void introduce();
  void read();
  void take(const ProgramSocket::Packet& packet);
  void begin(const roles::ProgramPacket& packet);
  void work();
  void finish();
  void answer(const roles::ProgramMessage& message, std::string_view body = {});
  void end();
  void send(const roles::ProgramMessage& message, std::string_view body = {});
  void exit(int code);
  void end_with(const roles::Ending& ending);
  void check_row(std::span<const std::byte> body);
  [[nodiscard]] std::uint64_t draw() { return world_.draw(Draw::kProgram, stream_, drawn_++); }
  // About so long.
  [[nodiscard]] Duration about(Duration usual);
  void violate(const std::string& what);

  World& world_;
  Machine& machine_;
  const Work& work_;
  const roles::ProgramId id_;
  const bool is_spare_;
  const std::uint64_t stream_;
  const std::string name_;
  std::shared_ptr<ProgramSocket> socket_ = std::make_shared<ProgramSocket>();
  std::shared_ptr<ProgramMemory> memory_;
  std::uint64_t drawn_ = 0;
  Stage stage_ = Stage::kImporting;
  Time stuck_until_{};
  ProgramMoment moment_ = ProgramMoment::kNever;
  roles::ProgramMessage request_;  // that it answers
  Values parameters_;              // as they were when it was asked
  std::uint64_t asked_ = 0;        // their number
  bool has_computed_ = false;      // a gradient
  std::optional<roles::Ending> ending_;
};

}  // namespace disttf::sim
