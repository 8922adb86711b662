// A mirror for tests of the download client: real sockets on 127.0.0.1, with the faults that a test
// selects.
//
// One thread for each connection, one request for each connection. A Handler writes the response
// byte by byte; several threads call it at once. The functions below make the usual handlers. The
// server closes a connection only when its handler returns or the server is destroyed.
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
  std::map<std::string, std::string> headers;  // with lower-case names
  [[nodiscard]] std::string header(const std::string& name) const;
  // Returns N of "Range: bytes=N-".
  [[nodiscard]] std::optional<std::size_t> range_begin() const;
};

// The server's end of a connection. Functions return false if the client has closed the connection.
class MirrorConnection {
 public:
  MirrorConnection(int socket, SSL* tls) : socket_(socket), tls_(tls) {}
  bool send(std::string_view text) const;
  // Sends status line, Content-Length, `headers` (each line with its CRLF) and body.
  bool respond(std::string_view status, std::string_view body, std::string_view headers = {}) const;
  // Reads up to and including the blank line after the header; empty: the client closed the
  // connection.
  [[nodiscard]] std::string read_head() const;
  // Reads that many bytes of the request's body; returns fewer if the client closed the connection.
  [[nodiscard]] std::string read_body(std::size_t bytes) const;
  // Sends nothing until the client closes the connection (or the server is destroyed).
  void wait_for_hangup() const;
  // Returns true as soon as the client has closed the connection, false after `time`.
  [[nodiscard]] bool hangs_up_within(std::chrono::milliseconds time) const;
  // Becomes a tunnel to 127.0.0.1:port until either side closes.
  void relay_to(std::uint16_t port) const;

 private:
  [[nodiscard]] std::ptrdiff_t read_some(char* data, std::size_t size) const;
  int socket_;
  SSL* tls_;  // null: without TLS
};

using Handler = std::function<void(const MirrorRequest&, const MirrorConnection&)>;
using Files = std::map<std::string, std::string>;  // target ("/a.gz") -> contents

class MirrorServer {
 public:
  // kLater: clients can connect and wait; no thread runs until start(). A test that forks must fork
  // before start(): locks that a thread of the parent holds at the fork, e.g. an allocator's, stay
  // locked in the child for ever.
  enum class Start : std::uint8_t { kNow, kLater };

  // `tls`: serves https. Throws std::system_error if no socket can be made.
  explicit MirrorServer(Handler handler, OpenSsl<SSL_CTX> tls = nullptr, Start start = Start::kNow);
  MirrorServer(Handler handler, Start start) : MirrorServer(std::move(handler), nullptr, start) {}
  ~MirrorServer();
  MirrorServer(const MirrorServer&) = delete;
  MirrorServer& operator=(const MirrorServer&) = delete;

  void start();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // Returns "http://127.0.0.1:PORT"; `host` replaces the name.
  [[nodiscard]] std::string url(const std::string& path = "/",
                                const std::string& host = "127.0.0.1") const;
  // Returns all requests so far.
  [[nodiscard]] std::vector<MirrorRequest> requests() const;
  // Waits for a request. Returns false if none arrives within half a minute.
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
  std::vector<std::thread> threads_;         // made by the accepting thread; joined after it
  std::thread acceptor_;
};

// --- handlers ---

// Serves the files, with ranges; anything else is a 404.
[[nodiscard]] Handler serve(Files files);
// Serves the files and ignores ranges.
[[nodiscard]] Handler serve_without_ranges(Files files);
// Answers every request with 200 and an HTML page.
[[nodiscard]] Handler serve_page();
[[nodiscard]] Handler answer_not_found();
// Sends the header and `bytes` bytes of the body, then stalls for ever.
[[nodiscard]] Handler stall_after(Files files, std::size_t bytes);
// Sends `bytes` bytes of the requested file and closes the connection.
[[nodiscard]] Handler break_after(Files files, std::size_t bytes, bool ranges = true);
// Uses `first` for the first `count` requests, then `later`.
[[nodiscard]] Handler first_then(std::size_t count, const Handler& first, const Handler& later);
// Answers with `status` ("302 Found") and `location`.
[[nodiscard]] Handler redirect(const std::string& status, const std::string& location);
// An http proxy: CONNECT opens a tunnel to that port of 127.0.0.1 for any name; requests in
// absolute form go to `plain`.
[[nodiscard]] Handler proxy(Handler plain);

}  // namespace disttf::test_support
