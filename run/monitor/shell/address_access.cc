#include "run/monitor/shell/address_access.h"

#include <stdexcept>
#include <string_view>

#include "net/http/http_status.h"
#include "net/tcp/sockets.h"
#include "net/tls/certificate_files.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/confinement.h"
#include "run/process/log.h"

namespace disttf::roles {
namespace {

void close_memory() {
  if (!keep_memory_private()) {
    log_debug("other processes of this user can read or dump this process's memory");
  }
}

}  // namespace

std::shared_ptr<net::TlsIdentity> identity_of(const AddressFiles& files) {
  if (files.certificate.empty()) {
    return nullptr;
  }
  close_memory();
  try {
    // A tool may be replacing certificate and key right now: a pair that does not match is read
    // again.
    return net::while_renewed([&files] {
      return std::make_shared<net::TlsIdentity>(
          files.certificate, files.key, [](std::string_view sentence) { log_warning(sentence); });
    });
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
}

std::shared_ptr<net::AccessTokens> tokens_of(const AddressFiles& files, const std::string& host) {
  if (files.tokens.empty()) {
    return nullptr;
  }
  close_memory();
  if (files.certificate.empty() && !net::is_loopback_host(host)) {
    log_warning("--token_file: clients of " + host +
                " send their token in clear text; give --tls_cert, too");
  }
  try {
    return std::make_shared<net::AccessTokens>(
        files.tokens, [](std::string_view sentence) { log_warning(sentence); });
  } catch (const std::invalid_argument& error) {
    throw Failure(kUsage, error.what());
  }
}

std::function<void(const net::HttpServerRequest&, const std::string&, int, std::size_t)> audit_of(
    const char* where) {
  // The target is a peer's text, so it is shown in one line. A rejected request is a warning.
  return [where](const net::HttpServerRequest& request, const std::string& client, int status,
                 std::size_t untold) {
    const std::string target =
        request.path + (request.query.empty() ? std::string() : "?" + request.query);
    const std::string line =
        request.method + " " + net::one_line(target) + " at " + where + " by " + client + ": " +
        std::to_string(status) +
        (untold == 0 ? std::string() : " (" + std::to_string(untold) + " more not shown)");
    status < net::http_status::kBadRequest ? log_info(line) : log_warning(line);
  };
}

}  // namespace disttf::roles
