// Transcripts: scripts of a few lines that strike tasks at chosen moments, with the log lines that
// the tasks must then print. Each is a file of tests/transcripts:
//
//   # What is tested, in prose.
//   cluster 2 ps, 3 workers, 10 steps, replicas
//   step 4: kill ps 0
//   SHUTDOWN 1: freeze receiver for 30 s
//   time 2.5: clog worker 1 to ps 0 for 5 s
//   ---
//   ps 0 starts, process 1
//   ...
//
// "workers" are the trainers; worker 0 is the chief. A cluster can have more properties: "seed N",
// "a disk", "a snapshot every N steps", "sharded checkpoints", "async", "N gradients a step", "N
// micro-batches", "at least N workers", "a launch with N restarts" (otherwise an orchestrator
// restarts tasks), "compute N ms".
//
// A fault strikes when the first gradient of that step is about to be delivered, when the nth frame
// of that kind is, or at a time in seconds. The faults: kill, vanish (the machine is lost),
// terminate, lose (killed and never restarted), freeze, replace, isolate A; break, cut (inside the
// next body), clog A to B; each may be "for N s". A and B are "ps N" or "worker N" or, for a frame,
// its sender or receiver. Other faults: "kill at operation N of the disk", "crash at operation N of
// the disk", "fail N operations of the disk", "rot".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/scenario.h"

namespace disttf::sim {

struct Transcript {
  std::vector<std::string> script;  // all lines of the script, including comments
  std::vector<std::string> log;     // the expected log
  Scenario scenario;
};
// Throws std::invalid_argument that quotes the malformed line.
[[nodiscard]] Transcript parse_transcript(std::string_view text);
// Returns the same file with the log lines of this build.
[[nodiscard]] std::string replay_transcript(const Transcript& transcript, bool trace = false);

}  // namespace disttf::sim
