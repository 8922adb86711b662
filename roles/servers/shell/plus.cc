#include "roles/servers/shell/plus.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "net/tcp/channel.h"
#include "net/tcp/dial.h"
#include "net/wire/backoff.h"
#include "net/wire/bare_message.h"
#include "net/wire/server_requests.h"
#include "run/outcome.h"
#include "run/process/machine.h"
#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {
namespace {

using net::Clock;
using net::FrameHeader;
using net::FrameKind;
using net::Operation;
using net::TaskId;

// The shortest of so many round trips is shown; the others include unrelated delays.
constexpr int kRoundTrips = 10;
// Timeouts in a row: a requested server may itself have to give up on two others first.
constexpr int kHops = 4;

constexpr std::int64_t kFirst = 10;
constexpr std::int64_t kSecond = 32;

std::vector<TaskId> tasks_of(const net::Cluster& cluster) {
  std::vector<TaskId> tasks;
  for (const net::Job job : {net::Job::kPs, net::Job::kChief, net::Job::kWorker}) {
    for (std::size_t index = 0; index < cluster.tasks_of(job).size(); ++index) {
      tasks.push_back({.job = job, .index = index});
    }
  }
  return tasks;
}

// The second task of the job, or its only one.
TaskId second(const net::Cluster& cluster, net::Job job) {
  return {.job = job, .index = std::min<std::size_t>(cluster.tasks_of(job).size() - 1, 1)};
}

// A channel to one server.
struct CheckedServer {
  TaskId task;
  std::string name;  // "ps 0 (10.0.0.7:2222)"
  std::unique_ptr<net::Channel> channel = {};
  std::string why = {};  // why there is no channel
  std::string version = {};
};

class Plus {
 public:
  explicit Plus(const PlusOptions& options) : options_(options) {
    for (const TaskId& task : tasks_of(options.cluster)) {
      servers_.push_back({.task = task, .name = describe(options.cluster, task)});
    }
  }
  int run();

 private:
  void reach_all();
  void reach(CheckedServer& server, net::Deadline deadline);
  void fail_without_all() const;
  [[nodiscard]] net::ComputeResult ask(CheckedServer& server, const net::ComputeRequest& request);
  void print_table();
  void print_row(CheckedServer& server);
  void print_reach(CheckedServer& server);
  [[nodiscard]] CheckedServer& server_of(const TaskId& task);

  const PlusOptions& options_;
  const StopSignal stop_;
  const std::uint64_t incarnation_ = new_incarnation();
  std::vector<CheckedServer> servers_;
};

int Plus::run() {
  reach_all();
  if (options_.verbose) {
    print_table();
  }
  // After the table, which shows the servers that do answer.
  fail_without_all();
  const net::Cluster& cluster = options_.cluster;
  const TaskId asked{.job = net::Job::kWorker, .index = 0};
  const TaskId adds = second(cluster, net::Job::kWorker);
  const TaskId first{.job = net::Job::kPs, .index = 0};
  // With one ps or one worker the same task serves twice: the test needs no minimum size.
  const TaskId other = second(cluster, net::Job::kPs);
  const net::ComputeResult result =
      ask(server_of(asked), {{.operation = Operation::kAdd, .task = adds},
                             {.operation = Operation::kNumber, .task = first, .value = kFirst},
                             {.operation = Operation::kNumber, .task = other, .value = kSecond}});
  if (options_.verbose) {
    std::printf("%lld on %s plus %lld on %s, added on %s, asked of %s:\n",
                static_cast<long long>(kFirst), net::to_string(first).c_str(),
                static_cast<long long>(kSecond), net::to_string(other).c_str(),
                net::to_string(adds).c_str(), net::to_string(asked).c_str());
  }
  std::printf("%lld\n", static_cast<long long>(result.value));
  // Printed before: the wrong number is what helps to find the fault.
  if (result.value != kFirst + kSecond) {
    throw Failure(kError, server_of(adds).name + " cannot add: 10 + 32 is 42");
  }
  return kDone;
}

// Waits for all servers together, at most `wait`.
void Plus::reach_all() {
  const net::Deadline deadline = Clock::now() + options_.wait;
  for (CheckedServer& server : servers_) {
    reach(server, deadline);
  }
}

void Plus::reach(CheckedServer& server, net::Deadline deadline) {
  // Of each server anew: one that starts late must not slow down the next one.
  net::Backoff backoff(std::mt19937_64(std::random_device{}()));
  while (true) {
    // At least a second each: the servers are dialed in turn, and the first may use up the time.
    net::OpenedChannel opened = net::open_channel(
        options_.cluster.address_of(server.task),
        {.cluster = net::hash_of(options_.cluster),
         .from = {.job = net::Job::kEvaluator, .index = 0},
         .to = server.task,
         .purpose = net::ChannelPurpose::kRequest,
         .incarnation = incarnation_},
        stop_.interrupt(), std::max(deadline, Clock::now() + std::chrono::seconds(1)),
        options_.credentials.get());
    stop_.throw_if_stopped();
    if (opened.error == net::WireError::kRefused) {
      throw Failure(opened.refusal.exit_code, server.name + " replied: " + opened.refusal.sentence);
    }
    // A shortage of this process is not the server's fault, so it is not retried.
    throw_if_out_of_descriptors(opened.error, "connect to " + server.name);
    server.channel = std::move(opened.channel);
    server.why = opened.error ? opened.error.message() : "";
    const auto next = Clock::now() + backoff.next();
    if (server.channel || next >= deadline) {
      return;
    }
    stop_.interrupt().wait_until(next);
    stop_.throw_if_stopped();
  }
}

void Plus::fail_without_all() const {
  std::string missing;
  for (const CheckedServer& server : servers_) {
    if (!server.channel) {
      missing += (missing.empty() ? "" : "; ") + server.name + ": " + server.why;
    }
  }
  if (!missing.empty()) {
    throw Failure(kLostPeers, "not connected after " + std::to_string(options_.wait.count()) +
                                  " s: " + missing);
  }
}

// Sends a request and returns its result. Throws Failure.
net::ComputeResult Plus::ask(CheckedServer& server, const net::ComputeRequest& request) {
  const net::Deadline deadline = Clock::now() + kHops * options_.heartbeat_timeout;
  FrameHeader header;
  std::error_code error =
      server.channel->send(net::ComputeFrame{1}.to_header(), net::encode(request), deadline);
  if (!error) {
    error = server.channel->receive_header(header, deadline);
  }
  // A signal interrupts the calls above with an error, which is not the server's.
  stop_.throw_if_stopped();
  if (!error && !net::RefusedFrame{}.from_header(header)) {
    const net::Refusal refusal = net::receive_refusal(*server.channel, header, deadline);
    throw Failure(refusal.exit_code, refusal.sentence);
  }
  // The header is not trusted: allocate no more than a control frame may have.
  std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
  if (!error && (net::ResultFrame{}.from_header(header) || header.body_size != body.size())) {
    error = net::WireError::kUnexpected;
  }
  if (!error) {
    error = server.channel->receive_body(body, deadline);
  }
  net::ComputeResult result;
  if (!error) {
    error = net::decode(body, result);
  }
  if (error) {
    throw Failure(kLostPeers, server.name + " was lost: " + error.message());
  }
  return result;
}

void Plus::print_table() {
  for (CheckedServer& server : servers_) {
    print_row(server);
  }
  // Before the errors, which go to standard error without a buffer.
  std::fflush(stdout);
}

void Plus::print_row(CheckedServer& server) {
  if (!server.channel) {
    std::printf("%s: cannot be reached: %s\n", server.name.c_str(), server.why.c_str());
    return;
  }
  auto shortest = Clock::duration::max();
  for (int each = 0; each < kRoundTrips; ++each) {
    const auto begin = Clock::now();
    server.version = ask(server, {{.operation = Operation::kDescribe, .task = server.task}}).text;
    shortest = std::min(shortest, Clock::now() - begin);
  }
  std::printf("%s: %.3f ms, %s, ", server.name.c_str(),
              std::chrono::duration<double, std::milli>(shortest).count(), server.version.c_str());
  print_reach(server);
}

// Makes each server send a request to each other server, and prints the failures.
void Plus::print_reach(CheckedServer& server) {
  std::string why;
  for (const CheckedServer& other : servers_) {
    if (&other == &server) {
      continue;
    }
    try {
      static_cast<void>(ask(server, {{.operation = Operation::kAsk, .task = server.task},
                                     {.operation = Operation::kDescribe, .task = other.task}}));
    } catch (const Failure& failure) {
      why += "\n  " + std::string(failure.what());
      reach(server, Clock::now() + options_.wait);  // a refusal has closed the channel
    }
    // A server that is gone cannot report on the others.
    if (!server.channel) {
      break;
    }
  }
  std::printf("%s\n", why.empty() ? "reaches all others" : ("does not reach all:" + why).c_str());
}

CheckedServer& Plus::server_of(const TaskId& task) {
  return *std::find_if(servers_.begin(), servers_.end(),
                       [&task](const CheckedServer& each) { return each.task == task; });
}

}  // namespace

int run_plus(const PlusOptions& options) { return Plus(options).run(); }

}  // namespace disttf::roles
