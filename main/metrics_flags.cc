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
  app.add_option(
         "--metrics_port", options.port,
         "port of this task's [metrics](metrics.md) for Prometheus; 0: any free port, which the "
         "log shows. `launch`: its own port; it chooses those of its tasks [none]")
      ->type_name("PORT")
      ->transform(whole_number(0, kMostPort))
      ->group(kMetricsGroup);
  app.add_option("--metrics_host", options.host,
                 "listen IP address of the metrics; `all`: all addresses")
      ->type_name("ADDRESS")
      ->check(ip_address_or_all())
      ->capture_default_str()
      ->group(kMetricsGroup);
  app.add_option("--metrics_textfile", options.textfile,
                 "file for node_exporter's textfile collector, written every 15 s and at the end; "
                 "`launch`: for `x.prom`, its tasks write `x.worker-1.prom` and so on")
      ->type_name("FILE")
      ->group(kMetricsGroup);
  add_address_flags(app, options.files, "serve metrics and page", kMetricsGroup);
}

bool is_metrics_word(const std::string& word) {
  // With the equals sign, as arguments_for_children() writes them: --tls_cert must not match a
  // longer name.
  constexpr std::array<std::string_view, 6> kNames = {
      "--metrics_port=", "--metrics_host=", "--metrics_textfile=",
      "--tls_cert=",     "--tls_key=",      "--token_file="};
  return std::ranges::any_of(kNames,
                             [&word](std::string_view name) { return word.starts_with(name); });
}

}  // namespace disttf
