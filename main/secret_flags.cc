#include "main/secret_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "main/flag_values.h"
#include "net/transport/same_host.h"
#include "net/wire/text.h"
#include "roles/process/confinement.h"
#include "roles/process/log.h"

namespace disttf {
namespace {

// Throws std::invalid_argument.
void check_insecure(const Flags& flags) {
  if (flags.insecure && !flags.secret_file.empty()) {
    throw std::invalid_argument("--insecure: true is not allowed with --secret_file " +
                                net::quoted(flags.secret_file) + "; give one of them");
  }
}

// The first address on another machine; null: there is none. Entries of workers that may join have
// no address.
const net::Address* elsewhere(const net::Cluster& cluster) {
  for (const auto* list : {&cluster.ps, &cluster.chief, &cluster.workers, &cluster.evaluators}) {
    const auto found = std::ranges::find_if(*list, [](const net::Address& address) {
      return address.port != 0 && !net::is_loopback_host(address.host);
    });
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

}  // namespace

void add_secret_flags(CLI::App& app, Flags& flags) {
  app.add_option("--secret_file", flags.secret_file,
                 "file of which all tasks of the run have the same, 32 characters at least, and "
                 "which its owner alone may read: tasks speak TLS with each other then, and with "
                 "nobody else. Without it what `DISTTF_SECRET` says")
      ->type_name("FILE")
      ->group(kTransportGroup);
  app.add_flag(
         "--insecure", flags.insecure,
         "no [secret](security.md), whatever `DISTTF_SECRET` says: tasks speak in clear, and "
         "whoever reaches a port may be one of them. Tasks on several machines have a secret, "
         "or this; launch makes one unless it is told this")
      ->transform(boolean())
      ->group(kTransportGroup);
}

std::shared_ptr<net::Secrets> secrets_from(const Flags& flags, const Environment& environment,
                                           const net::Cluster& cluster) {
  check_insecure(flags);
  if (flags.insecure) return nullptr;
  const std::string text = value_of(environment, net::kSecretVariable);
  if (flags.secret_file.empty() && text.empty()) {
    // Who was handed its socket has been started by a launch or a server, which was asked itself.
    const net::Address* const address = flags.listen_fd < 0 ? elsewhere(cluster) : nullptr;
    if (address != nullptr) {
      throw std::invalid_argument(
          "--secret_file: missing; " + net::to_string(*address) +
          " is on another machine, and without a secret whoever reaches a port may be a task of "
          "the run. Give all of its tasks the same secret, by --secret_file or " +
          net::kSecretVariable + ", or all of them --insecure");
    }
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

void check_rendered_secret(const Flags& flags, const char* advice) {
  check_insecure(flags);
  const std::string& secret = flags.render.secret;
  if (!secret.empty() && !flags.secret_file.empty()) {
    throw std::invalid_argument("--secret: " + net::quoted(secret) +
                                " is not allowed with --secret_file " +
                                net::quoted(flags.secret_file) + "; give one of them");
  }
  if (!secret.empty() && flags.insecure) {
    throw std::invalid_argument("--secret: " + net::quoted(secret) +
                                " is not allowed with --insecure; give one of them");
  }
  if (secret.empty() && flags.secret_file.empty() && !flags.insecure) {
    throw std::invalid_argument(
        std::string("--secret: missing; the tasks are on several machines, and without a secret "
                    "whoever reaches a port may be one of them. ") +
        advice);
  }
}

roles::SecretOfRun secret_of_launch(const Flags& flags, const Environment& environment) {
  check_insecure(flags);
  if (flags.insecure) return roles::SecretOfRun::kNone;
  const bool is_given =
      !flags.secret_file.empty() || !value_of(environment, net::kSecretVariable).empty();
  return is_given ? roles::SecretOfRun::kGiven : roles::SecretOfRun::kMade;
}

}  // namespace disttf
