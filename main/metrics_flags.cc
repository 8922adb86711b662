#include "main/metrics_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "main/address_flags.h"
#include "main/flag_values.h"

namespace disttf {
namespace {

constexpr const char* kMetricsGroup = "Metrics (for Prometheus)";

}  // namespace

void add_metrics_flags(CLI::App& app, roles::MetricsOptions& options) {
  app.add_option("--metrics_port", options.port,
                 "port at which Prometheus reads [the metrics](metrics.md) of this task; 0: the "
                 "system chooses it, and the log tells. `launch`: its own; it chooses those of its "
                 "tasks [none]")
      ->type_name("PORT")
      ->transform(whole_number(0, kMostPort))
      ->group(kMetricsGroup);
  app.add_option("--metrics_host", options.host,
                 "IP address at which they are read; `all`: any of this machine's")
      ->type_name("ADDRESS")
      ->check(ip_address_or_all())
      ->capture_default_str()
      ->group(kMetricsGroup);
  app.add_option("--metrics_textfile", options.textfile,
                 "file for node_exporter's textfile collector, written every 15 s and at the end; "
                 "`launch`: of `x.prom`, its tasks' are `x.worker-1.prom` and so on")
      ->type_name("FILE")
      ->group(kMetricsGroup);
  add_address_flags(app, options.files, "show metrics, and the page,", kMetricsGroup);
}

bool is_metrics_word(const std::string& word) {
  constexpr std::array<std::string_view, 6> kNames = {
      "--metrics_port=", "--metrics_host=", "--metrics_textfile=",
      "--tls_cert=",     "--tls_key=",      "--token_file="};
  return std::ranges::any_of(kNames,
                             [&word](std::string_view name) { return word.starts_with(name); });
}

}  // namespace disttf
