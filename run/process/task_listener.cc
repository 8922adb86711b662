#include "run/process/task_listener.h"

#include <asio/error.hpp>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "net/tcp/sockets.h"
#include "net/waiting/descriptor.h"
#include "net/wire/server_requests.h"
#include "run/process/log.h"

namespace disttf::roles {

asio::ip::tcp::acceptor listen_where_listed(asio::io_context& context, const net::Address& listed,
                                            const StopSignal& stop) {
  // A task that was killed and restarted listens at the address of its predecessor.
  return listen_after_predecessor(
      net::to_string(listed), [&] { return net::listen_as(context, listed); }, &stop);
}

std::unique_ptr<net::Listener> open_task_listener(asio::io_context& context, const Task& task,
                                                  net::ListenerHooks hooks, const StopSignal& stop,
                                                  bool is_server) {
  const net::Address& own = task.cluster.address_of(task.self);
  net::ListenerOptions options;
  options.self = task.self;
  options.cluster = task.cluster;
  options.self_text = describe(task.cluster, task.self);
  options.credentials = task.credentials.get();
  net::Cluster servers = task.cluster;
  servers.chief.clear();
  // A driver identifies servers by their cluster without a chief (net::driven()).
  const net::Cluster run = net::driven(servers);
  if (is_server) {
    options.vacant = net::hash_of(run);
  } else if (run.chief == task.cluster.chief) {
    options.busy = net::hash_of(servers);
  }
  hooks.log = [](std::string_view sentence) { log_warning(sentence); };
  try {
    auto acceptor = task.listen_fd >= 0 ? net::adopt_listening(context, task.listen_fd)
                                        : listen_where_listed(context, own, stop);
    auto listener = std::make_unique<net::Listener>(context, std::move(acceptor),
                                                    std::move(options), std::move(hooks));
    log_info("Started server with target: tcp://" + net::to_string(own));
    return listener;
  } catch (const std::system_error& error) {
    throw cannot_listen(task, error);
  }
}

Failure cannot_listen(const Task& task, const std::system_error& error) {
  return {
      // A lack of descriptors says nothing about the address.
      net::is_out_of_descriptors(error.code()) ? kError : kCannotListen,
      describe(task.cluster, task.self) + " " + error.what() + net::descriptor_hint(error.code())};
}

namespace {

constexpr std::chrono::milliseconds kPredecessor{2000};
constexpr std::chrono::milliseconds kPauseBetweenTries{20};

}  // namespace

asio::ip::tcp::acceptor listen_after_predecessor(
    const std::string& what, const std::function<asio::ip::tcp::acceptor()>& listen,
    const StopSignal* stop) {
  const auto until = std::chrono::steady_clock::now() + kPredecessor;
  bool said = false;
  while (true) {
    try {
      return listen();
    } catch (const std::system_error& error) {
      // Other errors, such as a missing right, do not pass with time.
      if (error.code() != asio::error::address_in_use ||
          std::chrono::steady_clock::now() >= until) {
        throw;
      }
    }
    if (!said) {
      said = true;
      log_info(what + " is in use; if that is a process which is ending, it will soon be free");
    }
    if (stop == nullptr) {
      std::this_thread::sleep_for(kPauseBetweenTries);
    } else if (stop->interrupt().wait_until(net::Clock::now() + kPauseBetweenTries)) {
      stop->throw_if_stopped();
    }
  }
}

}  // namespace disttf::roles
