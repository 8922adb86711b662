// `disttf serve`: serves a model over HTTP, by TensorFlow Serving's REST API and the Open Inference
// Protocol, and loads newer models automatically.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "roles/serve/core/question.h"
#include "run/monitor/shell/address_access.h"
#include "run/task.h"

namespace disttf::roles {

// The options of serving a model. Values.
struct ServeLimits {  // also how a request's values are interpreted
  InputRange input_range = InputRange::kByte;
  std::size_t max_batch = 64;                 // rows computed together
  std::size_t max_queue = 4096;               // waiting rows, per thread
  std::size_t max_body_bytes = 0;             // packed and unpacked; 0: by the size of an example
  std::chrono::milliseconds timeout{10'000};  // of a request in the queue
};

// A running cluster to follow, instead of a directory.
struct FollowOptions {
  Task task;                       // an observer that is in no list
  std::chrono::seconds every{10};  // least time between two versions
};

struct ServeOptions {
  std::filesystem::path directory;           // as in directory_models.h
  std::optional<FollowOptions> follow = {};  // set: there is no directory
  std::string name = "default";              // of the model, in URLs
  std::string host = "127.0.0.1";            // an IP address, or "all"
  std::vector<std::string> host_names = {};  // net::ServiceNames
  std::uint16_t port = 8501;                 // 0: any free port
  std::size_t threads = 1;
  std::size_t keep_versions = 1;
  std::size_t max_connections = 4096;
  ServeLimits limits;
  std::chrono::seconds drain{1};  // after a signal, in which new requests are still answered
  std::string access_log;         // a file; empty: none
  AddressFiles files;
  std::string version;  // of disttf
};

// Runs until a signal, and returns its exit code, 130 or 143. Throws Failure: kUsage if the
// directory is none, kCannotListen; for a followed run those of FollowedRun.
[[nodiscard]] int run_serve(const ServeOptions& options);

}  // namespace disttf::roles
