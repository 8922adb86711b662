// A port of 127.0.0.1 that is reserved for a task of launch, also while it has no process.
//
// A bound socket, with SO_REUSEADDR, that does not listen keeps the system from assigning the port
// to others. Another socket listens beside it, repeatedly if need be. While none does, connections
// are refused, by which peers notice that the task has died.
//
// Not thread-safe.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>

#include "net/wire/address.h"

namespace disttf::roles {

class ReservedPort {
 public:
  // The system chooses the port. Throws std::system_error. `context` must outlive the object.
  explicit ReservedPort(asio::io_context& context);

  [[nodiscard]] net::Address address() const;
  // A listening socket, closed by exec unless its flag is cleared. REQUIRES: no other one listens.
  // Throws std::system_error.
  [[nodiscard]] asio::ip::tcp::acceptor listen();

 private:
  asio::io_context* context_;
  asio::ip::tcp::acceptor bound_;  // never listens
  std::uint16_t number_ = 0;
};

}  // namespace disttf::roles
