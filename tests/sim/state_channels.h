// What a simulated ps does over state channels, as roles/ps/shell/range_server_snapshots.cc and
// storage/checkpoint/shell/shard_writer.h do: it sends its snapshot shard to the chief, or writes
// it to the --train_dir itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "roles/ps/core/range_replica.h"
#include "tests/sim/disk.h"
#include "tests/sim/process.h"

namespace disttf::sim {

class StateChannels {
 public:
  // `ps` owns this. When a write is complete, it gets an event `written` and must call written()
  // with the event's argument. `disk`: nullptr if there is none.
  StateChannels(World& world, Network& network, Process& ps, SimulatedDisk* disk,
                std::uint32_t written)
      : world_(world), network_(network), ps_(ps), disk_(disk), written_(written) {}

  void header(ConnectionId id, roles::RangeReplica& range, const net::FrameHeader& header);
  void body(ConnectionId id, roles::RangeReplica& range, std::span<const std::byte> body);
  // Completes the write of that range. Throws KilledAtDisk.
  void written(std::size_t range);

 private:
  // What is being written.
  struct Writing {
    ConnectionId id = 0;
    net::FrameHeader header;
    std::uint64_t attempt = 0;
    std::size_t shard = 0;
    math::Range range;
    std::vector<std::string> optimizer;
    std::shared_ptr<const roles::SnapshotShard> snapshot;
  };
  void answer(ConnectionId id, net::FrameKind kind, const net::FrameHeader& to, Bytes body = {});
  [[nodiscard]] roles::ShardFile write(const Writing& order);
  void begin(Writing order);

  World& world_;
  Network& network_;
  Process& ps_;
  SimulatedDisk* const disk_;
  const std::uint32_t written_;
  std::map<ConnectionId, net::FrameHeader> orders_;  // requests whose bodies have not arrived yet
  std::map<std::size_t, Writing> writing_;           // by range: each has its own writer
  std::map<std::size_t, std::vector<Writing>> waiting_;  // for the writer, in order
  std::uint64_t writes_ = 0;
};

}  // namespace disttf::sim
