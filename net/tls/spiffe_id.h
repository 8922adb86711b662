// The SPIFFE ID by which a certificate names a task: it ends with the task's job and index.
//
//  spiffe://example.org/mnist/worker/1     worker 1 of the run spiffe://example.org/mnist
//  spiffe://example.org/ns/ml/mnist-ps-0   ps 0 of spiffe://example.org/ns/ml/mnist, in the form of
//                                          pod and container names
//  spiffe://example.org/mnist/worker       any worker of it
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
  std::string run;  // the part before the job, without the separator
  Job job = Job::kWorker;
  std::optional<std::size_t> index;  // nullopt: any task of the job
  friend bool operator==(const SpiffeId&, const SpiffeId&) = default;

  // Whether the ID permits this task of its run.
  [[nodiscard]] bool names(const TaskId& task) const noexcept {
    return job == task.job && (!index || *index == task.index);
  }
};

// Returns nullopt for text that is no SPIFFE ID, or that names no task of a run.
[[nodiscard]] std::optional<SpiffeId> parse_spiffe_id(std::string_view uri);

}  // namespace disttf::net
