#include "roles/serve/shell/run_accuracy.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace disttf::roles {
namespace {

// nullopt: the record is of another kind, or lacks the number.
std::optional<double> test_accuracy(const nlohmann::ordered_json& record) {
  if (record.value("kind", std::string()) != "evaluation" || !record.contains("test")) {
    return std::nullopt;
  }
  const auto& test = record.at("test");
  if (!test.is_object() || !test.contains("accuracy") || !test.at("accuracy").is_number()) {
    return std::nullopt;
  }
  return test.at("accuracy").get<double>();
}

}  // namespace

void RunAccuracy::look() noexcept {
  std::error_code ignored;
  // The directory may be a store's URL, or may not exist yet.
  if (!std::filesystem::is_directory(directory_, ignored)) {
    return;
  }
  try {
    static_cast<void>(files_.read(BadLines::kSkip, [this](const nlohmann::ordered_json& record) {
      const std::optional<double> accuracy = test_accuracy(record);
      if (!accuracy || !record.contains("step") || !record.at("step").is_number_unsigned()) {
        return;
      }
      // Per record, not per file: threads that answer requests never wait for the disk.
      const std::lock_guard lock(mutex_);
      by_step_[record.at("step").get<std::uint64_t>()] = *accuracy;
      if (by_step_.size() > kMostSteps) {
        // The lowest step: models in service are among the newest.
        by_step_.erase(by_step_.begin());
      }
    }));
  } catch (const std::exception&) {  // the disk, or memory: retried at the next look
  }
}

std::optional<double> RunAccuracy::of(std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_step_.find(step);
  return found == by_step_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace disttf::roles
