// Where a launch is asked and told: a Unix socket of its user, and how that is found.
//
//   DIRECTORY/launch-4711.sock    mode 0600, in a directory with mode 0700 that belongs to the user
//   DIRECTORY/launch-4711.token   with http on loopback: what a request must carry, mode 0600
//   DIRECTORY/launch-4711.secret  what the tasks of its run share, where launch has made it, for
//   who
//                                 joins them: mode 0600
//
// A socket that nobody listens on was left by a launch that died; whoever comes upon it removes it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <string>
#include <vector>

#include "roles/launch/shell/launcher.h"

namespace disttf::roles {

// A listening socket at a path; the path goes when the object does.
class ControlSocket {
 public:
  // Throws Failure (kCannotListen) with one sentence: the path, and why it cannot be had.
  ControlSocket(asio::io_context& context, const ControlOptions& options);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // The listening socket; once.
  [[nodiscard]] asio::local::stream_protocol::acceptor take_acceptor();
  // Draws a token, writes it to a file beside the socket, "x.sock" -> "x.token", and returns it.
  // Throws Failure.
  [[nodiscard]] std::string make_token();
  [[nodiscard]] std::string token_path() const;
  // "x.sock" -> "x.secret". Throws Failure.
  void write_secret(const std::string& secret);
  [[nodiscard]] std::string secret_path() const;

 private:
  void listen_at(const std::string& path);

  std::string path_;
  asio::local::stream_protocol::acceptor acceptor_;
  bool has_token_ = false;
  bool has_secret_ = false;
};

// The sockets in `directory` on which somebody listens, in order; what the dead have left is
// removed. None where the directory is not this user's alone.
[[nodiscard]] std::vector<std::string> find_control_sockets(const std::string& directory);

}  // namespace disttf::roles
