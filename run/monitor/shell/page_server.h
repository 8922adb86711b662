// The server of a run's page: its socket, access control, and links.
//
// Every client that reaches the address may read; changes need the cookie that a link sets
// (net/http/browser_guard.h). A link works for one browser.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/http/browser_guard.h"
#include "net/http/http_responder.h"
#include "run/monitor/shell/address_files.h"
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

}  // namespace disttf::roles
