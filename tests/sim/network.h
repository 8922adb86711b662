// Connects the simulated processes by ordered connections that can fail as TCP's do. Frames are
// delayed, held up per direction, lost with their connection, or cut inside a body. An end may
// learn late that the other one is gone. If the run has a secret, each connection begins with a
// handshake by it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/wire/handshake.h"
#include "roles/ps/core/outbox.h"
#include "tests/sim/secret_files.h"
#include "tests/sim/world.h"

namespace disttf::sim {

using roles::ConnectionId;
using Bytes = std::vector<std::byte>;

// A frame on a connection. The body is not copied: `owner` keeps it alive. `in_place` is a body
// that lies in the sender's memory, which the other end reads.
struct Frame {
  net::FrameHeader header;
  std::span<const std::byte> body = {};
  std::shared_ptr<const void> owner = {};
  std::uint64_t sum = 0;  // checksum of a borrowed body when it was sent; 0: none
  net::BodyInPlace in_place = {};
  // Made from parameters that were overwritten meanwhile: a gradient of them, or parameters that
  // such a gradient was applied to.
  bool is_torn = false;
  // The whole frame lies in memory (LeftUpdates); only a notification crosses the connection.
  bool is_left = false;
};

// Memory of one connection in which a primary leaves updates for its backup, and the backup leaves
// acknowledgements. It outlives both.
struct LeftUpdates {
  std::size_t offered = 0;  // bytes
  bool is_agreed = false;
  std::deque<Frame> frames;           // not taken yet
  std::deque<net::FrameHeader> acks;  // likewise
  bool is_taken = false;  // the backup takes updates from memory; once it stops, it never resumes
  // A parked end is sent a notification.
  bool is_backup_parked = true;
  bool is_primary_parked = true;
  // The request whose acknowledgement shows that all frames sent so far were read, as in
  // net::BodyRing.
  std::optional<std::uint64_t> unread = std::numeric_limits<std::uint64_t>::max();
};
[[nodiscard]] std::uint64_t sum_of(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] std::string_view name_of(net::FrameKind kind) noexcept;

class Process;

// The running processes, by node. Nodes are the ps in their order, then the trainers by rank, then
// the evaluator.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  virtual ~Directory() = default;
  // Returns nullptr if no process runs there now.
  [[nodiscard]] virtual Process* process_at(std::size_t node) = 0;
  // The frame with this header is about to reach `to`, so a fault that waits for it strikes now.
  // Returns false if the frame must not be delivered now.
  virtual bool about_to_deliver(const net::FrameHeader& frame, Process& from, Process& to) = 0;
};

class Network final : public Actor {
 public:
  // Latencies and probabilities.
  struct Options {
    std::uint64_t mean_latency_us = 100;
    std::uint64_t slow_one_in = 256;  // one frame in so many takes fifty times as long; 0: none
    std::uint64_t split_one_in = 4;   // one body in so many arrives later than its header
    std::uint64_t reset_one_in = 4;   // one close in so many destroys the frames in flight
  };
  // `secrets`: nullptr if the run has none.
  Network(World& world, Directory& directory, const Options& options, SecretFiles* secrets)
      : world_(world), directory_(directory), options_(options), secrets_(secrets) {}

  // Opens a connection and sends HELLO. The dialer receives WELCOME or REFUSED, or is notified that
  // the connection is closed.
  [[nodiscard]] ConnectionId dial(Process& from, std::size_t to_node, const net::Hello& hello);
  // No effect if this process has closed the connection or was notified that it is closed.
  void send(ConnectionId id, const Process& from, const net::FrameHeader& header, Bytes body = {});
  void send(ConnectionId id, const Process& from, Frame frame);
  // `finish`: frames sent before still arrive.
  void close(ConnectionId id, const Process& from, bool finish);
  [[nodiscard]] bool is_open(ConnectionId id, const Process& from) const;
  // Returns whether a process has accepted the connection.
  [[nodiscard]] bool was_accepted(ConnectionId id) const { return connections_[id]->accepted; }

  // The memory of that connection from a primary to its backup.
  [[nodiscard]] LeftUpdates& left_updates(ConnectionId id) { return left_[id]; }

  // The process is dead. `silently`: its machine is, too, so the other ends are not notified.
  void forget(const Process& process, bool silently);

  // --- faults

  // Returns the open connections between two nodes.
  [[nodiscard]] std::vector<ConnectionId> open_between(std::size_t node, std::size_t other) const;
  // Neither direction carries anything from now on. Each end is notified after that time.
  void break_now(ConnectionId id, Duration dialer_learns, Duration listener_learns);
  // Cuts the next body to the listener.
  void cut_next_body(ConnectionId id) { at(id).cuts = true; }
  // Delays everything from one node to the other, also over later connections, until then.
  void clog(std::size_t from, std::size_t to, Time until);

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;

 private:
  static constexpr std::size_t kDialer = 0;
  static constexpr std::size_t kListener = 1;
  struct Flying {
    Frame frame;
    bool closes = false;  // no frame, but the end of the connection
  };
  // State of the handshake by the secret: begun (the dialer offers a secret), answered (the
  // listener has checked it), done.
  enum class Handshake : std::uint8_t { kBegun, kAnswered, kDone };
  struct Connection {
    std::array<std::size_t, 2> nodes{};
    // nullptr: not connected yet, closed by that end, or notified of the end.
    std::array<Process*, 2> ends{};
    std::array<std::vector<Flying>, 2> flying;  // by the sending end
    std::array<Time, 2> last{};
    std::array<std::uint64_t, 2> sent{};
    net::Hello hello;
    Handshake handshake = Handshake::kDone;
    net::Fingerprint offered{};
    Process* answered_by = nullptr;
    bool accepted = false;
    bool broken = false;
    bool cuts = false;
    bool half_read = false;  // the listener has received the header of the first frame
  };

  [[nodiscard]] Connection& at(ConnectionId id) { return *connections_[id]; }
  void remember(std::size_t node, ConnectionId id);
  void fly(ConnectionId id, std::size_t end, Flying flying);
  void deliver(ConnectionId id, std::size_t end);
  void deliver_first(ConnectionId id, std::size_t end);
  void shake_hands(ConnectionId id, Process& listener);
  void be_taken(ConnectionId id);
  void be_turned_away(ConnectionId id);
  void hand_over(ConnectionId id, std::size_t end);
  void learn(ConnectionId id, std::size_t end);
  [[nodiscard]] Duration latency(ConnectionId id, std::uint64_t number) const;
  [[nodiscard]] Time clogged_until(std::size_t from, std::size_t to) const;

  World& world_;
  Directory& directory_;
  const Options options_;
  SecretFiles* const secrets_;
  std::vector<std::unique_ptr<Connection>> connections_{1};  // by id; 0 is none
  // By node: the connections that it may still be an end of, oldest first.
  std::vector<std::vector<ConnectionId>> of_node_;
  std::map<std::pair<std::size_t, std::size_t>, Time> clogs_;
  std::map<ConnectionId, LeftUpdates> left_;
};

}  // namespace disttf::sim
