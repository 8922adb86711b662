// How a model is served, as flags say it. Values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "roles/monitor/shell/address_files.h"
#include "roles/run/task.h"
#include "roles/serve/core/question_range.h"

namespace disttf::roles {

struct ServeLimits {  // and what a question's values are taken for
  InputRange input_range = InputRange::kByte;
  std::size_t max_batch = 64;      // rows that are computed together
  std::size_t max_queue = 4096;    // rows that wait, of each thread
  std::size_t max_body_bytes = 0;  // as it comes and unpacked; 0: by the size of an example
  std::chrono::milliseconds timeout{10'000};  // of a question, in the queue
};

// A run whose ps are asked, in the place of a directory.
struct FollowOptions {
  Task task;                       // one beside the run
  std::chrono::seconds every{10};  // between two versions, at least
};

struct ServeOptions {
  std::filesystem::path directory;           // as directory_models.h has it
  std::optional<FollowOptions> follow = {};  // then there is no directory
  std::string name = "default";              // of the model, in addresses
  std::string host = "127.0.0.1";            // an IP address, or "all"
  std::vector<std::string> host_names = {};  // net::ServiceNames
  std::uint16_t port = 8501;                 // 0: the system chooses
  std::size_t threads = 1;
  std::size_t keep_versions = 1;
  std::size_t max_connections = 4096;
  ServeLimits limits;
  std::chrono::seconds drain{1};  // from a signal on, in which new requests are still answered
  std::string access_log;         // a file; empty: none
  AddressFiles files;
  std::string version;  // of disttf
};

}  // namespace disttf::roles
