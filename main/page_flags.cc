#include "main/page_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "main/flag_values.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

// Whether the text is a host name as in a URL, without scheme and port.
bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return net::is_letter(c) || net::is_digit(c) || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

void add_page_flags(CLI::App& app, Flags& flags) {
  app.add_flag("--page", flags.page,
               "serve [a page](page.md) that shows the run, and print its link")
      ->transform(boolean())
      ->group(kPageGroup);
  app.add_option("--page_port", flags.page_port, "port of the page; 0: any free port")
      ->type_name("PORT")
      ->transform(whole_number(0, kMostPort))
      ->group(kPageGroup);
  app.add_option("--page_host", flags.page_host,
                 "listen address of the page; 0.0.0.0: all addresses [127.0.0.1]")
      ->type_name("HOST")
      ->group(kPageGroup);
  app.add_option("--page_names", flags.page_names,
                 "more host names of the page, such as those of a [reverse "
                 "proxy](page.md#behind-a-reverse-proxy)")
      ->type_name("NAME,...")
      ->group(kPageGroup);
}

std::optional<roles::PageOptions> page_options(const Flags& flags) {
  roles::PageOptions options;
  if (!flags.page) {
    const char* const given = flags.page_port             ? "--page_port"
                              : !flags.page_host.empty()  ? "--page_host"
                              : !flags.page_names.empty() ? "--page_names"
                                                          : nullptr;
    if (given != nullptr) {
      throw std::invalid_argument(std::string(given) + ": has no effect without --page");
    }
    return std::nullopt;
  }
  options.port = flags.page_port.value_or(0);
  // The page and the metrics have one set of files: a client that may see one may see both.
  options.files = flags.metrics.files;
  if (!flags.page_host.empty()) {
    options.host = flags.page_host;
  }
  for (const std::string& name : split_at_commas(flags.page_names)) {
    if (!is_name(name)) {
      throw std::invalid_argument("--page_names: " + net::quoted(name) +
                                  " is not a name, as train.example.org, or several between "
                                  "commas");
    }
    options.names.push_back(net::to_lower(name));
  }
  return options;
}

}  // namespace disttf
