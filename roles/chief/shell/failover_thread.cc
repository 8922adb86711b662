#include "roles/chief/shell/failover_thread.h"

#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"
#include "net/wire/messages.h"
#include "roles/chief/core/failover_controller.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/ps_channel.h"
#include "run/process/start_thread.h"

namespace disttf::roles {

using std::chrono::milliseconds;

class FailoverThread::Impl {
 public:
  Impl(const Task& task, std::uint64_t incarnation, PsClient& client, StopSignal& stop)
      : task_(with(task, incarnation)),
        stop_(stop),
        client_(client),
        timer_(context_),
        core_(task_, random_number(), net::Clock::now()) {
    // Before the thread runs: the core's first effects dial every host.
    act();
    spawn([this] { return keep_time(); });
    // Started last: from here on it owns the core and the connections.
    thread_ = start_thread(stop_, [this] { context_.run(); });
  }

  ~Impl() {
    // Posted, so that the thread that runs the loop stops it.
    asio::post(context_, [this] { context_.stop(); });
    thread_.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void finish(net::Deadline deadline) {
    asio::post(context_, [this] {
      core_.finish();
      act();
    });
    std::unique_lock lock(mutex_);
    // Hosts that do not answer must not keep the chief from ending.
    changed_.wait_until(lock, deadline, [this] { return has_ended_; });
  }

  Found await_views(milliseconds limit) {
    std::unique_lock lock(mutex_);
    // Any of the three decides what the chief does next.
    changed_.wait_for(lock, limit, [this] {
      return all_have_views_ || found_.replaced_by != 0 || found_.is_run_over;
    });
    return found_;
  }

  void settle() {
    asio::post(context_, [this] {
      is_settled_ = true;
      act();
    });
  }

 private:
  static Task with(Task task, std::uint64_t incarnation) {
    task.incarnation = incarnation;
    return task;
  }

  void spawn(std::function<asio::awaitable<void>()> work) {
    // Without views the run cannot fail over, so an exception here ends the task.
    net::spawn(context_, std::move(work),
               [this](const std::exception_ptr& exception) { stop_.stop_with(exception); });
  }

  // Carries out the core's effects; to be called after each event.
  void act() {
    core_.effects().drain([this](auto& effect) { carry_out(effect); });
    timer_.cancel();  // the deadline may have changed
    // Only results are shared with the computing thread; the core belongs to this one.
    const std::scoped_lock lock(mutex_);
    all_have_views_ = core_.all_have_views();
    found_ = {.replaced_by = core_.replaced_by(), .is_run_over = core_.is_run_over()};
    // (This process itself, under the incarnation that it has just taken, is not another one: its
    // new watch may have reached a host before this thread was ended.)
    const bool is_other = found_.replaced_by > client_.incarnation();
    if (is_other && !is_settled_ && !core_.is_overtaken()) {
      client_.record_incarnation(found_.replaced_by);
    } else if (is_other) {
      stop_.stop_with(Failure(
          kLostPeers, describe(task_.cluster, task_.self) +
                          " has been replaced by a newer process; this one is no longer part of "
                          "the run"));
    }
    has_ended_ = core_.has_ended();
    changed_.notify_all();
  }
  void carry_out(const DialHost& effect) {
    spawn([this, host = effect.host] { return serve(host); });
  }
  void carry_out(SendToHost& effect) {
    // A host that has closed meanwhile gets the view when it reports again.
    if (const auto to = connections_.find(effect.host); to != connections_.end()) {
      to->second->send(effect.header, std::move(effect.body));
    }
  }
  static void carry_out(const Note& effect) { log_note(effect); }

  asio::awaitable<void> keep_time() {
    while (true) {
      timer_.expires_at(core_.deadline());
      co_await timer_.async_wait(net::kAsTuple);
      // Whether the wait was cancelled or not, the core compares the time itself.
      core_.time(net::Clock::now());
      // act() cancels the timer, so it is called only if there is something to do.
      if (!core_.effects().effects().empty()) {
        act();
      }
    }
  }

  // Makes one attempt, and reads the channel if it is opened.
  asio::awaitable<void> serve(HostNumber host) {
    const net::Dialed dialed =
        co_await dial_host(context_, task_, core_.range_of(host), core_.replica_of(host),
                           net::ChannelPurpose::kView, lookups_[host]);
    if (!dialed.connection) {
      if (dialed.error == net::WireError::kRefused) {
        // Recorded before not_reached(), so that the retry sees it.
        core_.refused(host, dialed.refusal.replaced_by);
        if (dialed.refusal.exit_code == kUsage) {
          core_.refused_for_good(host);
        }
      }
      core_.not_reached(host, net::Clock::now());
      act();
      co_return;
    }
    connections_[host] = dialed.connection;
    core_.reached(host, net::Clock::now());
    // Before the first report: at the end of the run this host is notified now.
    act();
    co_await listen(host, dialed.connection);
    // Closed first: closed() may have the same host dialed again.
    dialed.connection->close();
    connections_.erase(host);
    core_.closed(host, net::Clock::now());
    act();
  }

  asio::awaitable<void> listen(HostNumber host, std::shared_ptr<net::ServerConnection> connection) {
    while (connection->is_open()) {
      net::FrameHeader header;
      std::array<std::byte, net::kBodyBytes<net::Report>> body{};
      net::Report report;
      // A host that sends no report within the timeout counts as lost.
      if (co_await connection->read_header(header, task_.timeouts.heartbeat_timeout)) {
        co_return;
      }
      if (!net::RefusedFrame{}.from_header(header)) {
        co_return co_await read_refusal(host, std::move(connection), header.body_size);
      }
      if (net::ReportFrame{}.from_header(header) || header.body_size != body.size() ||
          co_await connection->read_body(body, task_.timeouts.heartbeat_timeout) ||
          net::decode(body, report)) {
        co_return;
      }
      core_.heard(host, report);
      act();
    }
  }

  // Another chief has connected to that host.
  asio::awaitable<void> read_refusal(HostNumber host,
                                     std::shared_ptr<net::ServerConnection> connection,
                                     std::uint64_t body_size) {
    // The size comes from the host, so the memory for it is bounded.
    std::vector<std::byte> body(std::min(body_size, net::kMaxControlBodyBytes));
    net::Refusal refusal;
    if (!co_await connection->read_body(body, task_.timeouts.heartbeat_timeout) &&
        !net::decode(body, refusal)) {
      core_.refused(host, refusal.replaced_by);
    }
  }

  const Task task_;
  StopSignal& stop_;
  PsClient& client_;
  // Once the thread runs, it owns everything below.
  asio::io_context context_{1};
  asio::steady_timer timer_;
  FailoverController core_;
  bool is_settled_ = false;
  std::map<HostNumber, net::NameLookup> lookups_;
  std::map<HostNumber, std::shared_ptr<net::ServerConnection>> connections_;  // open ones
  // Shared with the computing thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool all_have_views_ = false;
  bool has_ended_ = false;
  Found found_;

  std::thread thread_;
};

FailoverThread::FailoverThread(const Task& task, std::uint64_t incarnation, PsClient& client,
                               StopSignal& stop)
    : impl_(std::make_unique<Impl>(task, incarnation, client, stop)) {}
FailoverThread::~FailoverThread() = default;

FailoverThread::Found FailoverThread::await_views(std::chrono::milliseconds limit) {
  return impl_->await_views(limit);
}

void FailoverThread::settle() { impl_->settle(); }

void FailoverThread::finish(net::Deadline deadline) { impl_->finish(deadline); }

}  // namespace disttf::roles
