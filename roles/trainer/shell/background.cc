#include "roles/trainer/shell/background.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "net/tcp/dial.h"
#include "net/tcp/listener.h"
#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"
#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/start_thread.h"
#include "run/process/task_listener.h"

namespace disttf::roles {
namespace {

// The limit of one attempt to open a control channel.
constexpr std::chrono::milliseconds kBeatConnectAttempt{2000};
// The largest answer of a ps.
constexpr std::uint64_t kMostAnswer = net::kMaxMetricsReplyBytes;

}  // namespace

class Background::Impl {
 public:
  Impl(const Task& task, StopSignal& stop)
      : task_(task), stop_(stop), incarnation_(task.incarnation) {
    net::ListenerHooks hooks;
    hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
    hooks.on_connection = [](std::shared_ptr<net::ServerConnection>) -> asio::awaitable<void> {
      co_return;  // welcome() accepts probes only
    };
    hooks.on_error = log_exception;
    listener_ = open_task_listener(context_, task, std::move(hooks), stop);
    for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
      beats_.push_back(std::make_unique<Beat>(context_, index));
      net::spawn(
          context_, [this, index] { return beat(*beats_[index]); },
          [this](const std::exception_ptr& exception) { stop_.stop_with(exception); });
    }
    // Last: from here on the thread owns what it uses.
    thread_ = start_thread(stop_, [this] { context_.run(); });
  }

  ~Impl() {
    // Posted, so that the thread that runs the loop stops it.
    asio::post(context_, [this] { context_.stop(); });
    thread_.join();
  }

  void set_generation(net::Generation generation) {
    if (generation_.exchange(generation) != generation) {
      asio::post(context_, [this] {  // a replaced ps must not wait for its heartbeat
        for (const auto& beat : beats_) {
          beat->pause.cancel();
        }
      });
    }
  }

  void set_incarnation(std::uint64_t incarnation) {
    asio::post(context_, [this, incarnation] {
      incarnation_ = incarnation;
      for (const auto& beat : beats_) {
        // A ps knows a channel by the incarnation of its HELLO, so all channels are opened anew.
        if (beat->connection) {
          beat->connection->close();
        }
        beat->pause.cancel();
      }
    });
  }

  void on_replaced(std::function<void(std::size_t, net::Generation)> callback) {
    // Posted, as in the setters below: the thread owns these members, so they need no lock.
    asio::post(context_, [this, callback = std::move(callback)]() mutable {
      replaced_ = std::move(callback);
    });
  }

  void tell(std::function<std::string()> text, std::function<void(const StepWindow&)> trace) {
    asio::post(context_, [this, text = std::move(text), trace = std::move(trace)]() mutable {
      text_ = std::move(text);
      trace_ = std::move(trace);
    });
  }

  void trace(const StepWindow& window) {
    asio::post(context_, [this, window] { window_ = window; });
  }

  void collect(Callback callback) {
    asio::post(context_, [this, callback = std::move(callback)]() mutable {
      callback_ = std::move(callback);
    });
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

 private:
  std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const {
    if (hello.purpose != net::ChannelPurpose::kProbe) {
      return net::Refusal{.exit_code = kUsage,
                          .sentence = describe(task_.cluster, task_.self) +
                                      " holds no parameters; --ps_hosts must name ps tasks"};
    }
    return net::Welcome{.incarnation = task_.incarnation};
  }

  // The control channel to one ps. The channels are independent: a slow name lookup, or a host that
  // drops packets, must not delay the heartbeats to other ps.
  struct Beat {
    Beat(asio::io_context& context, std::size_t index)
        : ps{.job = net::Job::kPs, .index = index}, pause(context) {}

    const net::TaskId ps;
    asio::steady_timer pause;  // until the next heartbeat
    net::NameLookup lookup;
    std::shared_ptr<net::ServerConnection> connection;
    net::Generation generation = 0;  // of the last heartbeat
  };

  // Sends a heartbeat, then again every kHeartbeatInterval. Errors are reported by the step
  // channel; a broken control channel is just opened again.
  asio::awaitable<void> beat(Beat& beat) {
    while (true) {
      const net::Generation generation = generation_;
      // An open channel gets its heartbeat first: to open another one may take long.
      send(beat, generation);
      if (beat.connection && generation != beat.generation) {
        // Reopened, since the name of the ps may resolve to another address in the new generation.
        beat.connection->close();
      }
      beat.generation = generation;
      if (!beat.connection || !beat.connection->is_open()) {
        co_await open(beat);
        send(beat, generation);
      }
      send_metrics(beat);
      // If the generation has changed meanwhile, the heartbeat that names it is due at once.
      if (generation == generation_) {
        beat.pause.expires_after(kHeartbeatInterval);
        co_await beat.pause.async_wait(net::kAsTuple);
      }
    }
  }

  asio::awaitable<void> open(Beat& beat) {
    const net::Dialed dialed =
        co_await net::dial(context_, task_.cluster.address_of(beat.ps),
                           {.cluster = net::hash_of(task_.cluster),
                            .from = task_.self,
                            .to = beat.ps,
                            .purpose = net::ChannelPurpose::kControl,
                            .incarnation = incarnation_},
                           {}, kBeatConnectAttempt, beat.lookup, task_.credentials.get());
    throw_if_out_of_descriptors(dialed.error,
                                "send heartbeats to " + describe(task_.cluster, beat.ps));
    beat.connection = dialed.connection;
    if (beat.connection) {
      // One reader for each connection; it ends when the connection closes.
      net::spawn(
          context_, [this, &beat, connection = beat.connection] { return read(beat, connection); },
          [this](const std::exception_ptr& exception) { stop_.stop_with(exception); });
    }
  }

  // Reads answers to requests sent with heartbeats. The step channel reports invalid frames and
  // broken links.
  asio::awaitable<void> read(Beat& beat, std::shared_ptr<net::ServerConnection> connection) {
    net::FrameHeader header;
    // No timeout: a ps sends nothing unless it is asked.
    while (!co_await connection->read_header(header, std::chrono::milliseconds{0})) {
      net::TraceSteps trace;
      if (header.body_size == 0 && !trace.from_header(header)) {
        // A larger window cannot come from a correct chief, and would measure every step.
        if (trace_ && trace.count <= StepWindow::kMost) {
          trace_({.from = trace.from, .count = trace.count});
        }
        continue;
      }
      if (net::is_bodiless<net::Fenced>(header)) {
        if (replaced_) {
          replaced_(beat.ps.index, beat.generation);
        }
        continue;
      }
      // The size comes from the ps, so the memory for it is bounded.
      std::vector<std::byte> body(std::min<std::uint64_t>(header.body_size, kMostAnswer));
      if (header.body_size > kMostAnswer || net::MetricsReplyFrame{}.from_header(header) ||
          co_await connection->read_body(body, task_.timeouts.heartbeat_timeout)) {
        break;
      }
      std::vector<std::string> texts;
      if (callback_ && !net::decode_metrics(body, texts)) {
        callback_(beat.ps.index, std::move(texts));
      }
    }
    connection->close();
  }

  void send_metrics(const Beat& beat) {
    if (!beat.connection) {
      return;
    }
    // The chief asks every ps, but one copy of a trainer's metrics suffices.
    if (text_ && beat.ps.index == 0) {
      const std::string text = text_();
      // A ps refuses larger metrics, and closes the channel.
      if (!text.empty() && text.size() <= net::kMaxMetricsBytes) {
        const auto bytes = std::as_bytes(std::span(text));
        beat.connection->send(net::MetricsFrame{}.to_header(), {bytes.begin(), bytes.end()});
      }
    }
    if (window_.count != 0) {
      beat.connection->send(
          net::TraceSteps{.from = window_.from, .count = window_.count}.to_header());
    }
    if (callback_) {
      beat.connection->send(net::GetMetrics{}.to_header());
    }
  }

  static void send(const Beat& beat, net::Generation generation) {
    if (beat.connection) {
      beat.connection->send(net::Heartbeat{.generation = generation}.to_header());
    }
  }

  const Task& task_;
  StopSignal& stop_;
  std::atomic<net::Generation> generation_{0};  // set by the computing thread
  // The thread owns everything below once it runs.
  std::uint64_t incarnation_;
  asio::io_context context_{1};
  std::function<void(std::size_t, net::Generation)> replaced_;
  std::function<std::string()> text_;  // empty: no metrics are sent
  std::function<void(const StepWindow&)> trace_;
  Callback callback_;  // empty: no ps is asked
  StepWindow window_;  // the window that all ps are sent
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<Beat>> beats_;  // by ps index
  std::thread thread_;
};

Background::Background(const Task& task, StopSignal& stop)
    : impl_(std::make_unique<Impl>(task, stop)) {}
Background::~Background() = default;

void Background::on_replaced(std::function<void(std::size_t, net::Generation)> callback) {
  impl_->on_replaced(std::move(callback));
}

void Background::tell(std::function<std::string()> text,
                      std::function<void(const StepWindow&)> trace) {
  impl_->tell(std::move(text), std::move(trace));
}

void Background::trace(const StepWindow& window) { impl_->trace(window); }

void Background::collect(Callback callback) { impl_->collect(std::move(callback)); }

void Background::set_generation(net::Generation generation) { impl_->set_generation(generation); }

void Background::set_incarnation(std::uint64_t incarnation) { impl_->set_incarnation(incarnation); }

}  // namespace disttf::roles
