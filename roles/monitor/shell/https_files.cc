#include "roles/monitor/shell/https_files.h"

#include <stdexcept>
#include <string_view>

#include "roles/process/confinement.h"
#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {

std::shared_ptr<net::TlsIdentity> identity_of(const HttpsFiles& files) {
  if (files.certificate.empty()) {
    return nullptr;
  }
  if (!keep_memory_private()) {
    log_debug("this process's memory may be dumped, and read by processes of its user");
  }
  try {
    return std::make_shared<net::TlsIdentity>(
        files.certificate, files.key, [](std::string_view sentence) { log_warning(sentence); });
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
}

}  // namespace disttf::roles
