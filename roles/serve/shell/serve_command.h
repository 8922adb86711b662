// `disttf serve`: serves a model over HTTP, by TensorFlow Serving's REST API and the Open Inference
// Protocol, and loads newer models automatically.
#pragma once

#include "roles/serve/shell/serve_options.h"

namespace disttf::roles {

// Runs until a signal, and returns its exit code, 130 or 143. Throws Failure: kUsage if the
// directory is none, kCannotListen; for a followed run those of FollowedRun.
[[nodiscard]] int run_serve(const ServeOptions& options);

}  // namespace disttf::roles
