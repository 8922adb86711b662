// The address at which a run's page is: its socket, who may ask there, and the link to it.
//
// Reading is open to whoever reaches the address; whatever changes something needs the cookie that
// a link brings (net/http/browser_guard.h). A link is good for one browser.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/http/browser_guard.h"
#include "net/http/http_server.h"
#include "roles/monitor/shell/address_files.h"
#include "roles/monitor/shell/run_page.h"

namespace disttf::roles {

struct PageOptions {
  std::string host = "127.0.0.1";  // an address of this machine, or a name of one
  std::uint16_t port = 0;          // 0: the system chooses
  // Names by which it is reached besides, such as a reverse proxy's, lower case.
  std::vector<std::string> names = {};
  AddressFiles files = {};
};

class PageServer {
 public:
  // `context` and `page` must outlive it. `others` answers what is none of the page's addresses,
  // and is asked only by who may change things; empty: nothing else is there. Throws Failure
  // (kCannotListen, kUsage) with one sentence.
  PageServer(asio::io_context& context, const PageOptions& options, RunPage& page,
             net::HttpServer::Handler others = {});

  // "http://127.0.0.1:4711/"
  [[nodiscard]] std::string url() const { return address_ + "/"; }
  // The same with a token that is good once.
  [[nodiscard]] std::string make_link();

  // Readers are told that no more will come, and the address is closed.
  void stop();

 private:
  RunPage& page_;
  std::string address_;  // "http://127.0.0.1:4711", as links have it
  std::shared_ptr<net::BrowserGuard> guard_;
  net::HttpServer server_;
};

// 128 bits from the system's generator, as hexadecimal digits.
[[nodiscard]] std::string make_secret();

}  // namespace disttf::roles
