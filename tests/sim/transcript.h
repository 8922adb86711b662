// Transcripts: a run of a few lines that hurts tasks at chosen moments, and what they must say
// then. Each is a file of tests/transcripts:
//
//   # What is promised, in words.
//   cluster 2 ps, 3 workers, 10 steps, replicas
//   step 4: kill ps 0
//   SHUTDOWN 1: freeze receiver for 30 s
//   time 2.5: clog worker 1 to ps 0 for 5 s
//   ---
//   ps 0 starts, process 1
//   ...
//
// "workers" are the trainers; worker 0 is the chief. Of the cluster may besides be said: "seed N",
// "a disk", "a snapshot every N steps", "sharded checkpoints", "async", "N gradients a step", "N
// micro-batches", "at least N workers", "a launch with N restarts" (else an orchestrator starts
// tasks again), "compute N ms".
//
// A fault comes when a gradient of that step is about to be delivered for the first time, when the
// nth frame of that kind is, or at a time in seconds. What: kill, vanish (its machine), terminate,
// lose (it is killed, and nobody starts it again), freeze, replace, isolate A; break, cut (inside
// the next body), clog A to B; each may be "for N s". A and B: ps N, worker N, or of a frame its
// sender, its receiver. Or "kill at operation N of the disk", "crash at operation N of the disk",
// "fail N operations of the disk", "rot".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/scenario.h"

namespace disttf::sim {

struct Transcript {
  std::vector<std::string> script;  // its lines, comments included
  std::vector<std::string> log;     // that is expected
  Scenario scenario;
};
// Throws std::invalid_argument with the line that it does not understand.
[[nodiscard]] Transcript parse_transcript(std::string_view text);
// The same file with what tasks say now.
[[nodiscard]] std::string replay_transcript(const Transcript& transcript, bool trace = false);

}  // namespace disttf::sim
