// Listens at the address of a ps and relays every connection to the port where that ps really
// listens, frame by frame and both ways, until the test holds a frame back. So a task can be killed
// at one exact moment of its conversation, without sleeping. It can also simulate a slow link.
//
// Two threads for each connection, one for each direction. A frame is relayed in pieces as it
// arrives.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "tests/process/cluster_on_loopback.h"

namespace disttf::test_process {

// A frame, after the HELLO of its connection, that is about to be relayed.
struct Passing {
  const net::Hello& hello;  // from the connecting task
  bool to_ps = false;       // else from the ps
  const net::FrameHeader& header;
};

class Relay {
 public:
  // Returns how many of the frame's bytes pass. If fewer than all, nothing more passes in this
  // direction; the other direction stays open, and both end when the task closes. Several threads
  // call it at once.
  using Rule = std::function<std::size_t(const Passing&)>;

  // Returns how many bytes of such a frame pass in a second; 0: no limit. Called like a rule.
  using Pace = std::function<double(const Passing&)>;

  // In front of ps `index` of the cluster. Throws std::system_error.
  Relay(const ClusterOnLoopback& cluster, std::size_t index, Rule rule, Pace pace = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Returns --listen_fd=N for the ps. The descriptor is closed with the relay.
  [[nodiscard]] std::string listen_flag() const;

 private:
  void accept_connections();
  void serve(int task);
  bool pass_hello(int task, int ps, net::Hello& hello) const;
  void pass_frames(int from, int to, const net::Hello& hello, bool to_ps) const;

  Rule rule_;
  Pace pace_;
  ReservedPort ps_port_;
  data::FileDescriptor inherited_;  // ps_port_'s socket without close-on-exec
  data::FileDescriptor listener_;
  std::mutex mutex_;
  std::set<int> sockets_;             // open ones; guarded by mutex_
  std::vector<std::thread> threads_;  // made by the accepting thread; joined after it
  std::thread acceptor_;
};

// Returns the size of a whole frame.
[[nodiscard]] std::size_t whole(const net::FrameHeader& header);

}  // namespace disttf::test_process
