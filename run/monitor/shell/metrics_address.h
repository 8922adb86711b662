// The export of this process's metrics: GET /metrics over http or https for Prometheus, and a file
// for node_exporter's textfile collector, which keeps the last values after a short run.
//
// A thread of its own serves both, so that no step waits for a scraper or for a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "run/monitor/shell/address_access.h"
#include "run/monitor/shell/meters.h"

namespace disttf::roles {

struct MetricsOptions {
  std::optional<std::uint16_t> port = {};  // 0: any free port; nullopt: no http
  std::string host = "127.0.0.1";          // an IP address, or "all"
  std::string textfile = {};               // empty: none
  AddressFiles files = {};

  [[nodiscard]] bool any() const noexcept { return port.has_value() || !textfile.empty(); }

  friend bool operator==(const MetricsOptions&, const MetricsOptions&) = default;
};

// The reply to a request. `targets`: JSON for GET /targets, Prometheus' service discovery over
// http; empty: there are none.
[[nodiscard]] net::HttpReply answer_scrape(const net::HttpServerRequest& request, Meters& meters,
                                           const std::string& targets);

class MetricsAddress {
 public:
  // `meters` must outlive the object. Logs the address. Throws Failure (kCannotListen) with one
  // sentence.
  MetricsAddress(const MetricsOptions& options, Meters& meters);
  // Writes the last values to the file.
  ~MetricsAddress();
  MetricsAddress(const MetricsAddress&) = delete;
  MetricsAddress& operator=(const MetricsAddress&) = delete;

  // "127.0.0.1:9400", for scrapers; empty: no http. target_at(): the same with another port.
  [[nodiscard]] const std::string& target() const noexcept;
  [[nodiscard]] std::string target_at(std::uint16_t port) const;
  [[nodiscard]] bool is_https() const noexcept;
  // Sets the answer to GET /targets.
  void set_targets(std::string json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
