// What a launch's control address answers: HTTP requests to a ManagedJob, replies as JSON.
//
//   GET  /v1/status                 the run and its tasks
//   GET  /v1/endpoints              the addresses of each job
//   GET  /v1/pods                   the names of the tasks
//   GET  /v1/logs/TASK              the newest lines, as text; ?follow=true: and those to come
//   POST /v1/pods/TASK/restart      {"task": "worker:1", "message": "..."}
//   POST /v1/pods/TASK/replace
//   POST /v1/update                 {"workers": 4, "options": "..."}, either of the two or both
//   POST /v1/save                   {"message": "..."}: a checkpoint now
//   POST /v1/trace                  {"steps": 50}: a timeline; /v1/run tells what has become of it
//   POST /v1/stop                   what SIGTERM does
//   POST /v1/page                   {"url": "..."}: a link to the run's page, good for one browser
//
// What is refused is {"error": "..."}: 403 what the caller may not ask for, 404 an unknown path or
// task, 405 another method, 400 a body that is none, 409 what cannot be done now. docs/managing.md
// shows all of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/http/http_server.h"
#include "roles/launch/shell/managed_job.h"

namespace disttf::roles {

// Which address a request came to, which decides what its caller may ask for.
enum class Caller : std::uint8_t {
  kControl,  // the control socket or its port: everything above
  // The page, with its cookie. Only what docs/page.md has buttons for: restart and replace a task,
  // one more worker, save, trace and stop.
  kPage,
};

[[nodiscard]] net::HttpReply answer_verb(ManagedJob& job, const net::HttpServerRequest& request,
                                         Caller caller);

}  // namespace disttf::roles
