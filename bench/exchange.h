// One synchronous step of a whole cluster, without the workers' arithmetic: every worker pushes a
// gradient, every ps applies the sum (sgd), and all workers get the new parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/echo_peer.h"
#include "bench/reporter.h"
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

// Measures a synchronous step over both transports beside the raw exchange of the same bytes
// between as many processes, in turn.

// The repeated operation of a side, and why its result was wrong, if it was.
struct Runner {
  const char* name;
  std::function<void()> step;
  std::function<std::optional<std::string>()> fault;
};

// REQUIRES: the exchanger outlives it.
template <typename Exchanger>
Runner runner_of(const char* name, Exchanger& exchanger) {
  return {
      .name = name, .step = [&] { exchanger.step(); }, .fault = [&] { return exchanger.fault(); }};
}

// The measured times of one side.
struct Side {
  std::string name;            // the first is the floor of the others, e.g. "raw" for "tcp"
  std::vector<double> times;   // us per step: the mean of each round
  std::vector<double> to_raw;  // the same divided by the first side's; empty for the first side

  // `floor`: the first side's name.
  [[nodiscard]] Figure figure(const std::string& own_name, const std::string& floor) const;
};

// Returns whether the free memory holds the processes of all sides.
[[nodiscard]] bool fits(const ClusterShape& shape);

// Measures in turns of 100 ms; the first runner is the floor. `quick`: one step per round. Throws
// std::runtime_error if a side has a fault.
[[nodiscard]] std::vector<Side> measure_in_turn(const std::vector<Runner>& runners, int rounds,
                                                bool quick);

// Measures the raw side first. `quick`: one step per round. Throws std::runtime_error if a side's
// result is wrong.
[[nodiscard]] std::vector<Side> measure_sides(const ClusterShape& shape, int rounds, bool quick);

}  // namespace disttf::bench
