#include "main/flags/addresses.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "main/flag_values.h"
#include "main/flags/flag_group.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr const char* kMetricsGroup = "Metrics (for Prometheus)";

// Whether the text is a host name as in a URL, without scheme and port.
bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

void add_address_flags(CLI::App& app, roles::AddressFiles& files, const char* what,
                       const char* group) {
  FlagGroup add(app, group);
  add.text("--tls_cert", files.certificate, "FILE",
           std::string(what) +
               " only over [https](serve.md#over-https), with this certificate chain, PEM; "
               "reloaded when it changes");
  add.text("--tls_key", files.key, "FILE", "private key of `--tls_cert`, PEM, unencrypted");
  add.text(
      "--token_file", files.tokens, "FILE",
      std::string(what) +
          " only to clients with a [token](security.md#access-tokens) of this file: one a line, "
          "at least 32 characters, readable only by its owner; reloaded when it changes");
}

void check_address_flags(const roles::AddressFiles& files) {
  // Both or none: with one of them the address would silently stay without TLS.
  if (files.certificate.empty() == files.key.empty()) {
    return;
  }
  const bool has_key = files.certificate.empty();
  throw std::invalid_argument(std::string(has_key ? "--tls_cert" : "--tls_key") +
                              ": missing; it belongs to " +
                              (has_key ? "--tls_key " : "--tls_cert ") +
                              net::quoted(has_key ? files.key : files.certificate));
}

void add_metrics_flags(CLI::App& app, roles::MetricsOptions& options) {
  FlagGroup add(app, kMetricsGroup);
  add.number(
      "--metrics_port", options.port, "PORT", 0, kMostPort,
      "port of this task's [metrics](metrics.md) for Prometheus; 0: any free port, which the "
      "log shows. `launch`: its own port; it chooses those of its tasks [none]");
  add.text("--metrics_host", options.host, "ADDRESS",
           "listen IP address of the metrics; `all`: all addresses")
      ->check(ip_address_or_all());
  add.text("--metrics_textfile", options.textfile, "FILE",
           "file for node_exporter's textfile collector, written every 15 s and at the end; "
           "`launch`: for `x.prom`, its tasks write `x.worker-1.prom` and so on");
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

void PageFlags::add_to(CLI::App& app) {
  FlagGroup add(app, kPageGroup);
  add.toggle("--page", page, "serve [a page](page.md) that shows the run, and print its link");
  add.number("--page_port", port, "PORT", 0, kMostPort, "port of the page; 0: any free port");
  add.text("--page_host", host, "HOST",
           "listen address of the page; 0.0.0.0: all addresses [127.0.0.1]");
  add.text("--page_names", names, "NAME,...",
           "more host names of the page, such as those of a [reverse "
           "proxy](page.md#behind-a-reverse-proxy)");
}

std::optional<roles::PageOptions> PageFlags::options(const roles::AddressFiles& files) const {
  roles::PageOptions out;
  if (!page) {
    const char* const given = port             ? "--page_port"
                              : !host.empty()  ? "--page_host"
                              : !names.empty() ? "--page_names"
                                               : nullptr;
    if (given != nullptr) {
      throw std::invalid_argument(std::string(given) + ": has no effect without --page");
    }
    return std::nullopt;
  }
  out.port = port.value_or(0);
  out.files = files;
  if (!host.empty()) {
    out.host = host;
  }
  for (const std::string& name : split_at_commas(names)) {
    if (!is_name(name)) {
      throw std::invalid_argument("--page_names: " + net::quoted(name) +
                                  " is not a name, as train.example.org, or several between "
                                  "commas");
    }
    out.names.push_back(net::to_lower(name));
  }
  return out;
}

void check_addresses(const roles::MetricsOptions& metrics, const PageFlags& page) {
  // One set of TLS and token files serves both the metrics and the page, hence either address gives
  // them an effect.
  check_address_flags(metrics.files);
  if (page.page || metrics.port) {
    return;
  }
  const roles::AddressFiles& files = metrics.files;
  for (const auto& [flag, file] :
       {std::pair{"--tls_cert: ", &files.certificate}, {"--token_file: ", &files.tokens}}) {
    if (!file->empty()) {
      throw std::invalid_argument(flag + net::quoted(*file) +
                                  " has no effect without --metrics_port or --page");
    }
  }
}

}  // namespace disttf
