#include "roles/process/task_listener.h"

#include <asio/error.hpp>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "net/transport/descriptor_limit.h"
#include "net/wire/run_order.h"
#include "roles/process/log.h"

namespace disttf::roles {
namespace {

// The task of a server that was killed has its port, too, and dies a moment after it: so long, in
// such pauses, a server that is started again at once waits for that.
constexpr std::chrono::milliseconds kPredecessor{2000};
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

asio::ip::tcp::acceptor listen_after_predecessor(asio::io_context& context,
                                                 const net::Address& listed) {
  const auto until = std::chrono::steady_clock::now() + kPredecessor;
  while (true) {
    try {
      return net::listen_as(context, listed);
    } catch (const std::system_error& error) {
      if (error.code() != asio::error::address_in_use ||
          std::chrono::steady_clock::now() >= until) {
        throw;
      }
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::unique_ptr<net::Listener> open_task_listener(asio::io_context& context, const Task& task,
                                                  net::ServerHooks hooks, bool is_server) {
  const net::Address& own = task.cluster.address_of(task.self);
  net::ServerOptions options;
  options.self = task.self;
  options.cluster = task.cluster;
  options.self_text = describe(task.cluster, task.self);
  options.credentials = task.credentials.get();
  net::Cluster servers = task.cluster;
  servers.chief.clear();
  const net::Cluster run = net::driven(servers);
  if (is_server) {
    options.vacant = net::hash_of(run);
  } else if (run.chief == task.cluster.chief) {
    options.busy = net::hash_of(servers);
  }
  hooks.log = [](std::string_view sentence) { log_warning(sentence); };
  try {
    auto acceptor = task.listen_fd >= 0 ? net::adopt_listening(context, task.listen_fd)
                                        : net::listen_as(context, own);
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
      net::is_out_of_descriptors(error.code()) ? kError : kCannotListen,
      describe(task.cluster, task.self) + " " + error.what() + net::descriptor_hint(error.code())};
}

}  // namespace disttf::roles
