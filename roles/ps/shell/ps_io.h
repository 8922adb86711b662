// What a ps's shell needs of the world around it: time, connections, memory, threads, files, and
// the process. A real ps has sockets, shared memory and the system's clock (parameter_server.cc); a
// simulated one has none of them (tests/sim/ps_process.h), and the same shell.
//
// Everything runs on the thread that runs context(), except where noted.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "net/tcp/frame_connection.h"
#include "roles/ps/core/ps_core.h"
#include "run/effects.h"
#include "run/process/tensor_memory.h"
#include "storage/checkpoint/shell/shard_writer.h"

namespace disttf::roles {

using ConnectionPtr = std::shared_ptr<net::FrameConnection>;

// A wait that can be ended early. All coroutines that wait on one alarm wait for the same time.
class Alarm {
 public:
  Alarm() = default;
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  virtual ~Alarm() = default;
  // Returns at that time, or earlier once wake() has been called. time_point::max(): only then.
  virtual asio::awaitable<void> wait_until(Clock::time_point time) = 0;
  // Ends the waits that have begun.
  virtual void wake() = 0;
};

class PsIo {
 public:
  struct Sizes {
    // Shards from this size on, in bytes, are made on another thread: the system provides 1 GB of
    // memory in about half a second, and a smaller shard takes a few milliseconds.
    std::uint64_t large_shard = std::uint64_t{16} << 20U;
    // Floats of a snapshot shard that are copied in one piece: 16 KiB, about 2 us. Up to 16
    // handlers run between two polls of trainers' memory (parameter_server.cc), so a push waits for
    // at most that many pieces.
    std::size_t snapshot_piece = std::size_t{1} << 12U;
  };
  explicit PsIo(Sizes sizes) : sizes_(sizes) {}
  PsIo(const PsIo&) = delete;
  PsIo& operator=(const PsIo&) = delete;
  virtual ~PsIo() = default;

  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] const Sizes& sizes() const noexcept { return sizes_; }

  // --- time
  [[nodiscard]] virtual Clock::time_point now() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Alarm> make_alarm() = 0;
  // A number that no other process draws.
  [[nodiscard]] virtual std::uint64_t random() = 0;

  // --- connections
  // Makes one attempt to reach the other host of a range, `replica` of it, over a replica channel;
  // limited in time. nullptr: not welcomed.
  virtual asio::awaitable<ConnectionPtr> dial_host(std::size_t range, std::uint8_t replica) = 0;
  // Offers the backup memory for updates of that shape. False: there is none, and they are sent.
  virtual bool offer_updates(net::FrameConnection& backup, const UpdateShape& shape) = 0;

  // --- memory
  // Throws Failure if the machine has less than that for a shard.
  virtual void require_memory(std::uint64_t bytes) = 0;
  // For an arena of `floats` floats of the core's range `replica`. nullptr: the shard allocates its
  // own. Callable from any thread.
  [[nodiscard]] virtual std::shared_ptr<net::InPlaceMemory> make_parameter_memory(
      std::uint8_t replica, std::size_t floats) = 0;
  // Arena::streams of a shard in such memory.
  [[nodiscard]] virtual bool streams() const = 0;
  // For a snapshot shard, as tensor_memory.h's.
  [[nodiscard]] virtual std::shared_ptr<net::InPlaceMemory> make_snapshot_memory(
      std::size_t bytes) = 0;

  // --- threads and files
  // Runs `work` on another thread. The result's destruction waits for its end. Throws
  // std::system_error.
  [[nodiscard]] virtual std::shared_ptr<void> start_thread(std::function<void()> work) = 0;
  // Writes to the chief's checkpoint directory.
  [[nodiscard]] virtual std::unique_ptr<ShardFileWriter> make_writer() = 0;

  // --- the process
  virtual void log(const Note& note) = 0;
  virtual void close_port() = 0;
  // The run is over, and the process stays.
  virtual void stay_idle() = 0;
  // No handler of context() runs after the current one.
  virtual void end(const EndProcess& end) = 0;

 private:
  const Sizes sizes_;
  asio::io_context context_{1};
};

}  // namespace disttf::roles
