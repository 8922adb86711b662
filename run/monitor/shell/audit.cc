#include "run/monitor/shell/audit.h"

#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/process/log.h"

namespace disttf::roles {

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
