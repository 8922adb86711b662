#include "run/process/ps_channel.h"

#include <chrono>

#include "run/process/machine.h"

namespace disttf::roles {
namespace {

// A state of gigabytes takes longer than the heartbeat timeout, so time is added for its size. A
// slower link counts as a failure.
constexpr std::size_t kSlowestBytesPerSecond = 128 * 1024;

}  // namespace

net::Deadline transfer_deadline(const Task& task, std::size_t bytes) {
  return net::Clock::now() + task.timeouts.heartbeat_timeout +
         std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

net::Hello hello_of(const Task& task, const net::TaskId& to, net::ChannelPurpose purpose,
                    std::uint8_t replica) {
  return {.cluster = net::hash_of(task.cluster),
          .from = task.self,
          .to = to,
          .purpose = purpose,
          .replica = replica,
          .incarnation = task.incarnation};
}

net::OpenedChannel open_state_channel(const Task& task, std::size_t range, std::uint8_t replica,
                                      const net::Interrupt& interrupt, net::Deadline deadline) {
  const net::TaskId host = host_of_range(task.cluster, range, replica);
  auto opened = net::open_channel(task.cluster.address_of(host),
                                  hello_of(task, host, net::ChannelPurpose::kState, replica),
                                  interrupt, deadline, task.credentials.get());
  // A lack of descriptors is this process's own, so dialing again does not help.
  throw_if_out_of_descriptors(
      opened.error, "connect to " + describe(task.cluster, {.job = net::Job::kPs, .index = range}));
  return opened;
}

namespace {

constexpr std::chrono::milliseconds kDialTimeout{2000};

}  // namespace

asio::awaitable<net::Dialed> dial_host(asio::io_context& context, const Task& task,
                                       std::size_t range, std::uint8_t replica,
                                       net::ChannelPurpose purpose, net::NameLookup& lookup,
                                       net::ConnectionLimits limits) {
  const net::TaskId host = host_of_range(task.cluster, range, replica);
  co_return co_await net::dial(context, task.cluster.address_of(host),
                               hello_of(task, host, purpose, replica), limits, kDialTimeout, lookup,
                               task.credentials.get());
}

}  // namespace disttf::roles
