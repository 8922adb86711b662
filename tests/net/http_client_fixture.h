// Helpers for the tests of the download client: a sink that stores what arrives, and a request.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <system_error>

#include "net/http/http_client.h"
#include "tests/support/mirror_server.h"

namespace disttf::net {

class Collector : public HttpSink {
 public:
  std::error_code on_header(const HttpBodyInfo& seen) override {
    info = seen;
    return {};
  }
  std::error_code on_data(std::span<const std::byte> bytes) override {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return refuse_after < body.size() ? std::make_error_code(std::errc::no_space_on_device)
                                      : std::error_code{};
  }
  HttpBodyInfo info;
  std::string body;
  std::size_t refuse_after = std::string::npos;
};

class HttpClientTest : public testing::Test {
 protected:
  HttpOutcome get(const std::string& url) {
    request.url = parse_url("url", url);
    return http_get(request, sink, interrupt);
  }
  HttpOutcome get(const test_support::MirrorServer& server) { return get(server.url("/a")); }
  // Returns the outcome for a server that sends exactly this and closes the connection.
  HttpOutcome get_raw(const std::string& response) {
    const test_support::MirrorServer server(
        [&](const test_support::MirrorRequest&, const test_support::MirrorConnection& connection) {
          connection.send(response);
        });
    return get(server);
  }

  HttpRequest request;
  Collector sink;
  Interrupt interrupt;
  const test_support::Files files{{"/a", "0123456789"}, {"/big", std::string(300'000, 'x')}};
};

}  // namespace disttf::net
