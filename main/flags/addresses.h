// The HTTP addresses of a process: its metrics, the page of a run, and who may see them.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/monitor/shell/address_access.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/monitor/shell/page_server.h"

namespace disttf {

// Adds --tls_cert, --tls_key and --token_file to `group`. `what` begins their descriptions:
// "answer", "show the page".
void add_address_flags(CLI::App& app, roles::AddressFiles& files, const char* what,
                       const char* group);
// Throws std::invalid_argument if one of --tls_cert and --tls_key is given without the other.
void check_address_flags(const roles::AddressFiles& files);

// The flags that export the metrics of a task or a launch.
void add_metrics_flags(CLI::App& app, roles::MetricsOptions& options);
// Whether the word is one of these flags. launch does not pass its own to its tasks, which get
// others.
[[nodiscard]] bool is_metrics_word(const std::string& word);

struct PageFlags {
  bool page = false;
  std::optional<std::uint16_t> port;
  std::string host;  // empty: 127.0.0.1
  std::vector<std::string> names;

  void add_to(CLI::App& app);

  // nullopt: no page is asked for. `files`: those of the metrics, because a client that may see one
  // may see both. Throws std::invalid_argument if another of the flags is given without --page.
  [[nodiscard]] std::optional<roles::PageOptions> options(const roles::AddressFiles& files) const;
};

// Rejects TLS and token flags of a task or a launch without an HTTP address. Throws
// std::invalid_argument.
void check_addresses(const roles::MetricsOptions& metrics, const PageFlags& page);

}  // namespace disttf
