// The control socket of a launch, how to find it, and who may use it.
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
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "net/http/http_service.h"
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

// Which processes of this machine may use the control socket of a launch.
//
// A launch serves its own user and root. It rejects its own tasks and their descendants: a
// compromised task must not have itself restarted with other flags. The kernel records the pid of a
// client when it connects, and /proc shows the parents of that process. keep_orphans() prevents a
// bypass: a process whose parent ends becomes a child of the launch, not of PID 1.

// The reason for rejecting `peer`; nullopt: it is allowed. A process that /proc does not show (it
// has ended, or /proc hides it) is rejected, because its parents are unknown. A process with pid 0
// is outside of this process's PID namespace, so this launch cannot have started it.
[[nodiscard]] std::optional<std::string> why_refused(const net::LocalPeer& peer,
                                                     const std::filesystem::path& proc = "/proc");

// Makes this process the parent of every descendant whose parent ends (PR_SET_CHILD_SUBREAPER). The
// caller must reap them.
void keep_orphans() noexcept;

}  // namespace disttf::roles
