// The server of a run's page: its socket, access control, and links.
//
// Every client that reaches the address may read; changes need the cookie that a link sets
// (net/http/browser_guard.h). A link works for one browser.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/http/browser_guard.h"
#include "net/http/http_responder.h"
#include "run/monitor/shell/address_access.h"
#include "run/monitor/shell/run_page.h"

namespace disttf::roles {

struct PageOptions {
  std::string host = "127.0.0.1";  // an address or a name of this machine
  std::uint16_t port = 0;          // 0: any free port
  // Further names for clients, such as a reverse proxy's, in lower case.
  std::vector<std::string> names = {};
  AddressFiles files = {};
};

class PageServer {
 public:
  // `context` and `page` must outlive it. `others` answers paths that are not the page's, for
  // clients that may change things; empty: there are none. Throws Failure (kCannotListen, kUsage)
  // with one sentence.
  PageServer(asio::io_context& context, const PageOptions& options, RunPage& page,
             net::HttpResponder::Answer others = {});

  // "http://127.0.0.1:4711/"
  [[nodiscard]] std::string url() const { return address_ + "/"; }
  // The same with a token that works once.
  [[nodiscard]] std::string make_link();

  // Ends the streams of readers, and closes the address.
  void stop();

 private:
  RunPage& page_;
  std::string address_;  // "http://127.0.0.1:4711", for links
  std::shared_ptr<net::BrowserGuard> guard_;
  net::HttpResponder server_;
};

// 128 bits from the system's generator, as hexadecimal digits.
[[nodiscard]] std::string make_secret();

// The page of a run in a process with other work: records come from any thread, a thread of its own
// serves them. Callers never wait.
class PageThread {
 public:
  // The changes that the page offers; an empty function: not offered. Called on the page's thread;
  // they return a sentence about what is done.
  struct Changes {
    std::function<std::string()> save = {};
    std::function<std::string()> trace = {};  // a timeline with the default number of steps
    std::function<std::string()> stop = {};
  };

  // Throws Failure (kCannotListen), and std::system_error if no thread can be started.
  PageThread(const PageOptions& options, Changes changes);
  ~PageThread();  // ends the streams of readers
  PageThread(const PageThread&) = delete;
  PageThread& operator=(const PageThread&) = delete;

  // A link that works for one browser, made at the start.
  [[nodiscard]] const std::string& link() const noexcept { return link_; }

  // Takes a record, without its line's end. Callable from any thread.
  void take(std::string line);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string link_;
};

}  // namespace disttf::roles
