// An attacker that reaches the ports of a run without its secret. It tries all the time, in every
// way but with the secret, to be accepted, and counts successful attempts.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "net/tls/secrets.h"
#include "net/waiting/interrupt.h"

namespace disttf::bench {

class Outsider {
 public:
  // Starts the attack, on every port of 127.0.0.1 that did not listen before.
  Outsider();
  ~Outsider();
  Outsider(const Outsider&) = delete;
  Outsider& operator=(const Outsider&) = delete;

  struct Tally {
    std::size_t attempts = 0;  // except those that only connect
    std::size_t silent = 0;    // connections that send nothing, or half a handshake
    std::size_t got_in = 0;    // got an answer, or completed a handshake
    double cpu_seconds = 0;    // the attacker's own
  };
  // Ends the attack.
  [[nodiscard]] Tally end();

 private:
  void run();
  void find_ports();
  void attempt(std::uint16_t port);
  void stay_silent(std::uint16_t port);
  void say(std::uint16_t port, const std::vector<std::byte>& bytes, bool is_silent = false);
  void shake_hands(std::uint16_t port);
  void let_go(std::size_t most_silent, std::size_t most_others);
  [[nodiscard]] static bool was_heard(int fd);

  const rlimit limit_before_;  // limit of descriptors
  const std::set<std::uint16_t> before_;
  const std::vector<std::byte> old_hello_;  // of a client with TLS 1.2 at most
  net::Secrets other_secret_;
  net::Interrupt interrupt_;
  std::vector<std::uint16_t> ports_;
  std::deque<int> silent_;  // descriptors
  std::deque<int> others_;
  std::size_t turn_ = 0;
  Tally tally_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace disttf::bench
