// The control socket of a launch, and how to find it.
//
//   DIRECTORY/launch-4711.sock    mode 0600, in a directory with mode 0700 that belongs to the user
//   DIRECTORY/launch-4711.token   the bearer token of HTTP on loopback: mode 0600
//   DIRECTORY/launch-4711.secret  the secret of the run, if launch made it, for tasks that join:
//                                 mode 0600
//
// A socket without a listener belonged to a launch that died; the next process to find it removes
// it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <string>
#include <vector>

#include "roles/launch/shell/launcher.h"

namespace disttf::roles {

// A listening socket at a path; the destructor removes the path.
class ControlSocket {
 public:
  // Throws Failure (kCannotListen) with one sentence: the path, and why it is unavailable.
  ControlSocket(asio::io_context& context, const ControlOptions& options);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Hands over the listening socket; once.
  [[nodiscard]] asio::local::stream_protocol::acceptor take_acceptor();
  // Makes a token, writes it to a file beside the socket, "x.sock" -> "x.token", and returns it.
  // Throws Failure.
  [[nodiscard]] std::string make_token();
  [[nodiscard]] std::string token_path() const;
  // Writes "x.sock" -> "x.secret". Throws Failure.
  void write_secret(const std::string& secret);
  [[nodiscard]] std::string secret_path() const;

 private:
  void listen_at(const std::string& path);

  std::string path_;
  asio::local::stream_protocol::acceptor acceptor_;
  bool has_token_ = false;
  bool has_secret_ = false;
};

// The sockets in `directory` with a listener, in order; removes stale ones. None if other users can
// access the directory.
[[nodiscard]] std::vector<std::string> find_control_sockets(const std::string& directory);

}  // namespace disttf::roles
