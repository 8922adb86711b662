// What a certificate calls a task: a SPIFFE ID whose end is the task's job and index.
//
//   spiffe://example.org/mnist/worker/1     worker 1 of the run spiffe://example.org/mnist
//   spiffe://example.org/ns/ml/mnist-ps-0   ps 0 of spiffe://example.org/ns/ml/mnist, as pods and
//                                           containers are called
//   spiffe://example.org/mnist/worker       any worker of it
//
// Format: https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md, sections 2 and 3.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "net/wire/cluster.h"

namespace disttf::net {

inline constexpr std::size_t kMostSpiffeIdBytes = 2048;

struct SpiffeId {
  std::string run;  // what is before the job, without what separates them
  Job job = Job::kWorker;
  std::optional<std::size_t> index;  // none: any task of the job
  friend bool operator==(const SpiffeId&, const SpiffeId&) = default;

  // It may be this task of its run.
  [[nodiscard]] bool names(const TaskId& task) const noexcept {
    return job == task.job && (!index || *index == task.index);
  }
};

// nullopt: no SPIFFE ID, or one that names no task of a run.
[[nodiscard]] std::optional<SpiffeId> parse_spiffe_id(std::string_view uri);

}  // namespace disttf::net
