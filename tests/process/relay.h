// Stands at the address of a ps and passes every connection on to the port where that ps really
// listens, frame by frame and both ways, until the test holds a frame back: so that a task can be
// killed at one exact moment of its conversation, with nothing to sleep for. Or it is a slow cable.
//
// Two threads a connection, one for each way. A frame is passed on as it comes, in pieces.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "tests/process/cluster_on_loopback.h"

namespace disttf::test_process {

// A frame behind the HELLO of its connection, about to be passed on.
struct Passing {
  const net::Hello& hello;  // of the task that connected
  bool to_ps = false;       // else from the ps
  const net::FrameHeader& header;
};

class Relay {
 public:
  // How many of the frame's bytes pass. When fewer than all, nothing more passes this way; the
  // other way stays open, and both end when the task hangs up. Called by several threads at once.
  using Rule = std::function<std::size_t(const Passing&)>;

  // How many bytes of such a frame pass in a second; 0: any. Called like a rule.
  using Pace = std::function<double(const Passing&)>;

  // In front of ps `index` of the cluster. Throws std::system_error.
  Relay(const ClusterOnLoopback& cluster, std::size_t index, Rule rule, Pace pace = {});
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // --listen_fd=N: for the ps. Closed when the relay goes.
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
  std::vector<std::thread> threads_;  // of the accepting thread; joined after it
  std::thread acceptor_;
};

// All bytes of a frame.
[[nodiscard]] std::size_t whole(const net::FrameHeader& header);

}  // namespace disttf::test_process
