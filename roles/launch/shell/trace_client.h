// `disttf trace`: requests a timeline of some steps from a running launch, and fetches the file.
#pragma once

#include <cstdint>
#include <string>

namespace disttf::roles {

struct TraceOptions {
  std::string socket;  // of the launch
  std::uint32_t steps = 50;
  std::string output = {};  // empty: the file stays where the chief wrote it
  bool json = false;
};

// Waits for the steps, and prints the path of the timeline. Returns kDone. Throws Failure with one
// sentence: kError if there is no timeline, or it cannot be fetched; kLostPeers if the launch has
// gone.
int run_trace(const TraceOptions& options);

}  // namespace disttf::roles
