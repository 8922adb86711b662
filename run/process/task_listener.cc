#include "run/process/task_listener.h"

#include <string>
#include <system_error>
#include <utility>

#include "net/tcp/listening.h"
#include "net/waiting/descriptor_limit.h"
#include "net/wire/run_task_request.h"
#include "run/process/log.h"
#include "run/process/predecessor.h"

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

}  // namespace disttf::roles
