#include "tests/process/listening.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "data/file.h"
#include "tests/process/process.h"

namespace disttf::test_process {
namespace {

bool is_listening(std::uint16_t port) {
  const data::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
         0;
}

}  // namespace

bool wait_until_listening(std::uint16_t port) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!is_listening(port)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // polls, with a deadline
  }
  return true;
}

}  // namespace disttf::test_process
