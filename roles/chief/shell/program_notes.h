// What the chief notices about the trainers' programs in the reports of their tasks: a program that
// may compute other bits than the chief's, and programs that were killed.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run/monitor/core/record.h"
#include "run/monitor/core/task_metrics.h"

namespace disttf::roles {

class ProgramNotes {
 public:
  // `chief`: its name, "worker:0". `fingerprint`: of its program; empty: it has none.
  ProgramNotes(std::string chief, std::map<std::string, std::string> fingerprint)
      : chief_(std::move(chief)), fingerprint_(std::move(fingerprint)) {}

  // What this trainer's report says that its last one did not. The warning about other bits is to
  // be logged, too: should_log().
  [[nodiscard]] std::vector<EventRecord> told(std::size_t rank, const TrainerMetrics& metrics);
  [[nodiscard]] static bool should_log(const EventRecord& event) {
    return event.what == kFingerprint;
  }

 private:
  static constexpr const char* kFingerprint = "fingerprint";

  struct Known {
    std::string difference;      // from the chief's fingerprint
    std::int64_t pid = 0;        // of the process that reported last
    std::uint64_t programs = 0;  // that it has had
  };

  std::string chief_;
  std::map<std::string, std::string> fingerprint_;
  std::map<std::size_t, Known> known_;  // by rank
};

}  // namespace disttf::roles
