#include "roles/background.h"

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "net/channel.h"
#include "net/peer.h"
#include "net/server.h"
#include "roles/log.h"
#include "roles/outcome.h"
#include "roles/task_listener.h"

namespace disttf::roles {
namespace {

// A ps that does not answer holds up the beats to the others for this long at most.
constexpr std::chrono::milliseconds kBeatConnectAttempt{500};

}  // namespace

class Background::Impl {
 public:
  explicit Impl(const Task& task) : task_(task), timer_(context_) {
    net::ServerHooks hooks;
    hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
    hooks.on_connection = [](std::shared_ptr<net::ServerConnection>) -> asio::awaitable<void> {
      co_return;  // welcome() lets nobody but probes in
    };
    hooks.on_error = [](std::exception_ptr exception) {
      try {
        std::rethrow_exception(exception);
      } catch (const std::exception& error) {
        log_error(error.what());
      }
    };
    listener_ = open_task_listener(context_, task, std::move(hooks));
    channels_.resize(task.cluster.ps.size());
    thread_ = std::thread([this] {
      beat();
      context_.run();
    });
  }

  ~Impl() {
    stopping_.interrupt();
    asio::post(context_, [this] { context_.stop(); });
    thread_.join();
  }

  void set_generation(std::uint32_t generation) {
    if (generation_.exchange(generation) != generation) {
      asio::post(context_, [this] { beat(); });  // a ps that was replaced must not wait for it
    }
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

  // One heartbeat to every ps, then again kHeartbeatInterval after the last beat. Errors are the
  // step channel's to report; here a broken channel is simply opened again.
  void beat() {
    const std::uint32_t generation = generation_;
    const net::FrameHeader heartbeat{.kind = net::FrameKind::kHeartbeat, .generation = generation};
    for (std::size_t index = 0; index < channels_.size(); ++index) {
      auto& channel = channels_[index];
      const auto deadline = net::Clock::now() + kBeatConnectAttempt;
      if (generation != beaten_generation_ && channel) {
        static_cast<void>(channel->send(heartbeat, {}, deadline));
        channel.reset();
      }
      if (!channel || !channel->is_open()) {
        const net::TaskId ps{.job = net::Job::kPs, .index = index};
        channel = net::open_channel(task_.cluster.address_of(ps),
                                    {.cluster = net::hash_of(task_.cluster),
                                     .from = task_.self,
                                     .to = ps,
                                     .purpose = net::ChannelPurpose::kControl,
                                     .incarnation = task_.incarnation},
                                    stopping_, deadline)
                      .channel;
      }
      if (channel && channel->send(heartbeat, {}, deadline)) {
        channel.reset();
      }
    }
    beaten_generation_ = generation;
    timer_.expires_after(kHeartbeatInterval);
    timer_.async_wait([this](const std::error_code& error) {
      if (!error) {
        beat();
      }
    });
  }

  const Task& task_;
  net::Interrupt stopping_;
  std::atomic<std::uint32_t> generation_{0};  // the computing thread's to set
  // The thread owns everything below once it runs.
  asio::io_context context_{1};
  asio::steady_timer timer_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<net::Channel>> channels_;  // by ps index
  std::uint32_t beaten_generation_ = 0;                  // of the last beat
  std::thread thread_;
};

Background::Background(const Task& task) : impl_(std::make_unique<Impl>(task)) {}
Background::~Background() = default;

void Background::set_generation(std::uint32_t generation) { impl_->set_generation(generation); }

}  // namespace disttf::roles
