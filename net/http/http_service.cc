#include "net/http/http_service.h"

#include <fcntl.h>

#include <utility>

#include "net/http/http_service_loop.h"

namespace disttf::net {

HttpService::HttpService(const HttpServiceOptions& options, const MakeHandler& make_handler)
    : shared_(std::make_unique<Shared>()) {
  shared_->options = options;
  const bool has_front = options.is_quick != nullptr;
  for (std::size_t i = 0; i < options.threads + (has_front ? 1 : 0); ++i) {
    shared_->loops.push_back(std::make_unique<Loop>(*shared_, make_handler(i)));
  }
  shared_->front = has_front ? shared_->loops.back().get() : nullptr;
}

HttpService::~HttpService() = default;

void HttpService::listen(Descriptor socket, HttpListenerOptions options) {
  // Child processes do not inherit the socket, and the loops call accept() until it would block.
  ::fcntl(socket.number(), F_SETFD, FD_CLOEXEC);
  ::fcntl(socket.number(), F_SETFL, O_NONBLOCK);
  Listener& added = shared_->listeners.emplace_back(std::move(socket), std::move(options));
  shared_->accepting().listen(added);
}

std::size_t HttpService::threads() const noexcept { return shared_->loops.size(); }

void HttpService::run(std::size_t thread) { shared_->loops[thread]->run(); }

int HttpService::descriptor() const noexcept { return shared_->loops.front()->descriptor(); }

std::optional<std::chrono::milliseconds> HttpService::turn() {
  return shared_->loops.front()->turn(std::chrono::milliseconds(0));
}

void HttpService::drain() noexcept {
  // A compare-and-swap, so that a late drain() does not undo stop().
  Shared::Stage expected = Shared::Stage::kServing;
  shared_->stage.compare_exchange_strong(expected, Shared::Stage::kDraining);
}

void HttpService::stop() noexcept {
  shared_->stage = Shared::Stage::kStopping;
  for (const std::unique_ptr<Loop>& each : shared_->loops) each->wake();
}

std::size_t HttpService::connections() const noexcept {
  std::size_t total = 0;
  for (const auto& each : shared_->loops) total += each->count();
  return total;
}

}  // namespace disttf::net
