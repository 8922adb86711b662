// What connects the simulated processes: ordered connections that break, as TCP's do. Frames are
// delayed, held up per direction, lost with their connection, cut inside a body; an end may learn
// late that the other one is gone. Where a run has a secret, each begins with a handshake by it.
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

// What crosses a connection. The body is not copied: `owner` keeps it as it is. Or it does not
// cross, as it lies in memory of the sender's that the other end reads: `in_place`.
struct Frame {
  net::FrameHeader header;
  std::span<const std::byte> body = {};
  std::shared_ptr<const void> owner = {};
  std::uint64_t sum = 0;  // of a borrowed body when it was sent; 0: not taken
  net::BodyInPlace in_place = {};
  // A gradient of parameters that were overwritten meanwhile, or parameters that it has gone into.
  bool is_torn = false;
  // It lies in memory, header and all (LeftUpdates); what crosses is that somebody looks there.
  bool is_left = false;
};

// Memory in which a primary leaves updates for its backup, over one connection. It is there for the
// backup when the primary is not.
struct LeftUpdates {
  std::deque<Frame> frames;  // that have not been taken
  bool is_taken = true;      // the backup takes what is left; once it does not, it never does again
  // The frame by whose acknowledgement all that crossed has been read, as net::BodySlots' is.
  std::optional<std::uint64_t> unread = std::numeric_limits<std::uint64_t>::max();
};
[[nodiscard]] std::uint64_t sum_of(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] std::string_view name_of(net::FrameKind kind) noexcept;

class Process;

// Who is there: processes by node. Nodes are the ps in their order, then the trainers by rank,
// then the evaluator.
class Directory {
 public:
  Directory() = default;
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  virtual ~Directory() = default;
  // nullptr: nobody, now.
  [[nodiscard]] virtual Process* process_at(std::size_t node) = 0;
  // The frame with this header is about to reach that process: the time for a fault that waits for
  // it. False: it is not to be delivered now.
  virtual bool about_to_deliver(const net::FrameHeader& frame, Process& from, Process& to) = 0;
};

class Network final : public Actor {
 public:
  // How fast it is.
  struct Options {
    std::uint64_t mean_latency_us = 100;
    std::uint64_t slow_one_in = 256;  // frames take fifty times as long; 0: none
    std::uint64_t split_one_in = 4;   // bodies come later than their header
    std::uint64_t reset_one_in = 4;   // closes destroy what was still on its way
  };
  // `secrets`: nullptr, the run has none.
  Network(World& world, Directory& directory, const Options& options, SecretFiles* secrets)
      : world_(world), directory_(directory), options_(options), secrets_(secrets) {}

  // Opens a connection; HELLO is on its way. The dialer hears WELCOME, REFUSED, or that it closed.
  [[nodiscard]] ConnectionId dial(Process& from, std::size_t to_node, const net::Hello& hello);
  // No effect on one that this process has closed, or has been told is closed.
  void send(ConnectionId id, const Process& from, const net::FrameHeader& header, Bytes body = {});
  void send(ConnectionId id, const Process& from, Frame frame);
  // `finish`: what was sent before still arrives.
  void close(ConnectionId id, const Process& from, bool finish);
  [[nodiscard]] bool is_open(ConnectionId id, const Process& from) const;
  // Somebody was there to take it.
  [[nodiscard]] bool was_accepted(ConnectionId id) const { return connections_[id]->accepted; }

  // Of that connection, from a primary to its backup.
  [[nodiscard]] LeftUpdates& left_updates(ConnectionId id) { return left_[id]; }
  [[nodiscard]] bool has_left_updates(ConnectionId id) const { return left_.contains(id); }

  // The process is no more. `silently`: its machine is: nobody is told.
  void forget(const Process& process, bool silently);

  // Faults. How often the one it names was there to be hurt: connections of that node.
  [[nodiscard]] std::vector<ConnectionId> open_between(std::size_t node, std::size_t other) const;
  // Neither direction carries anything any more. Each end learns of it after so long.
  void break_now(ConnectionId id, Duration dialer_learns, Duration listener_learns);
  // The next body to the listener is cut.
  void cut_next_body(ConnectionId id) { at(id).cuts = true; }
  // What goes from one node to the other, connections to come included, waits until then.
  void clog(std::size_t from, std::size_t to, Time until);

  void on_event(std::uint32_t what, std::uint64_t a, std::uint64_t b) override;

 private:
  static constexpr std::size_t kDialer = 0;
  static constexpr std::size_t kListener = 1;
  struct Flying {
    Frame frame;
    bool closes = false;  // no frame: the end of all
  };
  // By the secret: of who dials, what it offers; of who is dialled, whether it has that.
  enum class Handshake : std::uint8_t { kBegun, kAnswered, kDone };
  struct Connection {
    std::array<std::size_t, 2> nodes{};
    std::array<Process*, 2> ends{};  // nullptr: not there yet, or closed here, or told of the end
    std::array<std::vector<Flying>, 2> flying;  // by the end that sent them: a few
    std::array<Time, 2> last{};
    std::array<std::uint64_t, 2> sent{};
    net::Hello hello;
    Handshake handshake = Handshake::kDone;
    net::Fingerprint offered{};
    Process* answered_by = nullptr;
    bool accepted = false;
    bool broken = false;
    bool cuts = false;
    bool half_read = false;  // the listener has had the header of the frame in front
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
  // By node: those at whose end it may still be, in their order.
  std::vector<std::vector<ConnectionId>> of_node_;
  std::map<std::pair<std::size_t, std::size_t>, Time> clogs_;
  std::map<ConnectionId, LeftUpdates> left_;
};

}  // namespace disttf::sim
