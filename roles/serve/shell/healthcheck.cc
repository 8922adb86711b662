#include "roles/serve/shell/healthcheck.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/http/access_tokens.h"
#include "net/http/http_client.h"
#include "net/tcp/sockets.h"
#include "roles/serve/core/listening_address.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/stop_signal.h"
#include "text/shown_text.h"

namespace disttf::roles {
namespace {

// A health answer is short; a larger one comes from another kind of service.
constexpr std::uint64_t kMostHealthBytes = std::uint64_t{16} << 20U;

// Discards the body, which must still be received completely.
class Unread : public net::HttpSink {
 public:
  std::error_code on_header(const net::HttpBodyInfo& /*info*/) override { return {}; }
  std::error_code on_data(std::span<const std::byte> /*bytes*/) override { return {}; }
};

std::string token_in(const std::string& file) {
  if (file.empty()) {
    return {};
  }
  try {
    return net::AccessTokens(file, {}).offered();
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
}

// Requests `url` within the timeout.
net::HttpOutcome ask_health(const HealthcheckOptions& options, const net::Url& url,
                            const StopSignal& stop) {
  net::HttpRequest request;
  request.url = url;
  request.ca_file = options.ca_file;
  request.connect_timeout = options.timeout;
  request.stall_timeout = options.timeout;
  // The other two limits start anew with each step; this one bounds all of them together.
  request.deadline = net::Clock::now() + options.timeout;
  request.max_bytes = kMostHealthBytes;
  request.token = token_in(options.token_file);
  if (!request.token.empty() && url.scheme == net::Scheme::kHttp &&
      !net::is_loopback_host(url.host)) {
    log_warning("--token_file: the token is sent to " + url.host + " in clear text");
  }
  Unread sink;
  net::HttpOutcome outcome = net::http_get(request, sink, stop.interrupt());
  stop.throw_if_stopped();
  return outcome;
}

// ---- the disttf of this container

std::string text_of_proc(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct OtherProcess {
  pid_t pid = 0;
  char state = '?';                // as in proc(5): T is stopped, Z and X have ended
  std::vector<std::string> words;  // of its command line, without the program's name
  [[nodiscard]] std::string command() const { return words.empty() ? "" : words.front(); }
};

// Recognizes disttf by the name that it gives itself. /proc/PID/exe is not readable if the process
// has protected itself from other processes of its user.
bool is_disttf(const std::filesystem::path& process) {
  return text_of_proc(process / "comm") == "disttf\n";
}

std::vector<std::string> words_in(const std::string& command_line) {
  std::vector<std::string> words;
  std::istringstream rest(command_line);
  for (std::string word; std::getline(rest, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

// The disttf with the lowest pid, which started first. The first process of a container is process
// 1, or the child of an init that is.
std::optional<OtherProcess> find_other() {
  std::optional<OtherProcess> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    // Before is_disttf(), which opens a file for each process.
    const bool is_first = !found || pid < found->pid;
    if (pid <= 0 || pid == ::getpid() || !is_first || !is_disttf(entry.path())) continue;
    const std::string status = text_of_proc(entry.path() / "stat");
    // The name may contain parentheses, so the last one ends it.
    const std::size_t name_end = status.rfind(") ");
    if (name_end == std::string::npos || name_end + 2 >= status.size()) continue;  // it has ended
    found = OtherProcess{.pid = pid,
                         .state = status[name_end + 2],
                         .words = words_in(text_of_proc(entry.path() / "cmdline"))};
  }
  return found;
}

// The inodes of the process's open sockets; none if it has protected itself, as above.
std::set<std::string> sockets_of(const OtherProcess& process) {
  std::set<std::string> inodes;
  std::error_code error;
  const std::filesystem::path folder = "/proc/" + std::to_string(process.pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

// The value of a flag on the command line, `--port=8501` or `--port 8501`.
std::string flag_value(const OtherProcess& process, const std::string& flag,
                       const std::string& otherwise) {
  for (std::size_t at = 0; at < process.words.size(); ++at) {
    const std::string& word = process.words[at];
    if (word.starts_with(flag + "=")) return word.substr(flag.size() + 1);
    if (word == flag && at + 1 < process.words.size()) return process.words[at + 1];
  }
  return otherwise;
}

net::Url health_url(const net::Address& address) {
  return {.host = address.host, .port = address.port, .target = "/v2/health/live"};
}

// The address at which the process listens by its flags. nullopt: the kernel chose the port.
std::optional<net::Url> url_of_flags(const OtherProcess& process) {
  const std::string port = flag_value(process, "--port", "8501");
  const std::string host = flag_value(process, "--host", "127.0.0.1");
  if (port == "0") return std::nullopt;
  return health_url({.host = host_to_connect_to(host),
                     .port = static_cast<std::uint16_t>(std::strtoul(port.c_str(), nullptr, 10))});
}

// The address at which the process listens, from the kernel.
std::optional<net::Url> listens_at(const OtherProcess& process) {
  const std::set<std::string> own = sockets_of(process);
  // The descriptors of a protected process are hidden; its command line is not.
  if (own.empty()) return url_of_flags(process);
  for (const char* table : {"tcp", "tcp6"}) {
    const std::string sockets =
        text_of_proc("/proc/" + std::to_string(process.pid) + "/net/" + table);
    if (const auto address = listening_address(sockets, own)) return health_url(*address);
  }
  return std::nullopt;
}

int check_this_container(const HealthcheckOptions& options, const StopSignal& stop) {
  const std::optional<OtherProcess> process = find_other();
  if (!process) {
    throw Failure(kError, "healthcheck: no other disttf runs in this container");
  }
  const std::string name =
      "disttf " + shown_text(process->command()) + ", process " + std::to_string(process->pid);
  if (std::string_view("TtZX").find(process->state) != std::string_view::npos) {
    throw Failure(
        kError, name + ", " +
                    (process->state == 'Z' || process->state == 'X' ? "has ended" : "is stopped"));
  }
  if (process->command() == "serve") {
    const std::optional<net::Url> url = listens_at(*process);
    if (!url) {
      throw Failure(kError, name + ", listens on no port");
    }
    const net::HttpOutcome outcome = ask_health(options, *url, stop);
    // A service that uses https answers 400 to a request in clear text: it is alive.
    if (outcome.error && outcome.sentence.find("the server answered 400") == std::string::npos) {
      throw Failure(kError, name + ": " + outcome.sentence);
    }
  }
  print_result(name + ": well");
  return kDone;
}

}  // namespace

int run_healthcheck(const HealthcheckOptions& options) {
  const StopSignal stop;
  if (!options.url) {
    return check_this_container(options, stop);
  }
  const net::HttpOutcome outcome = ask_health(options, *options.url, stop);
  if (outcome.error) {
    throw Failure(kError, outcome.sentence);
  }
  print_result(net::to_string(*options.url) + ": well");
  return kDone;
}

}  // namespace disttf::roles
