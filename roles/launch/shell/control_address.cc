#include "roles/launch/shell/control_address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <utility>

#include "data/file.h"
#include "net/http/http_session.h"
#include "net/wire/text.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

namespace fs = std::filesystem;
using asio::local::stream_protocol;

constexpr const char* kSocketEnd = ".sock";
constexpr const char* kTokenEnd = ".token";
constexpr const char* kSecretEnd = ".secret";

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Failure(kCannotListen, "--control: " + net::quoted(path) + " is unavailable: " + why);
}

std::string last_error_text() { return std::generic_category().message(errno); }

// Other users must neither replace our socket nor connect to it.
bool is_of_this_user_alone(const std::string& directory) {
  struct stat status {};
  // lstat() does not follow a link, whose target another user could exchange after the check.
  return lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

void make_directory(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    fail(path, last_error_text());
  }
  // The directory may be another user's, created first in a shared parent such as /tmp.
  if (!is_of_this_user_alone(path)) {
    fail(path, "it is not a directory that belongs to this user alone (mode 0700)");
  }
}

enum class Found : std::uint8_t { kNothing, kDead, kAlive, kOther };

Found look_at(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    return Found::kNothing;
  }
  // Never connects to, or removes, what is not a socket: --control may name any file by mistake.
  if (!S_ISSOCK(status.st_mode)) {
    return Found::kOther;
  }
  // A dead launch's socket refuses the connection; every other answer, also an error, counts as
  // alive, so that its files are not removed.
  const std::error_code error = net::try_local(path);
  return error == std::errc::connection_refused ? Found::kDead : Found::kAlive;
}

std::string beside(const std::string& socket, const char* end) {
  return socket.ends_with(kSocketEnd)
             ? socket.substr(0, socket.size() - std::string(kSocketEnd).size()) + end
             : socket + end;
}

// Writes a line to a file of mode 0600, replacing the file of a launch that died.
void write_private(const std::string& path, const std::string& text) {
  // With O_EXCL and O_NOFOLLOW below, a file or link planted under this name is replaced, never
  // written through.
  unlink(path.c_str());
  const data::FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  const std::string line = text + "\n";
  if (file.number() < 0 ||
      // So few bytes are written at once, or not at all.
      write(file.number(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail(path, last_error_text());
  }
}

void remove_dead(const std::string& path) {
  unlink(path.c_str());
  unlink(beside(path, kTokenEnd).c_str());
  unlink(beside(path, kSecretEnd).c_str());
}

// An unused name: a process of another PID namespace may share the directory.
std::string free_name(const std::string& directory) {
  const std::string stem = directory + "/launch-" + std::to_string(getpid());
  std::string path = stem + kSocketEnd;
  // A dead socket of the same name does not count: listen_at() replaces it.
  for (int each = 2; look_at(path) == Found::kAlive; ++each) {
    path = stem + "-" + std::to_string(each) + kSocketEnd;
  }
  return path;
}

}  // namespace

ControlSocket::ControlSocket(asio::io_context& context, const ControlOptions& options)
    : acceptor_(context) {
  if (options.socket.empty()) {
    make_directory(options.directory);
    listen_at(free_name(options.directory));
  } else {
    listen_at(options.socket);
  }
}

// Binds under a temporary name, which no process removes as stale: between bind and listen the
// socket refuses connections like that of a dead launch.
void ControlSocket::listen_at(const std::string& path) {
  switch (look_at(path)) {
    case Found::kNothing:
      break;
    case Found::kDead:
      remove_dead(path);
      break;
    case Found::kAlive:
      fail(path, "a running launch uses it");
    case Found::kOther:
      fail(path, "it exists and is not a socket");
  }
  const std::string early = path + ".new";
  // Left by a launch that died between bind() and rename().
  unlink(early.c_str());
  std::error_code error;
  acceptor_.open(stream_protocol(), error);
  // asio would throw its own exception.
  constexpr std::size_t kMostBytes = 107;
  if (early.size() > kMostBytes) {
    fail(path, "it has " + std::to_string(path.size()) + " bytes; at most 103 are allowed");
  }
  const mode_t before = umask(S_IRWXG | S_IRWXO | S_IXUSR);  // mode 0600 from the start
  if (!error) {
    acceptor_.bind({early}, error);
  }
  umask(before);
  if (!error) {
    // Before rename(): the public name appears only when connections succeed.
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
  }
  if (!error && rename(early.c_str(), path.c_str()) != 0) {
    error = {errno, std::generic_category()};
    unlink(early.c_str());
  }
  if (error) {
    fail(path, error.message());
  }
  path_ = path;
}

ControlSocket::~ControlSocket() {
  // Empty if listen_at() threw: the name then belongs to another launch or to no launch.
  if (!path_.empty()) {
    unlink(path_.c_str());
  }
  if (has_token_) {
    unlink(token_path().c_str());
  }
  if (has_secret_) {
    unlink(secret_path().c_str());
  }
}

stream_protocol::acceptor ControlSocket::take_acceptor() { return std::move(acceptor_); }

std::string ControlSocket::token_path() const { return beside(path_, kTokenEnd); }

std::string ControlSocket::make_token() {
  // 128 bits from the system's generator, the source of std::random_device.
  std::random_device random;
  std::string token;
  for (int each = 0; each < 4; ++each) {
    token += fmt::format("{:08x}", random());
  }
  write_private(token_path(), token);
  has_token_ = true;
  return token;
}

std::string ControlSocket::secret_path() const { return beside(path_, kSecretEnd); }

void ControlSocket::write_secret(const std::string& secret) {
  write_private(secret_path(), secret);
  has_secret_ = true;
}

std::vector<std::string> find_control_sockets(const std::string& directory) {
  std::vector<std::string> found;
  // Another user's directory may contain anything, also sockets that imitate a launch.
  if (!is_of_this_user_alone(directory)) {
    return found;
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kSocketEnd)) {
      continue;
    }
    switch (look_at(path)) {
      case Found::kAlive:
        found.push_back(path);
        break;
      // Cleans up after a launch that was killed and so could not remove its files.
      case Found::kDead:
        remove_dead(path);
        break;
      default:
        break;
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

// Longer chains do not occur; the bound ends the loop if pids are reused meanwhile.
constexpr int kMostAncestors = 1000;

// The parent of a process: 0 if that is outside of this PID namespace. nullopt: /proc does not show
// the process.
std::optional<pid_t> parent_process_of(pid_t pid, const std::filesystem::path& proc) {
  std::ifstream file(proc / std::to_string(pid) / "stat");
  std::string line;
  std::getline(file, line);
  // "4711 (a name) with ) in it) S 4710 ...": the name ends with the last parenthesis.
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(end_of_name + 1));
  char state = 0;
  pid_t parent = 0;
  return fields >> state >> parent ? std::optional(parent) : std::nullopt;
}

}  // namespace

std::optional<std::string> why_refused(const net::LocalPeer& peer,
                                       const std::filesystem::path& proc) {
  // Root can read this process's memory anyway, so it is not refused.
  if (const uid_t own = geteuid(); peer.uid != own && peer.uid != 0) {
    return fmt::format("user {} may not use this control address; allowed are user {} and root",
                       peer.uid, own);
  }
  const pid_t launch = getpid();
  pid_t each = peer.pid;
  for (int steps = 0; steps < kMostAncestors && each > 0; ++steps) {
    const std::optional<pid_t> parent = parent_process_of(each, proc);
    if (!parent) {
      return fmt::format("access denied: /proc does not show the parent of process {}", peer.pid);
    }
    // Tasks run as the same user, so the uid alone does not stop a compromised one.
    if (*parent == launch) {
      return fmt::format(
          "process {} was started by this launch or by one of its tasks, which may not use its "
          "control address",
          peer.pid);
    }
    if (*parent == 1) break;  // process 1 is not a descendant of this launch
    // An orphan of a task is found as well: keep_orphans() makes this process its parent.
    each = *parent;
  }
  return std::nullopt;
}

void keep_orphans() noexcept { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

}  // namespace disttf::roles
