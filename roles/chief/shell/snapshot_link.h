// The chief's channel to one ps for its shard of a snapshot, and of the following ones: a ps closes
// it after a while without a request. If both share a machine, the ps leaves the values in memory.
//
// Not thread-safe: the saving thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <variant>

#include "net/tcp/channel.h"
#include "net/tcp/gradient_memory.h"
#include "net/waiting/interrupt.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "roles/chief/core/snapshot_coordinator.h"
#include "run/task.h"
#include "storage/checkpoint/core/checkpoint_store.h"

namespace disttf::roles {

// Errors are those of the channel; net::WireError::kUnexpected: the ps does not have the snapshot.
// After any error the link is closed.
class SnapshotLink {
 public:
  // All must outlive the link. `state_bytes`: of what is to be fetched; 0: nothing.
  SnapshotLink(const Task& task, std::size_t ps_index, std::size_t state_bytes,
               const net::Interrupt& interrupt);

  // Connects again, to this host of the ps's range. Throws Failure if this process's own limits
  // prevent that.
  [[nodiscard]] HostContact connect(const SnapshotRequest& request, std::uint8_t replica);
  // Finds the step of the snapshot, or of the one that is taken now.
  [[nodiscard]] std::error_code find(const SnapshotRequest& request, std::uint64_t& step);
  // The same, with its values. `places`: destinations for the ps's range of the parameters, which
  // begins at float `range_begin`, then for that of each of the optimizer's tensors.
  [[nodiscard]] std::error_code fetch(const SnapshotRequest& request, std::size_t range_begin,
                                      std::span<const std::span<float>> places,
                                      std::uint64_t& step);
  // Tells the ps to begin writing it. REQUIRES: the ps has found it.
  [[nodiscard]] std::error_code start_writing(const SnapshotRequest& request, const SaveId& id);
  // Waits until it has written it.
  [[nodiscard]] std::variant<ShardFile, ShardNotWritten> await_written(net::Deadline deadline);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::error_code ask(net::FrameKind kind, const SnapshotRequest& request,
                                    std::size_t body_bytes, net::FrameHeader& reply);
  [[nodiscard]] net::Deadline deadline_for(std::size_t bytes, net::Deadline latest) const;
  [[nodiscard]] std::error_code receive_text(std::uint64_t size, std::size_t most,
                                             net::Deadline deadline, std::string& text);

  const Task& task_;
  const net::Interrupt& interrupt_;
  const net::TaskId ps_;
  const std::string name_;  // "ps 1 (10.0.0.7:2222)"
  const std::size_t state_bytes_;
  // For agreeing on shared memory with channel_; may be null.
  std::unique_ptr<net::GradientMemory> memory_;
  std::unique_ptr<net::Channel> channel_;
};

}  // namespace disttf::roles
