#include "main/secret_flags.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "roles/process/confinement.h"
#include "roles/process/log.h"

namespace disttf {

void add_secret_flag(CLI::App& app, Flags& flags) {
  app.add_option("--secret_file", flags.secret_file,
                 "file of which all tasks of the run have the same, 32 characters at least, and "
                 "which its owner alone may read: tasks speak TLS with each other then, and with "
                 "nobody else. Without it what `DISTTF_SECRET` says; without both all is said in "
                 "clear")
      ->type_name("FILE")
      ->group(kTransportGroup);
}

std::shared_ptr<net::Secrets> secrets_from(const Flags& flags, const Environment& environment) {
  const std::string text = value_of(environment, kSecretVariable);
  if (flags.secret_file.empty() && text.empty()) {
    return nullptr;
  }
  if (!roles::keep_memory_private()) {
    roles::log_debug("this task's memory may be dumped, and read by processes of its user");
  }
  if (!flags.secret_file.empty()) {
    return std::make_shared<net::Secrets>(
        flags.secret_file, [](std::string_view sentence) { roles::log_warning(sentence); });
  }
  return std::make_shared<net::Secrets>(text, kSecretVariable);
}

}  // namespace disttf
