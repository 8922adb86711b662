// A connection of a simulated ps: what the ps's shell reads and sends goes over the simulated
// network, and bodies that lie in shared memory through LeftUpdates (tests/sim/network.h).
//
// A frame that arrives while no coroutine reads waits here, as in the operating system.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/tcp/frame_connection.h"
#include "tests/sim/network.h"
#include "tests/sim/waiter.h"

namespace disttf::sim {

class PsMemory;
class PsProcess;

class PsConnection final : public net::FrameConnection,
                           public std::enable_shared_from_this<PsConnection> {
 public:
  // Accepted: `hello` is the peer's. Dialed: `hello` names the peer, and has no incarnation.
  // `range`: the number of the range that it is about.
  PsConnection(PsProcess& process, ConnectionId id, const net::Hello& hello, std::size_t range);
  ~PsConnection() override;
  PsConnection(const PsConnection&) = delete;
  PsConnection& operator=(const PsConnection&) = delete;

  // --- for the process

  [[nodiscard]] std::size_t range() const noexcept { return range_; }
  // The newest PUSH_PULL that was read.
  [[nodiscard]] const net::FrameHeader& push() const noexcept { return push_; }
  // The header of a frame has arrived; of one that was sent here by a listener, its body, too.
  void header_came(const Frame& frame);
  // So many bytes of that frame's body have arrived.
  void body_came(const Frame& frame, std::size_t bytes);
  // The other end has closed the connection, or it is broken.
  void was_closed();
  // Ends reads that have waited for too long. Returns when to call it again. `was_frozen`: the
  // process did not run for a while, so peers get their time once more.
  [[nodiscard]] Time time_out(bool was_frozen);
  // Checks that the process may sleep: no frame lies in memory that a read waits for, and the peer
  // sees that it has to wake this process.
  void check_sleep() const;
  // Ends it in the middle of whatever it does.
  void drop() { reader_.drop(); }
  // Reads the answer to the HELLO that was sent. False: it is no WELCOME.
  asio::awaitable<bool> is_welcomed(std::chrono::milliseconds timeout);
  // Offers the peer this many bytes of memory for updates.
  void offer_memory(std::size_t bytes);
  // Another connection has agreed on the memory that this one used.
  void forget_memory();

  // --- for the shell

  [[nodiscard]] bool is_open() const noexcept override;
  asio::awaitable<std::error_code> read_header(net::FrameHeader& header,
                                               std::chrono::milliseconds timeout) override;
  asio::awaitable<std::error_code> read_body(std::span<std::byte> body,
                                             std::chrono::milliseconds timeout) override;
  asio::awaitable<std::error_code> discard_body(std::uint64_t bytes,
                                                std::chrono::milliseconds timeout) override;
  void send(net::FrameHeader header, std::vector<std::byte> owned = {}) override;
  bool send_borrowed(net::FrameHeader header, std::span<const std::byte> body,
                     std::shared_ptr<const void> owner) override;
  Delivery send_acknowledged(net::FrameHeader header, std::vector<std::byte> head,
                             std::span<const std::byte> rest) override;
  bool acknowledge(const net::Ack& ack) override;
  asio::awaitable<bool> drained(std::chrono::milliseconds timeout) override;
  void answer_offers(std::function<net::InPlaceTerms()> terms) override;
  [[nodiscard]] bool shares_memory() const noexcept override { return has_agreed_; }
  bool poll() override;
  void set_parked(bool parked) noexcept override;
  [[nodiscard]] std::span<std::byte> place_for(std::size_t head, std::size_t rest) override;
  [[nodiscard]] Rest take_rest(net::FrameHeader& header) override;
  void refuse(const net::Refusal& refusal, std::uint64_t request_id = 0) override;
  void finish() override { end(/*finish=*/true); }
  void close() noexcept override { end(/*finish=*/false); }

 private:
  // A frame, and how much of its body has arrived.
  struct Incoming {
    Frame frame;
    std::size_t arrived = 0;
    std::size_t read = 0;
  };

  [[nodiscard]] bool is_dialed() const noexcept { return hello_.incarnation == 0; }
  [[nodiscard]] LeftUpdates& left() const;
  // Whether a frame lies in memory that a read waits for.
  [[nodiscard]] bool awaits_left() const;
  // Takes what lies in memory. False: nothing does.
  [[nodiscard]] bool take_left(net::FrameHeader& header);
  // Takes the next frame that has arrived.
  void take_frame(net::FrameHeader& header);
  // Handles a frame of the agreement. False: it is none.
  [[nodiscard]] bool negotiate(const net::FrameHeader& header);
  [[nodiscard]] bool agree();
  void was_read(const net::FrameHeader& header);
  void begin_wait(std::chrono::milliseconds timeout);
  [[nodiscard]] std::error_code fail(std::error_code error);
  // Reads the body's next bytes into `body`; without one, discards them.
  asio::awaitable<std::error_code> read(std::byte* body, std::size_t size,
                                        std::chrono::milliseconds timeout);
  // Fails if the connection ended, else waits for what comes next.
  asio::awaitable<std::error_code> more();
  void send_frame(Frame frame);
  void end(bool finish) noexcept;

  PsProcess& process_;
  const ConnectionId id_;
  const std::size_t range_;
  bool is_closed_ = false;
  bool has_ended_ = false;  // at the other end, or on the way
  bool timed_out_ = false;
  bool is_excused_ = false;
  std::deque<Incoming> incoming_;
  Incoming current_;  // the frame whose header was read last
  Waiter reader_;
  Time deadline_ = Time::max();
  std::chrono::milliseconds timeout_{0};
  net::FrameHeader last_;  // the header that was read last
  net::FrameHeader push_;
  // Shared memory.
  std::function<net::InPlaceTerms()> terms_;
  bool has_agreed_ = false;
  std::weak_ptr<net::InPlaceMemory> memory_;  // this ps's, as agreed
  std::size_t offered_ = 0;                   // bytes; 0: none were offered
  std::vector<std::byte> place_;              // of the next update
  std::uint64_t places_ = 0;
};

}  // namespace disttf::sim
