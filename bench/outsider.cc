#include "bench/outsider.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string_view>

#include "net/tcp/channel.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

namespace disttf::bench {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostSilent = 10'000;
constexpr std::size_t kMostOthers = 100;  // attempts that are waiting for an answer
constexpr std::size_t kSilentATurn = 10;  // connections
constexpr milliseconds kTurn{10};         // time between attempts
constexpr std::size_t kTurnsBetweenLooks = 20;
constexpr auto kKinds = static_cast<std::size_t>(net::FrameKind::kConclude);  // frame kinds

// The listening ports of 127.0.0.1, from the kernel's list: "sl local_address rem_address st", in
// hexadecimal. Listening sockets come first. Reading stops there: the lines of this attacker's own
// connections follow, and reading them would take more CPU time from the run than all else it does.
std::set<std::uint16_t> listening_ports() {
  std::set<std::uint16_t> ports;
  std::ifstream list("/proc/net/tcp");
  std::string line;
  while (std::getline(list, line)) {
    std::istringstream fields(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    fields >> number >> local >> remote >> state;
    if (line.find("local_address") != std::string::npos) continue;
    if (state != "0A") break;
    if (local.starts_with("0100007F:")) {
      ports.insert(static_cast<std::uint16_t>(std::stoul(local.substr(9), nullptr, 16)));
    }
  }
  return ports;
}

std::vector<std::byte> hello_of_old_client() {
  std::vector<std::byte> bytes(512);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL* const ssl = SSL_new(context);
  BIO* const said = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, BIO_new(BIO_s_mem()), said);
  SSL_connect(ssl);
  const int size = BIO_read(said, bytes.data(), static_cast<int>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max(size, 0)));
  SSL_free(ssl);
  SSL_CTX_free(context);
  return bytes;
}

net::Hello hello_of_a_worker() {
  return {.cluster = {},
          .from = {.job = net::Job::kWorker, .index = 0},
          .to = {.job = net::Job::kPs, .index = 0},
          .purpose = net::ChannelPurpose::kStep};
}

std::vector<std::byte> frame(net::FrameKind kind, const std::vector<std::byte>& body) {
  std::vector<std::byte> bytes(net::kHeaderBytes);
  net::encode_header({.kind = kind, .body_size = body.size()},
                     std::span<std::byte, net::kHeaderBytes>(bytes));
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

// Raises this process's limit and returns the previous one.
rlimit raise_descriptor_limit() {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit most{.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &most);
  return before;
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace

Outsider::Outsider()
    : limit_before_(raise_descriptor_limit()),
      before_(listening_ports()),
      old_hello_(hello_of_old_client()),
      other_secret_("no secret of any run, however often it is tried", "outsider"),
      thread_([this] { run(); }) {}

Outsider::~Outsider() { static_cast<void>(end()); }

Outsider::Tally Outsider::end() {
  ends_ = true;
  if (thread_.joinable()) {
    thread_.join();
    setrlimit(RLIMIT_NOFILE, &limit_before_);
  }
  return tally_;
}

void Outsider::run() {
  for (std::size_t count = 0; !ends_; ++count) {
    if (count % kTurnsBetweenLooks == 0) find_ports();
    if (!ports_.empty()) {
      const std::uint16_t port = ports_[count % ports_.size()];
      for (std::size_t each = 0; each < kSilentATurn && silent_.size() < kMostSilent; ++each) {
        stay_silent(port);
      }
      attempt(port);
      let_go(kMostSilent, kMostOthers);
    }
    std::this_thread::sleep_for(kTurn);
  }
  let_go(0, 0);
  tally_.cpu_seconds = own_cpu_seconds();
}

void Outsider::find_ports() {
  ports_.clear();
  for (const std::uint16_t port : listening_ports()) {
    if (!before_.contains(port)) ports_.push_back(port);
  }
}

void Outsider::attempt(std::uint16_t port) {
  const std::size_t way = turn_++;
  switch (way % 4) {
    case 0:
      return shake_hands(port);
    case 1:
      return say(port, old_hello_);
    case 2: {
      const auto kind = static_cast<net::FrameKind>(1 + way / 4 % kKinds);
      return say(port, frame(kind, kind == net::FrameKind::kHello ? encode(hello_of_a_worker())
                                                                  : std::vector<std::byte>()));
    }
    default: {
      std::vector<std::byte> noise(200);
      std::mt19937 random(static_cast<unsigned>(way));
      for (std::byte& each : noise) each = static_cast<std::byte>(random());
      return say(port, noise);
    }
  }
}

// Opens connections that stay silent, or that stop in the middle of a handshake.
void Outsider::stay_silent(std::uint16_t port) {
  const bool is_half = tally_.silent % 2 == 0;
  say(port, {old_hello_.begin(), old_hello_.begin() + (is_half ? 50 : 0)}, true);
}

void Outsider::say(std::uint16_t port, const std::vector<std::byte>& bytes, bool is_silent) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0) return;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return;
  }
  static_cast<void>(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  (is_silent ? silent_ : others_).push_back(fd);
  ++(is_silent ? tally_.silent : tally_.attempts);
}

void Outsider::shake_hands(std::uint16_t port) {
  constexpr std::chrono::seconds kPatience{1};
  ++tally_.attempts;
  std::error_code error;
  std::string detail;
  if (net::connect_tls({.host = "127.0.0.1", .port = port}, other_secret_, hello_of_a_worker(),
                       interrupt_, net::Clock::now() + kPatience, error, detail)) {
    ++tally_.got_in;
  }
}

void Outsider::let_go(std::size_t most_silent, std::size_t most_others) {
  const auto shorten = [this](std::deque<int>& held, std::size_t most) {
    for (; held.size() > most; held.pop_front()) {
      if (was_heard(held.front())) ++tally_.got_in;
      ::close(held.front());
    }
  };
  shorten(silent_, most_silent);
  shorten(others_, most_others);
}

// To a peer without TLS, a task with a secret may send only one frame: that it has a secret. Any
// other frame, a refusal included, is an answer that an unauthenticated peer must not get.
bool Outsider::was_heard(int fd) {
  std::array<std::byte, 4096> bytes{};
  const ssize_t size = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  net::FrameHeader header;
  if (size < static_cast<ssize_t>(net::kHeaderBytes) ||
      net::decode_header(std::span(bytes).first<net::kHeaderBytes>(), header)) {
    return false;
  }
  const std::string_view said(reinterpret_cast<const char*>(bytes.data()),
                              static_cast<std::size_t>(size));
  return header.kind != net::FrameKind::kRefused ||
         said.find("only peers that have its secret") == std::string_view::npos;
}

}  // namespace disttf::bench
