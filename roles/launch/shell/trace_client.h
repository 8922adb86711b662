// `disttf trace`: asks a running launch for a timeline of some steps, and brings the file.
#pragma once

#include <cstdint>
#include <string>

namespace disttf::roles {

struct TraceOptions {
  std::string socket;  // of the launch
  std::uint32_t steps = 50;
  std::string output = {};  // empty: it stays where the chief has put it
  bool json = false;
};

// Waits until the steps have been made, and prints where the timeline is. Returns kDone; throws
// Failure with one sentence: kError where there is none, or it cannot be brought; kLostPeers where
// the launch has gone meanwhile.
int run_trace(const TraceOptions& options);

}  // namespace disttf::roles
