#include "main/credential_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "main/flag_values.h"
#include "net/transport/certificate_files.h"
#include "net/transport/same_host.h"
#include "net/transport/secrets.h"
#include "net/transport/task_certificates.h"
#include "net/wire/text.h"
#include "roles/process/confinement.h"
#include "roles/process/log.h"

namespace disttf {
namespace {

struct GivenFile {
  const char* flag;
  const std::string& path;
};

std::invalid_argument contradiction(const std::string& flag, const GivenFile& other) {
  return std::invalid_argument(flag + " is not allowed with " + other.flag + " " +
                               net::quoted(other.path) + "; give one of them");
}

// That there is one of the three ways alone, and that it is whole. Throws std::invalid_argument.
void check_credential_flags(const Flags& flags) {
  const GivenFile secret{"--secret_file", flags.secret_file};
  const GivenFile certificate{"--task_cert", flags.task_cert};
  if (flags.insecure && !secret.path.empty()) throw contradiction("--insecure: true", secret);
  const std::array files{certificate, GivenFile{"--task_key", flags.task_key},
                         GivenFile{"--task_ca", flags.task_ca}};
  const auto is_given = [](const GivenFile& file) { return !file.path.empty(); };
  const auto* const given = std::ranges::find_if(files, is_given);
  if (given == files.end()) return;
  const auto* const missing = std::ranges::find_if_not(files, is_given);
  if (missing != files.end()) {
    throw std::invalid_argument(std::string(missing->flag) + ": missing; it belongs to " +
                                given->flag + " " + net::quoted(given->path));
  }
  if (flags.insecure) throw contradiction("--insecure: true", certificate);
  if (!secret.path.empty()) {
    throw contradiction("--secret_file: " + net::quoted(secret.path), certificate);
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

void add_credential_flags(CLI::App& app, Command command, Flags& flags) {
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
         "certificates, or this; launch makes a secret unless it is told this")
      ->transform(boolean())
      ->group(kTransportGroup);
  if (command == Command::kLaunch) return;
  app.add_option("--task_cert", flags.task_cert,
                 "instead of a secret this task's own [certificate](security.md#certificates), "
                 "PEM, whose one URI says which task of which run it is, as "
                 "`spiffe://example.org/mnist/worker/1`; read again where it has changed, as are "
                 "the other two")
      ->type_name("FILE")
      ->group(kTransportGroup);
  app.add_option("--task_key", flags.task_key,
                 "its key, PEM, without a password, for its owner and its group alone")
      ->type_name("FILE")
      ->group(kTransportGroup);
  app.add_option("--task_ca", flags.task_ca,
                 "authorities whose certificates other tasks must have, PEM")
      ->type_name("FILE")
      ->group(kTransportGroup);
}

std::shared_ptr<net::Credentials> credentials_from(const Flags& flags,
                                                   const Environment& environment,
                                                   const net::Cluster& cluster,
                                                   const net::TaskId& self) {
  check_credential_flags(flags);
  if (flags.insecure) return nullptr;
  const std::string text = value_of(environment, net::kSecretVariable);
  if (flags.secret_file.empty() && flags.task_cert.empty() && text.empty()) {
    // Who was handed its socket has been started by a launch or a server, which was asked itself.
    const net::Address* const address = flags.listen_fd < 0 ? elsewhere(cluster) : nullptr;
    if (address != nullptr) {
      throw std::invalid_argument(
          "--secret_file: missing; " + net::to_string(*address) +
          " is on another machine, and without a secret whoever reaches a port may be a task of "
          "the run. Give all of its tasks the same secret, by --secret_file or " +
          net::kSecretVariable + ", or certificates, or all of them --insecure");
    }
    return nullptr;
  }
  if (!roles::keep_memory_private()) {
    roles::log_debug("this task's memory may be dumped, and read by processes of its user");
  }
  const auto warn = [](std::string_view sentence) { roles::log_warning(sentence); };
  if (!flags.task_cert.empty()) {
    const net::TaskCertificateFiles files{
        .certificate = flags.task_cert, .key = flags.task_key, .authorities = flags.task_ca};
    return net::while_renewed(
        [&] { return std::make_shared<net::TaskCertificates>(files, self, warn); });
  }
  if (!flags.secret_file.empty()) return std::make_shared<net::Secrets>(flags.secret_file, warn);
  return std::make_shared<net::Secrets>(text, net::kSecretVariable);
}

void check_rendered_credentials(const Flags& flags, const char* advice) {
  check_credential_flags(flags);
  const std::string& secret = flags.render.secret;
  const std::array others{GivenFile{"--secret_file", flags.secret_file},
                          GivenFile{"--task_cert", flags.task_cert}};
  bool is_given = !secret.empty();
  for (const GivenFile& other : others) {
    if (other.path.empty()) continue;
    if (!secret.empty()) throw contradiction("--secret: " + net::quoted(secret), other);
    is_given = true;
  }
  if (!secret.empty() && flags.insecure) {
    throw std::invalid_argument("--secret: " + net::quoted(secret) +
                                " is not allowed with --insecure; give one of them");
  }
  if (!is_given && !flags.insecure) {
    throw std::invalid_argument(
        std::string("--secret: missing; the tasks are on several machines, and without a secret "
                    "whoever reaches a port may be one of them. ") +
        advice);
  }
}

roles::SecretOfRun secret_of_launch(const Flags& flags, const Environment& environment) {
  check_credential_flags(flags);
  if (!flags.task_cert.empty()) {
    throw std::invalid_argument("--task_cert: " + net::quoted(flags.task_cert) +
                                " is not allowed without a cluster: it is of one task, and a run "
                                "of this machine alone makes a secret for all of its own");
  }
  if (flags.insecure) return roles::SecretOfRun::kNone;
  const bool is_given =
      !flags.secret_file.empty() || !value_of(environment, net::kSecretVariable).empty();
  return is_given ? roles::SecretOfRun::kGiven : roles::SecretOfRun::kMade;
}

}  // namespace disttf
