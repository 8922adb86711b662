#include "roles/serve/shell/serve_command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "math/kernels.h"
#include "net/http/access_tokens.h"
#include "net/http/browser_guard.h"
#include "net/tcp/sockets.h"
#include "net/wire/address.h"
#include "roles/serve/shell/directory_models.h"
#include "roles/serve/shell/followed_run.h"
#include "roles/serve/shell/serve_handler.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"
#include "run/process/stop_signal.h"
#include "run/process/task_listener.h"
#include "storage/store/core/store_url.h"

namespace disttf::roles {
namespace {

// A new model is served within a second.
constexpr std::chrono::milliseconds kLookInterval{250};
// For a store, where each look costs several requests.
constexpr std::chrono::milliseconds kStoreLookInterval{5000};
// The thread that looks for models and reads them has a lower priority than answers.
constexpr int kReaderNiceness = 10;
// A body may hold so many rows of the model, with so many characters per value, and at least the
// smallest limit.
constexpr std::size_t kBodyRows = 256;
constexpr std::size_t kBodyBytesAValue = 12;
constexpr std::size_t kLeastBodyBytes = std::size_t{4} << 20U;
constexpr std::size_t kMostBodyBytes = std::size_t{256} << 20U;

// The longest time after stop(): longer than the service's own grace for open requests.
constexpr std::chrono::seconds kLongestEnd{7};

std::size_t body_bytes_for(const ServedModels& served) {
  const std::size_t inputs =
      served.models.empty() ? 0 : served.newest()->model.config.model.input.size();
  return std::clamp(inputs * kBodyRows * kBodyBytesAValue, kLeastBodyBytes, kMostBodyBytes);
}

asio::ip::tcp::acceptor listen_as_asked(asio::io_context& context, const ServeOptions& options,
                                        const StopSignal& stop) {
  try {
    return listen_after_predecessor(
        "--port " + std::to_string(options.port),
        [&] { return net::listen_at(context, options.host, options.port); }, &stop);
  } catch (const std::system_error& error) {
    throw Failure(kCannotListen, std::string("--port: ") + error.what());
  }
}

std::unique_ptr<ModelSource> source_of(const ServeOptions& options, ModelRegistry& registry,
                                       StopSignal& stop) {
  if (options.follow) {
    return std::make_unique<FollowedRun>(*options.follow, options.keep_versions, registry, stop);
  }
  return std::make_unique<DirectoryModels>(options.directory, options.keep_versions, registry);
}

// Health checks have neither tokens nor the service's names.
std::optional<net::HttpReply> refusal_of(const net::HttpServerRequest& request,
                                         const net::ServiceNames& names,
                                         net::AccessTokens* tokens) {
  if (is_health_path(request.path)) return std::nullopt;
  std::optional<net::HttpReply> refusal = net::refuse_other_pages(request, names);
  return refusal ? refusal : net::refuse_without_token(tokens, request);
}

// Looks for models until a signal comes. An error of a look is logged once, and the look repeated.
void keep_looking(ModelSource& source, const net::HttpService& service, ServeParts& parts,
                  std::chrono::milliseconds interval, const StopSignal& stop) {
  std::string told;
  while (!stop.interrupt().wait_until(net::Clock::now() + interval)) {
    parts.serve_meters.connections.set(static_cast<double>(service.connections()));
    parts.accuracy.look();
    try {
      source.look();
      parts.serve_meters.ready.set(parts.registry.now()->models.empty() ? 0 : 1);
      told.clear();
    } catch (const std::exception& error) {
      if (told != error.what()) {
        told = error.what();
        log_warning(told + "; the present models stay");
      }
    }
  }
}

void end(net::HttpService& service, ServeParts& parts, std::chrono::seconds drain,
         const StopSignal& stop) {
  // First, so that load balancers see it while requests are still answered.
  parts.is_draining = true;
  parts.serve_meters.ready.set(0);
  service.drain();
  if (stop.number() != 0) {
    log_info(fmt::format("{}: no longer ready; requests are answered for {} s more",
                         signal_name(stop.number()), drain.count()));
    std::this_thread::sleep_for(drain);
  }
  service.stop();
}

// Counts threads that still run.
class Finishing {
 public:
  explicit Finishing(std::size_t threads) : left_(threads) {}

  // Marks a thread as finished at the end of its scope.
  class One {
   public:
    explicit One(Finishing& all) : all_(all) {}
    ~One() {
      const std::scoped_lock lock(all_.mutex_);
      --all_.left_;
      all_.changed_.notify_all();
    }
    One(const One&) = delete;
    One& operator=(const One&) = delete;

   private:
    Finishing& all_;
  };

  // Returns whether all have ended in time.
  bool wait_for(std::chrono::seconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_;
};

// Exits without waiting: a thread that reads or computes a request does not check for the end.
[[noreturn]] void leave(const StopSignal& stop) {
  log_warning(fmt::format("a request was still in progress after {} s; it ends without an answer",
                          kLongestEnd.count()));
  ::_exit(stop.number() != 0 ? exit_code_for(stop.number()) : kError);
}

}  // namespace

int run_serve(const ServeOptions& given) {
  StopSignal stop;
  ServeOptions options = given;
  std::shared_ptr<net::TlsIdentity> identity = identity_of(options.files);
  std::shared_ptr<net::AccessTokens> tokens = tokens_of(options.files, options.host);
  Meters meters("serve", options.version, math::isa_name(math::supported_isas().front()));
  ServeMeters serve_meters(meters.metrics(), options.threads);
  ModelRegistry registry(options.threads, options.limits.max_batch, serve_meters);
  const std::unique_ptr<ModelSource> source = source_of(options, registry, stop);
  // Before the port opens: an unusable directory ends the command with its reason.
  source->look();
  RunAccuracy accuracy(options.directory);
  // Computed once, from the first model; later models do not change it.
  if (options.limits.max_body_bytes == 0) {
    options.limits.max_body_bytes = body_bytes_for(*registry.now());
  }
  ServeParts parts{
      .name = options.name,
      .version = options.version,
      .limits = options.limits,
      .registry = registry,
      .accuracy = accuracy,
      .meters = meters,
      .serve_meters = serve_meters,
      .access_log = options.access_log.empty() ? nullptr : open_access_log(options.access_log)};
  asio::io_context context{1};  // for the acceptor only; it does not run
  // After everything that can fail by a flag, so that no client connects for nothing.
  asio::ip::tcp::acceptor acceptor = listen_as_asked(context, options, stop);
  const net::Address address{
      .host = options.host == net::kEveryAddress ? "127.0.0.1" : options.host,
      .port = acceptor.local_endpoint().port()};
  net::HttpService service(
      {.threads = options.threads,
       .max_body_bytes = options.limits.max_body_bytes,
       .is_quick = &is_quick_path},
      [&parts](std::size_t thread) { return std::make_unique<ServeHandler>(parts, thread); });
  service.listen(std::move(acceptor),
                 {.max_connections = options.max_connections,
                  .identity = std::move(identity),
                  .refuse = [names = net::ServiceNames{options.host_names},
                             tokens = std::move(tokens)](const net::HttpServerRequest& request) {
                    return refusal_of(request, names, tokens.get());
                  }});
  std::vector<std::thread> threads;
  Finishing finishing(service.threads());
  for (std::size_t i = 0; i < service.threads(); ++i) {
    // An exception of a thread ends the service through `stop`.
    threads.push_back(start_thread(stop, [&service, &finishing, i] {
      const Finishing::One one(finishing);
      service.run(i);
    }));
  }
  // After the threads have started: they would inherit the priority.
  ::setpriority(PRIO_PROCESS, 0, kReaderNiceness);  // of this thread only
  log_info(fmt::format("serving at {}://{}/v1/models/{}, with {} thread{}", options.files.scheme(),
                       to_string(address), options.name, options.threads,
                       options.threads == 1 ? "" : "s"));
  serve_meters.ready.set(registry.now()->models.empty() ? 0 : 1);
  keep_looking(*source, service, parts,
               is_store_url(options.directory) ? kStoreLookInterval : kLookInterval, stop);
  // The order of a shutdown: not ready, then a drain, then no new requests, then the end.
  end(service, parts, options.drain, stop);
  // join() has no timeout.
  if (!finishing.wait_for(kLongestEnd)) {
    leave(stop);
  }
  for (std::thread& each : threads) {
    each.join();
  }
  if (stop.number() != 0) {
    return exit_code_for(stop.number());
  }
  stop.throw_if_stopped();  // rethrows the failure of a thread
  return kDone;
}

}  // namespace disttf::roles
