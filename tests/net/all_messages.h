// Every kind of message, for tests that go through all of them.
#pragma once

#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"
#include "net/wire/replication.h"
#include "net/wire/snapshot_messages.h"

namespace disttf::net {

template <typename... Messages>
struct MessageList {
  // Calls `function` with an empty message of each type.
  template <typename Function>
  static void for_each(Function function) {
    (function(Messages{}), ...);
  }
};

using AllMessages =
    MessageList<Goodbye, Pull, AwaitStep, PushPull, Push, Parameters, PeerDiscovery, Work, Restore,
                Shutdown, Heartbeat, GetConfig, Publish, Config, GetStatus, StatusReply, Ack,
                Fenced, Written, NotWritten, HelloFrame, WelcomeFrame, RefusedFrame, ShareFrame,
                SharedFrame, ViewFrame, ReportFrame, ComputeFrame, ResultFrame, RunTaskFrame,
                TaskEndedFrame, SnapshotShardRequest, SnapshotShardReply, WriteSnapshotShardRequest,
                Watch, PublishToBackup, Fill, Update, Complete, Conclude, Best, TraceSteps,
                MetricsFrame, GetMetrics, MetricsReplyFrame>;

}  // namespace disttf::net
