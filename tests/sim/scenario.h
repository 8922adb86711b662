// A simulated cluster, its run and a list of faults, all drawn from the seed. The list can be
// shortened; the rest of the scenario is unaffected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "roles/launch/core/restart_policy.h"
#include "run/output_options.h"
#include "run/run_config.h"
#include "tests/sim/network.h"
#include "tests/sim/program.h"
#include "tests/sim/trainers.h"
#include "tests/sim/world.h"

namespace disttf::sim {

struct Fault {
  enum class Kind : std::uint8_t {
    kKill,     // a process is killed by a signal
    kVanish,   // its machine is lost: no other process is notified
    kTerm,     // SIGTERM
    kFreeze,   // for `duration`
    kReplace,  // frozen for `duration`, and another process replaces it at once
    kBreak,    // a connection between two nodes breaks; one end may notice `duration` later
    kClog,     // nothing passes from one node to another for `duration`
    kIsolate,  // nothing passes from or to a node
    kCutBody,  // a connection breaks inside the next body
    // Faults of the disk with the --train_dir:
    kKillAtDisk,  // kills the process that makes the nth operation from now on, or its machine
    kDiskFails,   // the nth operation from now on fails, and some more
    kRot,         // flips a bit of one checkpoint, if there is another
    kClockSteps,  // its clock jumps by up to hours
    // Kills the chief and all ps, or all but one. The chief has the other configuration from then
    // on.
    kBeginAnew,
    kUnmount,    // for `duration` an empty directory lies in its place
    kStoreAway,  // for `duration` every operation fails, reads included
    // Faults of the program of a trainer:
    kKillProgram,    // or its spare, or both
    kFreezeProgram,  // for `duration`, or until it counts as hung
    kWrongProgram,   // it does what ends the run
    kCount,
  };
  Kind kind = Kind::kKill;
  // When the fault happens: as the nth frame of kind `on` is about to be delivered (it strikes the
  // receiver, or with `to_sender` the sender); or as the first gradient of `step` is; otherwise at
  // the time `at`.
  std::optional<net::FrameKind> on = {};
  std::optional<std::uint64_t> step = {};
  std::uint64_t nth = 0;
  bool to_sender = false;
  Duration at{};
  std::size_t node = 0;
  std::size_t other = 0;
  Duration duration{};
  std::uint64_t detail = 0;
  // Faults can form groups: if `follows` is not 0, this one happens `at` after the fault with that
  // `id`, and the node which that one struck determines the node of this one.
  enum class Whom : std::uint8_t {
    kNamed,      // `node`
    kSame,       // the process that runs there then
    kOtherHost,  // the next ps, which with replicas also hosts its range
    kChief,
  };
  std::uint64_t id = 0;
  std::uint64_t follows = 0;
  Whom whom = Whom::kNamed;
  // For transcripts: the text in the log, and whether `node` counts although the fault waits for a
  // frame.
  std::string words = {};
  bool is_named = false;
};
[[nodiscard]] std::string to_string(const Fault& fault, std::size_t ps);

// A change of the run's secret, in three steps. Each step reaches the files of all nodes within
// `each_within`; then the next step begins.
struct SecretChange {
  Duration at{};
  Duration each_within{};
};

struct Scenario {
  std::uint64_t seed = 1;
  std::size_t ps = 1;
  std::size_t trainers = 2;
  bool has_evaluator = false;        // its node is the one after the trainers
  bool evaluates_directory = false;  // it reads the --train_dir, not from the ps
  Duration evaluated_every{0};       // the time between two evaluations, at most
  std::size_t size = 0;              // floats of the parameter vector
  roles::RunConfig config;
  // The configuration that Fault::Kind::kBeginAnew changes to, and back. Its seed differs.
  std::optional<roles::RunConfig> other_config;
  Pace pace;
  // So many consecutive ranks share a host. As a host group they push one sum to the ps that have a
  // bit in the mask.
  std::size_t trainers_per_host = 1;
  std::uint64_t summed_ranges = 0;
  Network::Options network;
  roles::CheckpointOptions checkpoint;
  bool has_disk = false;                    // there is a --train_dir
  std::uint64_t slowest_restart_ms = 1000;  // of an orchestrator
  bool clocks_differ = false;               // tasks' clocks run at 0.9 to 1.1 of the world's speed
  // If set, a launch restarts tasks; otherwise an orchestrator does.
  std::optional<roles::RestartOptions> launch;
  bool has_secret = false;
  std::vector<SecretChange> secret_changes;  // none begins before the previous one has ended
  std::optional<ProgramOptions> program;     // trainers have programs
  std::vector<Fault> faults;
};
// Draws the scenario of a seed.
[[nodiscard]] Scenario scenario_of(std::uint64_t seed);
// A scenario to be completed by hand: it has no size and no faults, and no frame is late. After
// modes and sizes are set, complete() derives the rest.
[[nodiscard]] Scenario plain_scenario(std::uint64_t seed);
void complete(Scenario& scenario);
// A large cluster with fully synchronous training.
[[nodiscard]] Scenario large_scenario(std::uint64_t seed, std::size_t trainers, std::size_t ps,
                                      std::uint64_t steps);
// "2 ps, 3 trainers, sync, adam, 40 steps, replicas"
[[nodiscard]] std::string to_string(const Scenario& scenario);

struct Outcome {
  std::string violation;  // empty: no invariant was violated
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;         // that happened
  std::vector<bool> happened = {};  // by fault
  std::uint64_t restarts = 0;
  Duration trained{};  // when the chief ended with 0
  Duration simulated{};
  std::array<std::uint64_t, kMarks> marks{};
};
// `trace`: prints all events. `log`: if not nullptr, gets the log lines of all tasks.
[[nodiscard]] Outcome simulate(const Scenario& scenario, bool trace = false,
                               std::vector<std::string>* log = nullptr);

// Returns the scenario with as few of its faults as still violate an invariant. REQUIRES:
// `scenario` violates one.
[[nodiscard]] Scenario shrunk(const Scenario& scenario);

}  // namespace disttf::sim
