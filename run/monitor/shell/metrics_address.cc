#include "run/monitor/shell/metrics_address.h"

#include <sys/utsname.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "data/output_file.h"
#include "net/http/access_tokens.h"
#include "net/http/http_responder.h"
#include "net/http/http_status.h"
#include "net/tcp/sockets.h"
#include "net/wire/address.h"
#include "net/wire/text.h"
#include "run/monitor/shell/process_facts.h"
#include "run/outcome.h"
#include "run/process/event_loop.h"
#include "run/process/log.h"
#include "run/process/start_thread.h"
#include "run/process/task_listener.h"

namespace disttf::roles {
namespace {

using asio::ip::tcp;

// node_exporter is scraped about every 15 s; more frequent writes would only wear the disk.
constexpr std::chrono::seconds kFileInterval{15};
// A run that has ended does not wait for a slow scraper.
constexpr std::chrono::milliseconds kScrapeGrace{200};

// Whether a Host field names this machine, for addresses of this machine only: a page of another
// site whose name resolves here must not read along. Its browser sends that name.
bool is_this_machine(std::string_view host) {
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') - 1);
  } else if (std::ranges::count(host, ':') == 1) {
    host = host.substr(0, host.find(':'));
  }
  std::error_code error;
  // An address cannot be rebound to another machine by a name server, so every address is accepted.
  asio::ip::make_address(host, error);
  return !error || host == "localhost" || host.empty();
}

std::string name_of_machine() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

}  // namespace

net::HttpReply answer_scrape(const net::HttpServerRequest& request, Meters& meters,
                             const std::string& targets) {
  const bool asks_for_targets = request.path == "/targets" && !targets.empty();
  if (request.path != "/metrics" && !asks_for_targets) {
    return net::error_reply(
        net::http_status::kNotFound,
        net::quoted(request.path) + " does not exist; Prometheus reads /metrics");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return net::error_reply(net::http_status::kMethodNotAllowed, request.path + " takes GET");
  }
  if (asks_for_targets) {
    return {.body = targets};
  }
  const ExpositionFormat format = format_for(request.accept);
  std::vector<MetricFamily> families = meters.metrics().read();
  add_process_metrics(families, meters.started());
  return {.content_type = std::string(content_type_of(format)),
          .body = exposition(families, meters.task(), format)};
}

class MetricsAddress::Impl {
 public:
  Impl(const MetricsOptions& options, Meters& meters)
      : options_(options), meters_(meters), timer_(context_) {
    if (options.port) {
      listen();
    }
    if (!options.textfile.empty()) {
      keep_file();
    }
    // Last: the thread uses most of the above without a lock.
    thread_ = start_thread([this] { keep_running(context_, "metrics"); });
  }

  ~Impl() {
    asio::post(context_, [this] {
      // On the thread of the context: its objects are not thread-safe.
      stopping_ = true;
      timer_.cancel();
      if (server_) {
        server_->stop();
      }
    });
    thread_.join();
    // The last values, after the thread has ended.
    if (!options_.textfile.empty()) {
      write_file();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const std::string& target() const noexcept { return target_; }
  [[nodiscard]] bool is_https() const noexcept { return !options_.files.certificate.empty(); }
  [[nodiscard]] std::string target_at(std::uint16_t port) const {
    return net::to_string(net::Address{
        .host = options_.host == net::kEveryAddress ? name_of_machine() : options_.host,
        .port = port});
  }
  void set_targets(std::string json) {
    const std::scoped_lock lock(mutex_);
    targets_ = std::move(json);
  }

 private:
  [[nodiscard]] std::string targets() {
    const std::scoped_lock lock(mutex_);
    return targets_;
  }

  void listen() {
    std::shared_ptr<net::TlsIdentity> identity = identity_of(options_.files);
    std::shared_ptr<net::AccessTokens> tokens = tokens_of(options_.files, options_.host);
    try {
      // A restarted task has the same port as its predecessor, which may still be ending.
      tcp::acceptor acceptor = listen_after_predecessor(
          "--metrics_port " + std::to_string(*options_.port),
          [this] { return net::listen_at(context_, options_.host, *options_.port); });
      const bool is_loopback = acceptor.local_endpoint().address().is_loopback();
      target_ = target_at(acceptor.local_endpoint().port());
      net::HttpResponderOptions responder;
      responder.service.stop_grace = kScrapeGrace;
      server_.emplace(
          context_,
          [this, is_loopback](const net::HttpServerRequest& request) {
            // An address in the network has names that this process cannot know, so only loopback
            // is checked.
            return is_loopback && !is_this_machine(request.host)
                       ? net::error_reply(net::http_status::kMisdirected,
                                          "Host: " + net::quoted(request.host) +
                                              " is not a name of this machine")
                       : answer_scrape(request, meters_, targets());
          },
          responder);
      server_->listen(
          std::move(acceptor),
          {.use = net::HttpUse::kCommand,
           .max_connections = net::kCommandConnections,
           .identity = std::move(identity),
           .refuse = [tokens = std::move(tokens)](const net::HttpServerRequest& request) {
             return net::refuse_without_token(tokens.get(), request);
           }});
      log_info(std::string("metrics at ") + options_.files.scheme() + "://" + target_ + "/metrics");
    } catch (const std::system_error& error) {
      throw Failure(kCannotListen, "--metrics_port: cannot listen on " + options_.host + ":" +
                                       std::to_string(*options_.port) + ": " +
                                       error.code().message());
    }
  }

  void keep_file() {
    timer_.expires_after(kFileInterval);
    timer_.async_wait([this](std::error_code error) {
      // A timer that has already expired ignores cancel(), so the flag is needed, too.
      if (!error && !stopping_) {
        write_file();
        keep_file();
      }
    });
  }

  // Omits the metrics of the process: node_exporter has the same names.
  void write_file() noexcept {
    try {
      const std::string text =
          exposition(meters_.metrics().read(), meters_.task(), ExpositionFormat::kText);
      data::write_output_file(options_.textfile, text, data::OutputReader::kIsNot);
      has_failed_ = false;
    } catch (const std::exception& error) {
      if (!std::exchange(has_failed_, true)) {  // log it once, not every 15 s
        log_warning("--metrics_textfile: " + std::string(error.what()));
      }
    }
  }

  // Constant.
  const MetricsOptions options_;
  Meters& meters_;
  std::string target_;
  std::mutex mutex_;
  std::string targets_;  // guarded by mutex_
  // Used by the thread only, once it runs.
  asio::io_context context_{1};
  asio::steady_timer timer_;
  std::optional<net::HttpResponder> server_;
  bool stopping_ = false;
  bool has_failed_ = false;  // at the last write of the file
  std::thread thread_;
};

MetricsAddress::MetricsAddress(const MetricsOptions& options, Meters& meters)
    : impl_(std::make_unique<Impl>(options, meters)) {}
MetricsAddress::~MetricsAddress() = default;

const std::string& MetricsAddress::target() const noexcept { return impl_->target(); }

bool MetricsAddress::is_https() const noexcept { return impl_->is_https(); }

std::string MetricsAddress::target_at(std::uint16_t port) const { return impl_->target_at(port); }

void MetricsAddress::set_targets(std::string json) { impl_->set_targets(std::move(json)); }

}  // namespace disttf::roles
