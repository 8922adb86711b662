#include "bench/page_reader.h"

#include <array>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <string>

namespace disttf::bench {
namespace {

using asio::ip::tcp;

const tcp::endpoint kAnyPort(asio::ip::address_v4::loopback(), 0);

std::uint16_t free_port() {
  asio::io_context context;
  return tcp::acceptor(context, kAnyPort).local_endpoint().port();
}

}  // namespace

PageReader::PageReader() : port_(free_port()), thread_([this] { read(); }) {}

PageReader::~PageReader() {
  ends_ = true;
  thread_.join();  // the run, and so its stream, has ended
}

void PageReader::read() {
  constexpr std::chrono::milliseconds kAgain{20};
  while (!ends_ && !read_once()) {
    std::this_thread::sleep_for(kAgain);
  }
}

bool PageReader::read_once() {
  asio::io_context context;
  tcp::socket socket(context);
  std::error_code error;
  socket.connect({asio::ip::address_v4::loopback(), port_}, error);
  if (error) {
    return false;
  }
  const std::string request =
      "GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
      "\r\nAccept: text/event-stream\r\n\r\n";
  asio::write(socket, asio::buffer(request), error);
  std::array<char, 65536> buffer{};
  while (!error) {
    bytes_ += socket.read_some(asio::buffer(buffer), error);
  }
  return true;
}

}  // namespace disttf::bench
