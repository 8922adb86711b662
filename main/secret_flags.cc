#include "main/secret_flags.h"

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "main/flag_values.h"
#include "net/wire/text.h"
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
  const std::string text = value_of(environment, net::kSecretVariable);
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
  return std::make_shared<net::Secrets>(text, net::kSecretVariable);
}

void add_insecure_flag(CLI::App& app, Flags& flags) {
  app.add_flag("--insecure", flags.insecure,
               "tasks share no [secret](security.md), and all is said in clear. Without it launch "
               "makes one for its run, unless `--secret_file` or `DISTTF_SECRET` gives one")
      ->transform(boolean())
      ->group(kLaunchGroup);
}

roles::SecretOfRun secret_of_launch(const Flags& flags, const Environment& environment) {
  if (flags.insecure && !flags.secret_file.empty()) {
    throw std::invalid_argument("--insecure: true is not allowed with --secret_file " +
                                net::quoted(flags.secret_file) + "; give one of them");
  }
  if (flags.insecure) return roles::SecretOfRun::kNone;
  const bool is_given =
      !flags.secret_file.empty() || !value_of(environment, net::kSecretVariable).empty();
  return is_given ? roles::SecretOfRun::kGiven : roles::SecretOfRun::kMade;
}

}  // namespace disttf
