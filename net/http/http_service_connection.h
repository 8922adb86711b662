// A connection of HttpService, with what it reads and what it sends, and the listener that it came
// by. Only for http_service*.cc.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <asio/ip/tcp.hpp>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/http/http_service.h"
#include "net/waiting/descriptor.h"

namespace disttf::net {

using ServiceClock = std::chrono::steady_clock;

struct HttpService::Listener {
  Listener(Descriptor listening, HttpListenerOptions given)
      : socket(std::move(listening)), options(std::move(given)) {}

  Descriptor socket;                  // closed by stop()
  const HttpListenerOptions options;  // used by all loops
  std::atomic<std::size_t> connections{0};
  bool has_clients = false;  // that wait to be accepted; used by the accepting loop
};

// Belongs to one loop. It marks itself as over, and the loop removes it.
class HttpService::Connection final : public HttpExchange {
 public:
  Connection(Listener& accepted_by, Descriptor socket, const asio::ip::tcp::endpoint& peer,
             std::size_t max_body_bytes)
      : parser(max_body_bytes), listener(accepted_by), socket_(std::move(socket)), peer_(peer) {
    if (peer.data()->sa_family == AF_UNIX) identify();
  }
  ~Connection() override { drop_lines(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] const HttpServerRequest& request() const noexcept override {
    return parser.request();
  }
  [[nodiscard]] ServiceClock::time_point begun() const noexcept override { return asked_at; }
  [[nodiscard]] std::string peer() const override;
  [[nodiscard]] std::string client() const override;
  void answer(const HttpReply& reply) override;

  [[nodiscard]] int socket() const noexcept { return socket_.number(); }
  // As the socket's own function; over TLS also for `tls`.
  std::size_t send_some(std::string_view bytes, std::error_code& error);
  // Makes the reply the bytes to send, without its lines.
  void put(const HttpReply& reply, bool stays_open);
  // Sends `stream` after `out`; further input is dropped. `changed` is called when it has more.
  void follow(std::shared_ptr<HttpLineStream> stream, std::function<void()> changed);
  // Makes the lines that have come, or the end of the stream, the next bytes to send. False: there
  // is nothing to send yet, or no more.
  bool next_lines();
  [[nodiscard]] HttpUse use() const noexcept { return listener.options.use; }
  // Whether it waits for a request, or for the rest of one.
  [[nodiscard]] bool is_reading() const noexcept {
    return !is_over && !is_asked && out.empty() && !lines && !is_lingering;
  }
  // Whether no byte of a request has come and nothing is to be sent.
  [[nodiscard]] bool is_idle() const noexcept {
    return !is_asked && out.empty() && !lines && !parser.begun();
  }
  // Whether a client that sends nothing in time gets 408: one that has not made a request yet.
  [[nodiscard]] bool gets_timeout_reply() const noexcept {
    return use() != HttpUse::kService && asked_at == ServiceClock::time_point() &&
           (!tls || tls->is_shaken());
  }

  HttpRequestParser parser;
  Listener& listener;
  Loop* loop = nullptr;                   // the owner
  std::unique_ptr<TlsAccepted> tls;       // null: http
  std::string rest;                       // bytes after a request that is not answered yet
  std::string out;                        // bytes that the peer has not taken
  std::shared_ptr<HttpLineStream> lines;  // they follow `out`; null: there are no more
  std::optional<std::string> refusal;     // the sentence for every request; nullopt: none
  std::size_t out_sent = 0;               // of `out`
  std::size_t held_bytes = 0;             // of the body, as counted by the loop
  std::size_t position = 0;               // index in the loop's list
  ServiceClock::time_point asked_at;
  ServiceClock::time_point waits_since;  // for a request
  ServiceClock::time_point deadline;
  bool is_checked = false;    // the request may be made
  bool is_asked = false;      // the handler has it
  bool is_last = false;       // closed after `out` is sent
  bool is_stream = false;     // `out` is or was followed by lines
  bool takes_chunks = true;   // as the newest request says
  bool is_lingering = false;  // input is only discarded
  bool is_resumed = false;    // it is in the loop's resumed_
  bool is_over = false;
  bool is_moving = false;           // passed to another loop at the end of this turn
  std::uint32_t watched = EPOLLIN;  // what the loop waits for
  bool has_continued = false;       // 100 was sent for this request

 private:
  void identify();
  void drop_lines();

  Descriptor socket_;
  asio::ip::tcp::endpoint peer_;    // of TCP
  std::optional<LocalPeer> local_;  // of a Unix socket; nullopt: the kernel does not report it
};

}  // namespace disttf::net
