#include "bench/exchange.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/benchmarks.h"
#include "math/kernels.h"
#include "math/parameter_layout.h"

namespace disttf::bench {
namespace {

// Sides are measured in turn, so each pauses for longer than the tasks of a run do.
constexpr std::chrono::seconds kPatience{3600};

roles::RunConfig config_of(const ClusterShape& shape) {
  roles::RunConfig config;
  config.model = shape.model;
  config.optimizer.kind = math::OptimizerKind::kSgd;
  config.rate_decay = math::RateDecay::kNone;
  config.isa = math::supported_isas().front();
  config.train_steps = std::uint64_t{1} << 50U;
  config.trainers = shape.workers;
  return config;
}

// Runs a worker that is not the chief: it pushes the same gradient until it is killed.
void keep_pushing(const roles::Task& task) {
  const roles::StopSignal stop;
  roles::PsClient client(task, stop);
  static_cast<void>(client.connect());
  const std::size_t size =
      math::layout_of(roles::run_config_from_json(client.get_config()).model).size();
  client.prepare({.size = size, .trainers = task.cluster.trainer_count()});
  math::AlignedVector parameters(size);
  client.gradient().front() = 1.0F;
  static_cast<void>(client.pull(parameters.span()));
  for (std::uint64_t pushes = 1;; ++pushes) {
    static_cast<void>(client.push_pull(pushes, parameters.span()));
  }
}

}  // namespace

math::ModelSpec model_of(std::size_t parameters) {
  const std::size_t classes = parameters > 10'000'000 ? 100 : 10;
  assert(parameters % classes == 0 && parameters > classes);
  return {.kind = math::ModelKind::kSoftmax,
          .input = {.channels = parameters / classes - 1},
          .hidden = {},
          .classes = classes};
}

Exchange::Exchange(const ClusterShape& shape, roles::Transport transport,
                   std::shared_ptr<net::Secrets> secrets)
    : config_(config_of(shape)), parameters_(math::layout_of(shape.model).size()) {
  task_.incarnation = 1;
  task_.transport = transport;
  task_.credentials = std::move(secrets);
  task_.timeouts = {
      .start = kPatience, .peer = kPatience, .worker = kPatience, .heartbeat_timeout = kPatience};
  task_.self = {.job = net::Job::kWorker, .index = 0};
  // No task connects to this address.
  task_.cluster.workers.assign(shape.workers, {.host = "127.0.0.1", .port = 1});
  for (std::size_t each = 0; each < shape.workers; ++each) {
    task_.cluster.workers[each].port = static_cast<std::uint16_t>(1 + each);
  }
  std::vector<Listening> listening(shape.ps);
  for (Listening& one : listening) {
    one = listen_on_loopback();
    task_.cluster.ps.push_back({.host = "127.0.0.1", .port = one.port});
  }
  for (std::size_t each = 0; each < shape.ps; ++each) {
    roles::Task task = task_;
    task.self = {.job = net::Job::kPs, .index = each};
    task.listen_fd = listening[each].fd;
    peers_.emplace_back(start_ps(task));
  }
  for (const Listening& one : listening) {
    close(one.fd);
  }
  for (std::size_t each = 1; each < shape.workers; ++each) {
    roles::Task task = task_;
    task.self.index = each;
    peers_.emplace_back(in_child([&] { keep_pushing(task); }));
  }
  stop_.emplace();  // starts a thread, so it follows all forks
  client_.emplace(task_, *stop_);
  static_cast<void>(client_->connect());
  const std::size_t size = parameters_.size();
  client_->prepare({.size = size, .trainers = task_.cluster.trainer_count()});
  client_->lead(roles::to_json(config_),
                [size] { return roles::TrainingState{.parameters = math::AlignedVector(size)}; });
  client_->gradient().front() = 1.0F;
  reply_ = client_->pull(parameters_.span());
}

Exchange::~Exchange() = default;

void Exchange::step() { reply_ = client_->push_pull(++pushes_, parameters_.span()); }

std::optional<std::string> Exchange::fault() const {
  // sgd with a gradient of 1 moves the first parameter below 0.
  if (reply_.step != pushes_ || !(reply_.parameters.front() < 0)) {
    return "the ps did not apply what was pushed";
  }
  return std::nullopt;
}

RawExchange::RawExchange(const ClusterShape& shape) {
  const std::size_t size = math::layout_of(shape.model).size();
  std::vector<Listening> listening(shape.ps);
  for (std::size_t each = 0; each < shape.ps; ++each) {
    listening[each] = listen_on_loopback();
    own_.parts.push_back(math::shard_range(size, each, shape.ps).size() * sizeof(float));
    peers_.emplace_back(start_echo(listening[each], own_.parts.back(), shape.workers));
  }
  own_.out.assign(size * sizeof(float), 1);
  own_.in.resize(own_.out.size());
  const auto connect = [&] {
    for (const Listening& one : listening) {
      own_.sockets.push_back(connect_to_loopback(one.port));
    }
  };
  for (std::size_t each = 1; each < shape.workers; ++each) {
    peers_.emplace_back(in_child([&] {
      connect();
      while (true) {
        own_.step();
      }
    }));
  }
  connect();
  for (const Listening& one : listening) {
    close(one.fd);
  }
}

RawExchange::~RawExchange() {
  for (const int socket : own_.sockets) {
    close(socket);
  }
}

void RawExchange::step() { own_.step(); }

std::optional<std::string> RawExchange::fault() const {
  if (own_.in != own_.out) {
    return "the echo is not what was sent";
  }
  return std::nullopt;
}

void RawExchange::Worker::step() {
  const char* from = out.data();
  for (std::size_t peer = 0; peer < sockets.size(); ++peer) {
    write_all(sockets[peer], from, parts[peer]);
    from += parts[peer];
  }
  char* to = in.data();
  for (std::size_t peer = 0; peer < sockets.size(); ++peer) {
    read_all(sockets[peer], to, parts[peer]);
    to += parts[peer];
  }
}

// Measures one worker's exchange with a ps in another process: push, apply, parameters back.

void run_push_pull(const JobOptions& options, Reporter& reporter) {
  constexpr int kRoundsPerRepetition = 4;
  // The smallest parameter vector: two variables, each aligned to 64 bytes.
  const math::ModelSpec smallest{
      .kind = math::ModelKind::kSoftmax, .input = {}, .hidden = {}, .classes = 2};
  const std::array points = {std::pair("128", smallest),
                             std::pair("318144", bench_model("mlp_100")),
                             std::pair("40000000", model_of(10'000'000))};
  for (const auto& [bytes, model] : points) {
    const std::string floor = std::string("raw_echo/") + bytes;
    if (!options.wants(floor) && !options.wants(std::string("push_pull/tcp/") + bytes) &&
        !options.wants(std::string("push_pull/shm/") + bytes)) {
      continue;
    }
    const int rounds = options.repetitions * (options.quick ? 1 : kRoundsPerRepetition);
    for (const Side& side : measure_sides({.model = model}, rounds, options.quick)) {
      const std::string name = "push_pull/" + side.name + "/" + bytes;
      reporter.add(side.figure(side.to_raw.empty() ? floor : name, floor));
    }
  }
}

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// The time of one side before the next side's turn: long enough that the cores are awake for most
// of it.
constexpr std::chrono::milliseconds kRound{100};

// Returns microseconds per step.
double run_round(const Runner& runner, bool quick) {
  const auto begin = Clock::now();
  std::size_t steps = 0;
  do {
    runner.step();
    ++steps;
  } while (!quick && Clock::now() - begin < kRound);
  return Microseconds(Clock::now() - begin).count() / static_cast<double>(steps);
}

// Returns the bytes that a process may take without causing another process to lose memory.
std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::size_t kibibytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kibibytes) {
      return kibibytes * 1024;
    }
  }
  return std::numeric_limits<std::size_t>::max();  // unknown: the kernel decides
}

}  // namespace

Figure Side::figure(const std::string& own_name, const std::string& floor) const {
  return {.name = own_name,
          .median = median(times),
          .slowest = *std::ranges::max_element(times),
          .unit = "us",
          .floor = to_raw.empty() ? "" : floor,
          .ratio = to_raw.empty() ? std::nullopt : std::optional(median(to_raw)),
          .extras = {}};
}

bool fits(const ClusterShape& shape) {
  constexpr std::size_t kCopies = 16;  // thirteen, and room for temporary copies
  return math::layout_of(shape.model).size() * sizeof(float) * kCopies <= available_memory();
}

std::vector<Side> measure_sides(const ClusterShape& shape, int rounds, bool quick) {
  RawExchange raw(shape);
  Exchange tcp(shape, roles::Transport::kTcp);
  Exchange shared_memory(shape, roles::Transport::kSharedMemory);
  return measure_in_turn(
      {runner_of("raw", raw), runner_of("tcp", tcp), runner_of("shm", shared_memory)}, rounds,
      quick);
}

std::vector<Side> measure_in_turn(const std::vector<Runner>& runners, int rounds, bool quick) {
  std::vector<Side> sides;
  for (const Runner& runner : runners) {
    sides.push_back({.name = runner.name, .times = {}, .to_raw = {}});
    runner.step();  // touches memory for the first time
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < runners.size(); ++turn) {
      // Rotating the order cancels effects of the previous side on the caches.
      const std::size_t side = (static_cast<std::size_t>(round) + turn) % runners.size();
      sides[side].times.push_back(run_round(runners[side], quick));
    }
    for (std::size_t side = 1; side < sides.size(); ++side) {
      // Ratios within a round: other load on the machine affects both sides alike.
      sides[side].to_raw.push_back(sides[side].times.back() / sides.front().times.back());
    }
  }
  for (const Runner& runner : runners) {
    if (const auto fault = runner.fault()) {
      throw std::runtime_error(std::string(runner.name) + ": " + *fault);
    }
  }
  return sides;
}

}  // namespace disttf::bench
