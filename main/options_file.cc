#include "main/options_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

#include "main/flags/flag_group.h"
#include "main/render/deployment.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr std::size_t kMostOptionsBytes = 1U << 20U;

// Whether the flag says how to train, rather than what to start or where.
bool is_training_flag(const CLI::App& app, const CLI::Option& option) {
  static const std::set<std::string> kOthers = {kLaunchGroup, kCommandGroup, kClusterGroup,
                                                kFindGroup,   kRenderGroup,  kHiddenGroup};
  return &option != app.get_help_ptr() && &option != app.get_help_all_ptr() &&
         &option != app.get_config_ptr() && !kOthers.contains(option.get_group());
}

}  // namespace

std::string read_options_text(const std::string& path) {
  // Reset, because the stream reports no reason: errno of the failed open() does.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // One byte more than allowed shows that the file is too large.
  std::string text(kMostOptionsBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  // Not fail(): a read that ends at the end of a short file sets it, too.
  if (!file.is_open() || file.bad()) {
    render::refuse("options", path,
                   "a file that can be read: " +
                       std::generic_category().message(file.is_open() ? EIO : errno));
  }
  if (text.empty()) {
    render::refuse("options", path, "a file that holds options as JSON: it is empty");
  }
  if (text.size() > kMostOptionsBytes) {
    render::refuse("options", path, "an options file: it is larger than a MiB");
  }
  return text;
}

void set_training_flag(CLI::App& app, const std::string& key, const std::string& value) {
  const std::string field = "--options: service.job_context";
  std::string flag = "--" + key;
  std::replace(flag.begin() + 2, flag.end(), '-', '_');
  CLI::Option* const option = app.get_option_no_throw(flag);
  if (option == nullptr || !is_training_flag(app, *option)) {
    throw std::invalid_argument(field + " has the key " + net::quoted(key) +
                                "; expected a training flag, such as batch_size");
  }
  if (option->count() > 0) {
    return;  // the command line wins
  }
  try {
    // The flag's own check runs in run_callback(), because CLI11 has parsed the command line
    // already.
    option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(field + ": " + error.what());
  }
}

}  // namespace disttf
