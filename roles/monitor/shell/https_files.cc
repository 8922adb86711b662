#include "roles/monitor/shell/https_files.h"

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>

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
  // Who is started again while both files are renewed must not end for good.
  constexpr std::chrono::seconds kRenewal{3};
  constexpr std::chrono::milliseconds kPause{50};
  const auto until = std::chrono::steady_clock::now() + kRenewal;
  while (true) {
    try {
      return std::make_shared<net::TlsIdentity>(
          files.certificate, files.key, [](std::string_view sentence) { log_warning(sentence); });
    } catch (const net::KeyOfAnother& error) {
      if (std::chrono::steady_clock::now() >= until) throw Failure(kUsage, error.what());
    } catch (const std::invalid_argument& error) {
      throw Failure(kUsage, error.what());
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace disttf::roles
