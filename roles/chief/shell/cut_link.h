// The chief's channel to one ps for the cut that it keeps: opened for one save, closed after it.
//
// Not thread-safe: the thread that saves owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "net/transport/channel.h"
#include "net/transport/interrupt.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "roles/checkpoint/core/checkpoint_store.h"
#include "roles/run/task.h"

namespace disttf::roles {

// Which cut.
struct CutRequest {
  std::uint64_t sequence = 0;  // of the push that asked for it
  std::uint32_t generation = 0;
  bool now = false;   // the state as it is, rather than one that was kept; `sequence` is then 0
  bool again = true;  // a state that moves is asked for again, until `deadline`
  net::Deadline deadline = net::Deadline::max();
  bool replicated = false;  // a range has a second host
};

// A ps was lost while it was asked to write.
class PsLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Errors are the channel's; net::WireError::kUnexpected: the ps does not have the cut. After any of
// them the link is closed.
class CutLink {
 public:
  // All must outlive the link.
  CutLink(const Task& task, std::size_t ps_index, const net::Interrupt& interrupt);

  // With --ps_replicas 2: to whichever host is the primary.
  // Throws std::runtime_error when the state is asked for as it is, again and again, and nobody can
  // have it any more: each host of the range answers that no ps is there, or that it ends, or that
  // it holds nothing.
  [[nodiscard]] std::error_code open(const CutRequest& cut);
  // The step that the cut is of, or is made of now.
  [[nodiscard]] std::error_code find(const CutRequest& cut, std::uint64_t& step);
  // The same with its values. `places`: the ps's range of the parameters, which begins at float
  // `range_begin`, then that of each of the optimizer's tensors.
  [[nodiscard]] std::error_code fetch(const CutRequest& cut, std::size_t range_begin,
                                      std::span<const std::span<float>> places,
                                      std::uint64_t& step);
  // Has the ps begin to write it. The ps must have found it.
  [[nodiscard]] std::error_code start_writing(const CutRequest& cut, const SaveId& id);
  // Waits until it has. Throws std::runtime_error with a sentence that names the ps.
  [[nodiscard]] ShardFile await_written(net::Deadline deadline);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  [[nodiscard]] std::error_code ask(net::FrameKind kind, const CutRequest& cut,
                                    std::size_t body_bytes, net::FrameHeader& reply);
  [[nodiscard]] net::Deadline deadline_for(std::size_t bytes, net::Deadline latest) const;
  [[nodiscard]] std::error_code receive_text(std::uint64_t size, net::Deadline deadline,
                                             std::string& text);

  const Task& task_;
  const net::Interrupt& interrupt_;
  const net::TaskId ps_;
  const std::string name_;  // "ps 1 (10.0.0.7:2222)"
  std::unique_ptr<net::Channel> channel_;
};

}  // namespace disttf::roles
