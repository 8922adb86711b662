// One synchronous step of a whole cluster, without the workers' arithmetic: every worker pushes a
// gradient, every ps applies the sum (sgd), and all workers get the new parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/echo_peer.h"
#include "math/aligned.h"
#include "math/model.h"
#include "net/tls/secrets.h"
#include "roles/trainer/shell/ps_client.h"
#include "run/process/stop_signal.h"
#include "run/run_config.h"
#include "run/task.h"

namespace disttf::bench {

// Returns a softmax model with that many parameters. REQUIRES: a multiple of 10 above 10; above 10
// million a multiple of 100.
[[nodiscard]] math::ModelSpec model_of(std::size_t parameters);

struct ClusterShape {
  math::ModelSpec model;
  std::size_t ps = 1;
  std::size_t workers = 1;
};

// Real ps and real clients, each in a process of its own; this process is the chief.
class Exchange {
 public:
  // `secrets`: the secret that the tasks share; null: none.
  Exchange(const ClusterShape& shape, roles::Transport transport,
           std::shared_ptr<net::Secrets> secrets = {});
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void step();
  // Returns why the steps so far are wrong; empty if they are right.
  [[nodiscard]] std::optional<std::string> fault() const;

 private:
  // Constant after construction.
  roles::Task task_;
  roles::RunConfig config_;
  std::list<Peer> peers_;  // the ps, then the other workers
  std::optional<roles::StopSignal> stop_;
  std::optional<roles::PsClient> client_;
  // The parameters of the last step.
  math::AlignedVector parameters_;
  roles::StepReply reply_;
  std::uint64_t pushes_ = 0;
};

// The floor: exchanges the same bytes between as many processes over loopback. Every worker writes
// each peer its part and reads it back; a peer answers once it has read all workers' parts.
class RawExchange {
 public:
  explicit RawExchange(const ClusterShape& shape);
  ~RawExchange();
  RawExchange(const RawExchange&) = delete;
  RawExchange& operator=(const RawExchange&) = delete;

  void step();
  [[nodiscard]] std::optional<std::string> fault() const;

 private:
  // A worker's connections, and the bytes that it sends.
  struct Worker {
    std::vector<int> sockets;  // by peer
    std::vector<std::size_t> parts;
    std::vector<char> out;
    std::vector<char> in;
    void step();
  };

  std::list<Peer> peers_;
  Worker own_;
};

}  // namespace disttf::bench
