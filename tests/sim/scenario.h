// What is simulated: a cluster, a run, and a list of faults. All of it is drawn from the seed; the
// list can be shortened, and what is left is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/run/checkpoint_options.h"
#include "roles/run/run_config.h"
#include "tests/sim/network.h"
#include "tests/sim/trainers.h"
#include "tests/sim/world.h"

namespace disttf::sim {

struct Fault {
  enum class Kind : std::uint8_t {
    kKill,     // of a process, by signal
    kVanish,   // of its machine: nobody is told
    kTerm,     // SIGTERM
    kFreeze,   // for `duration`
    kReplace,  // frozen, and another process takes its place at once; it wakes up after `duration`
    kBreak,    // of a connection between two nodes; one end may learn `duration` later
    kClog,     // nothing from one node to another for `duration`
    kIsolate,  // nothing from or to a node
    kCutBody,  // of a connection: inside the next body
    // Of the disk that is --train_dir:
    kKillAtDisk,  // whoever makes the nth operation from now on, or loses its machine there
    kDiskFails,   // at the nth operation from now on, and some more
    kRot,         // a bit of one checkpoint, if there is another
    kClockSteps,  // its clock, by up to hours
    // Of the chief and all ps, or all but one: from then on the chief has the other configuration.
    kBeginAnew,
    kUnmount,    // for `duration` an empty directory lies in its place
    kStoreAway,  // for `duration` every operation fails, reading too
    kCount,
  };
  Kind kind = Kind::kKill;
  // When the nth frame of that kind is about to be delivered, to whoever (`to_sender`: it has come
  // from) is concerned; or when a gradient of that step is for the first time; or else at a time.
  std::optional<net::FrameKind> on = {};
  std::optional<std::uint64_t> step = {};
  std::uint64_t nth = 0;
  bool to_sender = false;
  Duration at{};
  std::size_t node = 0;
  std::size_t other = 0;
  Duration duration{};
  std::uint64_t detail = 0;
  // Failures come in groups: where `follows` is not 0, this one happens `at` after the fault with
  // that `id`, to a node that is chosen by which node that one has struck.
  enum class Whom : std::uint8_t {
    kNamed,      // `node`
    kSame,       // whichever process is there then
    kOtherHost,  // the ps after it, which with replicas hosts its range, too
    kChief,
  };
  std::uint64_t id = 0;
  std::uint64_t follows = 0;
  Whom whom = Whom::kNamed;
  // A transcript's: what the log says, and that `node` counts though it waits for a frame.
  std::string words = {};
  bool is_named = false;
};
[[nodiscard]] std::string to_string(const Fault& fault, std::size_t ps);

// Of the run's secret, in three steps; each is made in the files of all nodes within a time, and
// the next begins when that is over.
struct SecretChange {
  Duration at{};
  Duration each_within{};
};

struct Scenario {
  std::uint64_t seed = 1;
  std::size_t ps = 1;
  std::size_t trainers = 2;
  bool has_evaluator = false;        // beside them; its node is behind the trainers'
  bool evaluates_directory = false;  // it reads the --train_dir, not from the ps
  Duration evaluated_every{0};       // at most
  std::size_t size = 0;              // floats of the parameter vector
  roles::RunConfig config;
  // What Fault::Kind::kBeginAnew changes to, and back. It has another seed.
  std::optional<roles::RunConfig> other_config;
  Pace pace;
  // So many ranks after the other are on one host, and push one sum to the ps that have a bit in
  // the mask where they are a host group.
  std::size_t trainers_per_host = 1;
  std::uint64_t summed_ranges = 0;
  Network::Options network;
  roles::CheckpointOptions checkpoint;
  bool has_disk = false;                    // there is a --train_dir
  std::uint64_t slowest_restart_ms = 1000;  // an orchestrator's
  bool clocks_differ = false;               // tasks' run at 0.9 to 1.1 of the world's
  // A launch starts tasks again; else an orchestrator does.
  std::optional<roles::RestartOptions> launch;
  bool has_secret = false;
  std::vector<SecretChange> secret_changes;  // none begins before the one before has ended
  std::vector<Fault> faults;
};
// Another one for each seed.
[[nodiscard]] Scenario scenario_of(std::uint64_t seed);
// For one that is made by hand: without a size and without faults, and with everything on time.
// Once modes and sizes are set, complete() makes it fit them.
[[nodiscard]] Scenario plain_scenario(std::uint64_t seed);
void complete(Scenario& scenario);
// A large one: so many trainers and ps, strict sync.
[[nodiscard]] Scenario large_scenario(std::uint64_t seed, std::size_t trainers, std::size_t ps,
                                      std::uint64_t steps);
// "2 ps, 3 trainers, sync, adam, 40 steps, replicas"
[[nodiscard]] std::string to_string(const Scenario& scenario);

struct Outcome {
  std::string violation;  // empty: all promises were kept
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t faults = 0;         // that happened
  std::vector<bool> happened = {};  // by fault
  std::uint64_t restarts = 0;
  Duration trained{};  // when the chief ended with 0
  Duration simulated{};
  std::array<std::uint64_t, kMarks> marks{};
};
// `trace`: all that happens is printed. `log`, unless nullptr: gets what tasks say, line by line.
[[nodiscard]] Outcome simulate(const Scenario& scenario, bool trace = false,
                               std::vector<std::string>* log = nullptr);

// As few of its faults as still break a promise. REQUIRES: it does break one.
[[nodiscard]] Scenario shrunk(const Scenario& scenario);

}  // namespace disttf::sim
