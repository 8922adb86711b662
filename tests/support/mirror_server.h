// A mirror to test the download client against: real sockets on 127.0.0.1, and whatever manners a
// test asks for.
//
// One thread a connection, one request a connection. A Handler answers it byte by byte; it is
// called from several threads at once. The functions below make the usual ones. The server leaves
// a connection only when its handler returns or the server is destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/tls_identity.h"

namespace disttf::test_support {

struct MirrorRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  [[nodiscard]] std::string header(const std::string& name) const;
  // N of "Range: bytes=N-".
  [[nodiscard]] std::optional<std::size_t> range_begin() const;
};

// The server's end of a connection. False: the client has gone.
class MirrorConnection {
 public:
  MirrorConnection(int socket, SSL* tls) : socket_(socket), tls_(tls) {}
  bool send(std::string_view text) const;
  // Status line, Content-Length, `headers` (each line with its CRLF) and body.
  bool respond(std::string_view status, std::string_view body, std::string_view headers = {}) const;
  // Up to and with the blank line after the header; empty: the client has gone.
  [[nodiscard]] std::string read_head() const;
  // That many bytes of the request's body, or fewer: the client has gone.
  [[nodiscard]] std::string read_body(std::size_t bytes) const;
  // Says nothing until the client hangs up (or the server is destroyed).
  void wait_for_hangup() const;
  // True as soon as the client has hung up, false when it has not by then.
  [[nodiscard]] bool hangs_up_within(std::chrono::milliseconds time) const;
  // Becomes a tunnel to 127.0.0.1:port until either side closes.
  void relay_to(std::uint16_t port) const;

 private:
  [[nodiscard]] std::ptrdiff_t read_some(char* data, std::size_t size) const;
  int socket_;
  SSL* tls_;  // null: plain
};

using Handler = std::function<void(const MirrorRequest&, const MirrorConnection&)>;
using Files = std::map<std::string, std::string>;  // target ("/a.gz") -> contents

class MirrorServer {
 public:
  // kLater: clients can connect and wait, no thread runs until start(). A test that forks does so
  // before: what a thread of the parent holds at that moment, an allocator's lock say, is held in
  // the child for ever.
  enum class Start : std::uint8_t { kNow, kLater };

  // With `tls` it speaks https. Throws std::system_error when there is no socket.
  explicit MirrorServer(Handler handler, OpenSsl<SSL_CTX> tls = nullptr, Start start = Start::kNow);
  MirrorServer(Handler handler, Start start) : MirrorServer(std::move(handler), nullptr, start) {}
  ~MirrorServer();
  MirrorServer(const MirrorServer&) = delete;
  MirrorServer& operator=(const MirrorServer&) = delete;

  void start();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // "http://127.0.0.1:PORT"; `host`: under which other name it is asked for.
  [[nodiscard]] std::string url(const std::string& path = "/",
                                const std::string& host = "127.0.0.1") const;
  // Every request that arrived so far.
  [[nodiscard]] std::vector<MirrorRequest> requests() const;
  // Returns once a request has arrived; false when none comes for half a minute.
  [[nodiscard]] bool wait_for_request() const;

 private:
  void accept_connections();
  void serve(int socket);
  void answer(const MirrorConnection& connection);

  Handler handler_;
  OpenSsl<SSL_CTX> tls_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;  // requests_ has grown
  std::set<int> sockets_;                    // open connections; guarded by mutex_
  std::vector<MirrorRequest> requests_;      // guarded by mutex_
  std::vector<std::thread> threads_;         // of the accepting thread; joined after it
  std::thread acceptor_;
};

// --- manners ---

// Serves the files, with ranges; anything else is a 404.
[[nodiscard]] Handler serve(Files files);
// The same, but as if ranges did not exist.
[[nodiscard]] Handler serve_without_ranges(Files files);
// 200 and an HTML page for everything.
[[nodiscard]] Handler serve_page();
[[nodiscard]] Handler answer_not_found();
// Sends the header and `bytes` bytes of the body, then nothing more, for ever.
[[nodiscard]] Handler stall_after(Files files, std::size_t bytes);
// Sends `bytes` bytes of what was asked for and hangs up.
[[nodiscard]] Handler break_after(Files files, std::size_t bytes, bool ranges = true);
// `first` for the first `count` requests, then `later`.
[[nodiscard]] Handler first_then(std::size_t count, const Handler& first, const Handler& later);
// `status` ("302 Found") with `location`.
[[nodiscard]] Handler redirect(const std::string& status, const std::string& location);
// An http proxy: CONNECT opens a tunnel to that port of 127.0.0.1 whatever the name; requests in
// absolute form go to `plain`.
[[nodiscard]] Handler proxy(Handler plain);

}  // namespace disttf::test_support
