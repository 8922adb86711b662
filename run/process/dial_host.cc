#include "run/process/dial_host.h"

namespace disttf::roles {
namespace {

constexpr std::chrono::milliseconds kDialTimeout{2000};

}  // namespace

asio::awaitable<net::Dialed> dial_host(asio::io_context& context, const Task& task,
                                       std::size_t range, std::uint8_t replica,
                                       net::ChannelPurpose purpose, net::NameLookup& lookup,
                                       net::ConnectionLimits limits) {
  const net::TaskId host = host_of_range(task.cluster, range, replica);
  co_return co_await net::dial(context, task.cluster.address_of(host),
                               {.cluster = net::hash_of(task.cluster),
                                .from = task.self,
                                .to = host,
                                .purpose = purpose,
                                .replica = replica,
                                .incarnation = task.incarnation},
                               limits, kDialTimeout, lookup, task.credentials.get());
}

}  // namespace disttf::roles
