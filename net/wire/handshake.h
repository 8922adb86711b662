// The bodies of HELLO, WELCOME and REFUSED; docs/wire_format.md has an example. encode() and
// decode(): net/wire/body_fields.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "net/wire/body_fields.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"

namespace disttf::net {

// The purpose of a connection. The step channel belongs to the computing thread and may be idle for
// minutes. The control channel carries heartbeats, so a timeout on it means that the peer is lost.
// A probe only checks whether the task runs, and is closed after WELCOME. A state channel brings
// the chief the training state beside the steps. With --ps_replicas, a replica channel carries the
// primary's updates to a range's backup, and a view channel tells a host its replica role. An order
// channel goes to a server, which evaluates an expression (net/wire/server_requests.h), or runs its
// task of a run as long as the channel lasts (net/wire/server_requests.h); a peer that is no task
// of the cluster uses it under the name of an evaluator.
enum class ChannelPurpose : std::uint8_t {
  kStep = 1,
  kControl = 2,
  kProbe = 3,
  kState = 4,
  kReplica = 5,
  kView = 6,
  kRequest = 7,
};

// The newest answer that a trainer's process has received from a range, from either host. A host
// that serves the range in that generation has this state, too, or has lost the range's state.
struct LastAnswer {
  Generation generation = 0;  // 0: none
  std::uint64_t step = 0;     // of the parameters
  std::uint64_t push = 0;     // number of its newest answered push; 0: none
  friend bool operator==(const LastAnswer&, const LastAnswer&) = default;
};

struct Hello {
  ClusterHash cluster{};  // must equal the listener's
  TaskId from;            // the sender
  TaskId to;              // the task that it means to reach
  ChannelPurpose purpose = ChannelPurpose::kStep;
  // To a ps: which of the ranges it hosts. 0: its own, 1: that of the ps before it.
  std::uint8_t replica = 0;
  // Of the sender's process. It tells a restarted task from its predecessor, and which of two
  // processes of one trainer is the newer one: the higher. See run/task.h.
  std::uint64_t incarnation = 0;
  LastAnswer last = {};  // on a step channel

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.array("cluster hash", self.cluster);
    fields.u64("incarnation", self.incarnation);
    fields.u64("last answer: generation", self.last.generation);
    fields.u64("last answer: step", self.last.step);
    fields.u64("last answer: newest push", self.last.push);
    fields.u32("from: index", self.from.index);
    fields.u32("to: index", self.to.index);
    fields.u8("from: job", self.from.job, Job::kPs, Job::kEvaluator);
    fields.u8("to: job", self.to.job, Job::kPs, Job::kEvaluator);
    fields.u8("purpose", self.purpose, ChannelPurpose::kStep, ChannelPurpose::kRequest);
    fields.u8("replica", self.replica, 0, 1);
  }
  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class ShardState : std::uint8_t {
  kEmpty = 0,     // waits for the chief's configuration and parameters
  kReady = 1,     // holds parameters
  kFinished = 2,  // the run is over
};

// The replica role of a ps for a range that two ps host.
enum class ReplicaRole : std::uint8_t {
  kOnly = 0,     // has no view with another host
  kPrimary = 1,  // serves trainers
  kBackup = 2,   // keeps a copy of the primary's state
};

struct Welcome {
  std::uint64_t incarnation = 0;  // the listener's, or that of the process in which its state began
  ShardState state = ShardState::kEmpty;
  ReplicaRole replica_role = ReplicaRole::kOnly;
  Generation generation = 0;
  std::uint64_t step = 0;
  std::uint32_t heartbeat_ms = 0;  // interval of the listener's heartbeats while a request waits

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("incarnation", self.incarnation);
    fields.u64("step", self.step);
    fields.u64("generation", self.generation);
    fields.u32("heartbeat_ms", self.heartbeat_ms);
    fields.u8("state", self.state, ShardState::kEmpty, ShardState::kFinished);
    fields.u8("replica role", self.replica_role, ReplicaRole::kOnly, ReplicaRole::kBackup);
    fields.reserved(2);
  }
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// Exit codes that net/ itself uses in a refusal (docs/operations.md lists all).
inline constexpr std::uint8_t kExitError = 1;
inline constexpr std::uint8_t kExitMisconfigured = 2;
inline constexpr std::uint8_t kExitRestartMe = 138;

inline constexpr std::size_t kMaxSentenceBytes = 4096;

struct Refusal {
  std::uint8_t exit_code = 1;  // what the refused task should exit with
  std::string sentence;        // UTF-8, at most kMaxSentenceBytes
  // Not 0: a trainer was refused because another process is that trainer; this is the highest
  // incarnation that the listener has recorded.
  std::uint64_t replaced_by = 0;

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u8("exit code", self.exit_code);
    fields.reserved(3);
    fields.u64("replaced by", self.replaced_by);
    fields.text("sentence", self.sentence, kMaxSentenceBytes);
  }
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

}  // namespace disttf::net
