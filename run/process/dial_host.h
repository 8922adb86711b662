// Connects to a host of a range, with --ps_replicas 2, inside an event loop; used by the chief's
// failover controller and by the range's other host.
//
// Runs on the io_context's thread.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "net/tcp/dial.h"
#include "run/task.h"

namespace disttf::roles {

// Makes one attempt, limited in time. `lookup` is the caller's for this host. `context`, `task` and
// `lookup` must outlive the call.
asio::awaitable<net::Dialed> dial_host(asio::io_context& context, const Task& task,
                                       std::size_t range, std::uint8_t replica,
                                       net::ChannelPurpose purpose, net::NameLookup& lookup,
                                       net::ConnectionLimits limits = {});

}  // namespace disttf::roles
