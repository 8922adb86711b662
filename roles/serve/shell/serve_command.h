// `disttf serve`: a model that answers over HTTP, by TensorFlow Serving's REST API and by the Open
// Inference Protocol, and goes over to newer ones by itself.
#pragma once

#include "roles/serve/shell/serve_options.h"

namespace disttf::roles {

// Until a signal comes: what the process then ends with, 130 or 143. Throws Failure: kUsage where
// the directory is none, kCannotListen; of a run that is followed what FollowedRun tells.
[[nodiscard]] int run_serve(const ServeOptions& options);

}  // namespace disttf::roles
