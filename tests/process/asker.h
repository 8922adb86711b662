// A client of an HTTP server on this machine that keeps its connection open.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/loopback.h"

namespace disttf::test_process {

// A connection that sends one request after the other.
class Asker {
 public:
  struct Answer {
    int status = 0;  // 0: the connection has ended
    std::string head;
    std::string body;
    [[nodiscard]] nlohmann::json as_json() const { return nlohmann::json::parse(body); }
  };

  explicit Asker(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = test_support::loopback(port);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error("cannot connect");
    }
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~Asker() { ::close(socket_); }
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  void send(std::string_view text) const { test_support::send_all(socket_, text); }
  void post(const std::string& path, const std::string& body,
            const std::string& fields = {}) const {
    send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  Answer receive() {
    Answer answer;
    std::size_t end = std::string::npos;
    while ((end = pending_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return answer;
    }
    answer.head = pending_.substr(0, end + 2);
    pending_.erase(0, end + 4);
    const std::size_t field = answer.head.find("\r\nContent-Length: ");
    const std::size_t size =
        field == std::string::npos ? 0 : std::stoul(answer.head.substr(field + 18));
    while (pending_.size() < size) {
      if (!more()) return answer;
    }
    answer.body = pending_.substr(0, size);
    pending_.erase(0, size);
    answer.status = std::stoi(answer.head.substr(9));
    return answer;
  }
  Answer ask(const std::string& path, const std::string& body, const std::string& fields = {}) {
    post(path, body, fields);
    return receive();
  }
  Answer get(const std::string& path) {
    send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return receive();
  }

 private:
  bool more() {
    std::array<char, 65536> buffer{};
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (size <= 0) return false;
    pending_.append(buffer.data(), static_cast<std::size_t>(size));
    return true;
  }
  int socket_;
  std::string pending_;
};

}  // namespace disttf::test_process
