#include "roles/chief/shell/overseer.h"

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport/as_tuple.h"
#include "net/transport/spawn.h"
#include "net/wire/backoff.h"
#include "roles/chief/core/view_service.h"
#include "roles/process/dial_host.h"
#include "roles/process/log.h"
#include "roles/process/start_thread.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

class Overseer::Impl {
 public:
  Impl(const Task& task, StopSignal& stop) : task_(task), stop_(stop), beat_timer_(context_) {
    const std::size_t ranges = task.cluster.ps.size();
    keepers_.resize(ranges);
    told_.resize(ranges);
    for (std::size_t range = 0; range < ranges; ++range) {
      for (const std::uint8_t replica : {std::uint8_t{0}, std::uint8_t{1}}) {
        hosts_.push_back({.range = range, .replica = replica});
      }
    }
    for (Host& host : hosts_) {  // stays where it is from now on
      spawn([this, &host] { return watch(host); });
    }
    beat();
    thread_ = start_thread(stop_, [this] { context_.run(); });
  }

  ~Impl() {
    asio::post(context_, [this] { context_.stop(); });
    thread_.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void finish(milliseconds limit) {
    asio::post(context_, [this] {
      finishing_ = true;
      for (Host& host : hosts_) {
        tell_end(host);
      }
      check_ended();
    });
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [this] { return ended_; });
  }

  void await_views(milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [this] { return all_told_; });
  }

 private:
  struct Host {
    std::size_t range = 0;
    std::uint8_t replica = 0;
    std::shared_ptr<net::ServerConnection> connection = {};
    bool finished = false;  // has said that the run is over
  };

  void spawn(std::function<asio::awaitable<void>()> work) {
    net::spawn(context_, std::move(work),
               [this](const std::exception_ptr& exception) { stop_.stop_with(exception); });
  }

  // One host, for as long as the run lasts.
  asio::awaitable<void> watch(Host& host) {
    net::NameLookup lookup;
    net::Backoff backoff(std::mt19937_64(std::random_device{}()));
    asio::steady_timer pause(context_);
    const net::TaskId ps = host_of_range(task_.cluster, host.range, host.replica);
    while (!host.finished) {
      const net::Dialed dialed = co_await dial_host(context_, task_, host.range, host.replica,
                                                    net::ChannelPurpose::kView, lookup);
      if (dialed.connection) {
        backoff.reset();
        host.connection = dialed.connection;
        co_await listen(host);
        host.connection->close();
        host.connection.reset();
        keepers_[host.range].lose(host.replica);
        tell(host.range);
      } else if (finishing_ && has_ended(ps)) {
        host.finished = true;  // the process ends as soon as all that it was told of is over
        check_ended();
      }
      if (!host.finished) {
        pause.expires_after(std::min(backoff.next(), kLongestDialPause));
        co_await pause.async_wait(net::kAsTuple);
      }
    }
  }

  asio::awaitable<void> listen(Host& host) {
    if (finishing_) {
      tell_end(host);
    }
    while (host.connection->is_open()) {
      FrameHeader header;
      std::array<std::byte, net::kReportBytes> body{};
      net::Report report;
      if (co_await host.connection->read_header(header, task_.timeouts.silence) ||
          header.kind != FrameKind::kReport || header.body_size != body.size() ||
          co_await host.connection->read_body(body, task_.timeouts.silence) ||
          net::decode(body, report)) {
        co_return;
      }
      if (report.finished) {
        host.finished = true;
        check_ended();
      }
      keepers_[host.range].hear(host.replica, report);
      tell(host.range);
      // Whatever has been decided, this host may not have heard of it.
      if (const auto& view = keepers_[host.range].view(); view && report.view < view->number) {
        send_view(host, *view);
      }
    }
  }

  // A new view, to both hosts.
  void tell(std::size_t range) {
    const auto& view = keepers_[range].view();
    if (!view || view == told_[range] || finishing_) {
      return;
    }
    told_[range] = view;
    check_told();
    log_info("range " + std::to_string(range) + ": view " + std::to_string(view->number) + ", " +
             describe(task_.cluster, host_of_range(task_.cluster, range, view->primary)) +
             (view->paired ? " with a backup" : " alone") +
             (!view->paired && keepers_[range].left() ? ": a trainer does not reach the other host"
                                                      : ""));
    for (Host& host : hosts_) {
      if (host.range == range) {
        send_view(host, *view);
      }
    }
  }

  static void send_view(const Host& host, const net::View& view) {
    if (host.connection) {
      host.connection->send({.kind = FrameKind::kView}, net::encode(view));
    }
  }

  [[nodiscard]] bool has_ended(const net::TaskId& ps) const {
    return std::ranges::any_of(hosts_, [&](const Host& host) {
      return host.finished && host_of_range(task_.cluster, host.range, host.replica) == ps;
    });
  }

  static void tell_end(const Host& host) {
    if (host.connection && !host.finished) {
      host.connection->send({.kind = FrameKind::kShutdown});
    }
  }

  void check_ended() {
    if (finishing_ && std::ranges::all_of(hosts_, &Host::finished)) {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
  }

  void check_told() {
    if (std::ranges::all_of(told_, [](const auto& view) { return view.has_value(); })) {
      const std::scoped_lock lock(mutex_);
      all_told_ = true;
      changed_.notify_all();
    }
  }

  void beat() {
    for (const Host& host : hosts_) {
      if (host.connection) {
        host.connection->send({.kind = FrameKind::kHeartbeat});
      }
    }
    beat_timer_.expires_after(kHeartbeatInterval);
    beat_timer_.async_wait([this](const std::error_code& error) {
      if (!error) {
        beat();
      }
    });
  }

  const Task& task_;
  StopSignal& stop_;
  // The thread owns everything below once it runs.
  asio::io_context context_{1};
  asio::steady_timer beat_timer_;
  std::vector<ViewService> keepers_;             // by range
  std::vector<std::optional<net::View>> told_;  // by range
  std::vector<Host> hosts_;
  bool finishing_ = false;
  // Shared with the computing thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool all_told_ = false;
  bool ended_ = false;

  std::thread thread_;
};

Overseer::Overseer(const Task& task, StopSignal& stop)
    : impl_(std::make_unique<Impl>(task, stop)) {}
Overseer::~Overseer() = default;

void Overseer::await_views(std::chrono::milliseconds limit) { impl_->await_views(limit); }

void Overseer::finish(std::chrono::milliseconds limit) { impl_->finish(limit); }

}  // namespace disttf::roles
