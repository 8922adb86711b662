// The chief's channel to one ps for its part of a snapshot, which ps and frames call a cut, and for
// those of the next ones: a ps closes it when it has not been asked for anything for a while. Where
// the two share a machine the ps leaves the values in memory.
//
// Not thread-safe: the thread that saves owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <variant>

#include "net/transport/channel.h"
#include "net/transport/gradient_memory.h"
#include "net/transport/interrupt.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/chief/core/snapshot_coordinator.h"
#include "roles/run/task.h"

namespace disttf::roles {

// Errors are the channel's; net::WireError::kUnexpected: the ps does not have the snapshot. After
// any of them the link is closed.
class SnapshotLink {
 public:
  // All must outlive the link. `state_bytes`: of what is to be fetched; 0: nothing is.
  SnapshotLink(const Task& task, std::size_t ps_index, std::size_t state_bytes,
               const net::Interrupt& interrupt);

  // To this host of the ps's range, anew. Throws Failure where it is this process's own limits that
  // keep it from connecting.
  [[nodiscard]] HostContact connect(const SnapshotRequest& request, std::uint8_t replica);
  // The step that the snapshot is of, or is made of now.
  [[nodiscard]] std::error_code find(const SnapshotRequest& request, std::uint64_t& step);
  // The same with its values. `places`: the ps's range of the parameters, which begins at float
  // `range_begin`, then that of each of the optimizer's tensors.
  [[nodiscard]] std::error_code fetch(const SnapshotRequest& request, std::size_t range_begin,
                                      std::span<const std::span<float>> places,
                                      std::uint64_t& step);
  // Has the ps begin to write it. The ps must have found it.
  [[nodiscard]] std::error_code start_writing(const SnapshotRequest& request, const SaveId& id);
  // Waits until it has.
  [[nodiscard]] std::variant<ShardFile, ShardNotWritten> await_written(net::Deadline deadline);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::error_code ask(net::FrameKind kind, const SnapshotRequest& request,
                                    std::size_t body_bytes, net::FrameHeader& reply);
  [[nodiscard]] net::Deadline deadline_for(std::size_t bytes, net::Deadline latest) const;
  [[nodiscard]] std::error_code receive_text(std::uint64_t size, net::Deadline deadline,
                                             std::string& text);

  const Task& task_;
  const net::Interrupt& interrupt_;
  const net::TaskId ps_;
  const std::string name_;  // "ps 1 (10.0.0.7:2222)"
  const std::size_t state_bytes_;
  std::unique_ptr<net::GradientMemory> memory_;  // for channel_ to agree on another; may be null
  std::unique_ptr<net::Channel> channel_;
};

}  // namespace disttf::roles
