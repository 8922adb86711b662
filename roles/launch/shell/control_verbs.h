// The HTTP interface of a launch's control address: requests to a ManagedJob, replies as JSON.
//
//   GET  /v1/status                 the run and its tasks
//   GET  /v1/endpoints              the addresses of each job
//   GET  /v1/pods                   the names of the tasks
//   GET  /v1/logs/TASK              the newest lines, as text; ?follow=true: and future ones
//   POST /v1/pods/TASK/restart      {"task": "worker:1", "message": "..."}
//   POST /v1/pods/TASK/replace
//   POST /v1/update                 {"workers": 4, "options": "..."}, either of the two or both
//   POST /v1/save                   {"message": "..."}: a checkpoint now
//   POST /v1/trace                  {"steps": 50}: a timeline; /v1/run reports its result
//   POST /v1/stop                   the same as SIGTERM
//   POST /v1/page                   {"url": "..."}: a link to the run's page, good for one browser
//
// Errors are {"error": "..."}: 403 for what the caller may not request, 404 for an unknown path or
// task, 405 for another method, 400 for a malformed body, 409 for what cannot be done now.
// docs/managing.md shows all of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "roles/launch/shell/managed_job.h"

namespace disttf::roles {

// The address of a request, which decides what its caller may request.
enum class Caller : std::uint8_t {
  kControl,  // the control socket or its port: everything above
  // The page, with its cookie: only the requests of its buttons in docs/page.md: restart and
  // replace a task, one more worker, save, trace and stop.
  kPage,
};

[[nodiscard]] net::HttpReply answer_verb(ManagedJob& job, const net::HttpServerRequest& request,
                                         Caller caller);

}  // namespace disttf::roles
