#include "run/process/predecessor.h"

#include <asio/error.hpp>
#include <chrono>
#include <system_error>
#include <thread>

#include "run/process/log.h"

namespace disttf::roles {
namespace {

constexpr std::chrono::milliseconds kPredecessor{2000};
constexpr std::chrono::milliseconds kPauseBetweenTries{20};

}  // namespace

asio::ip::tcp::acceptor listen_after_predecessor(
    const std::string& what, const std::function<asio::ip::tcp::acceptor()>& listen,
    const StopSignal* stop) {
  const auto until = std::chrono::steady_clock::now() + kPredecessor;
  bool said = false;
  while (true) {
    try {
      return listen();
    } catch (const std::system_error& error) {
      // Other errors, such as a missing right, do not pass with time.
      if (error.code() != asio::error::address_in_use ||
          std::chrono::steady_clock::now() >= until) {
        throw;
      }
    }
    if (!said) {
      said = true;
      log_info(what + " is in use; if that is a process which is ending, it will soon be free");
    }
    if (stop == nullptr) {
      std::this_thread::sleep_for(kPauseBetweenTries);
    } else if (stop->interrupt().wait_until(net::Clock::now() + kPauseBetweenTries)) {
      stop->throw_if_stopped();
    }
  }
}

}  // namespace disttf::roles
