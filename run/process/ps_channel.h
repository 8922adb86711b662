// Connections to the hosts of a range: channels for the state, and dialing inside an event loop.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "net/tcp/channel.h"
#include "net/tcp/dial.h"
#include "net/waiting/interrupt.h"
#include "net/wire/handshake.h"
#include "run/task.h"

namespace disttf::roles {

// For `bytes` bytes over the slowest acceptable link: 1 Mbit/s.
[[nodiscard]] net::Deadline transfer_deadline(const Task& task, std::size_t bytes);

// The first message of a connection to the task `to`.
[[nodiscard]] net::Hello hello_of(const Task& task, const net::TaskId& to,
                                  net::ChannelPurpose purpose, std::uint8_t replica = 0);

// To a host of the range; for the chief, which saves the state, and for evaluators and services.
// Throws Failure if this process's own limits prevent the connection.
[[nodiscard]] net::OpenedChannel open_state_channel(const Task& task, std::size_t range,
                                                    std::uint8_t replica,
                                                    const net::Interrupt& interrupt,
                                                    net::Deadline deadline);

// Connects to a host of a range, with --ps_replicas 2, inside an event loop; used by the chief's
// failover controller and by the range's other host.
//
// Runs on the io_context's thread.

// Makes one attempt, limited in time. `lookup` is the caller's for this host. `context`, `task` and
// `lookup` must outlive the call.
asio::awaitable<net::Dialed> dial_host(asio::io_context& context, const Task& task,
                                       std::size_t range, std::uint8_t replica,
                                       net::ChannelPurpose purpose, net::NameLookup& lookup,
                                       net::ConnectionLimits limits = {});

}  // namespace disttf::roles
