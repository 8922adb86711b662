// Where the metrics of this process are read: GET /metrics over http or https for Prometheus, and a
// file for node_exporter's textfile collector, which still has the last values when a short run has
// ended.
//
// A thread of its own serves both, so that no step waits for a scraper or for a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http/http_request.h"
#include "net/http/http_server.h"
#include "roles/monitor/shell/address_files.h"
#include "roles/monitor/shell/meters.h"

namespace disttf::roles {

struct MetricsOptions {
  std::optional<std::uint16_t> port = {};  // 0: the system chooses; nullopt: no http
  std::string host = "127.0.0.1";          // an IP address, or "all"
  std::string textfile = {};               // empty: none
  AddressFiles files = {};

  [[nodiscard]] bool any() const noexcept { return port.has_value() || !textfile.empty(); }

  friend bool operator==(const MetricsOptions&, const MetricsOptions&) = default;
};

// What a request is answered with. `targets`: JSON for GET /targets, Prometheus' service discovery
// over http; empty: there are none.
[[nodiscard]] net::HttpReply answer_scrape(const net::HttpServerRequest& request, Meters& meters,
                                           const std::string& targets);

class MetricsAddress {
 public:
  // `meters` must outlive the object. Says in the log where it is to be found. Throws Failure
  // (kCannotListen) with one sentence.
  MetricsAddress(const MetricsOptions& options, Meters& meters);
  // Writes the last values to the file.
  ~MetricsAddress();
  MetricsAddress(const MetricsAddress&) = delete;
  MetricsAddress& operator=(const MetricsAddress&) = delete;

  // "127.0.0.1:9400", as a scraper calls it; empty: no http. And another port beside it.
  [[nodiscard]] const std::string& target() const noexcept;
  [[nodiscard]] std::string target_at(std::uint16_t port) const;
  [[nodiscard]] bool is_https() const noexcept;
  // What GET /targets is answered with from now on.
  void set_targets(std::string json);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
