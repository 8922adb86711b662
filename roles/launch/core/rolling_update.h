// Applies new settings to running tasks: restarts one after the other, each once the run has
// continued with the one before.
//
// A state machine beside the supervisor, by which it restarts tasks. The caller calls
// task_changed() at deadline(). Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "roles/launch/core/supervisor.h"

namespace disttf::roles {

class RollingUpdate {
 public:
  using TimePoint = Supervisor::TimePoint;

  // `supervisor` must outlive it.
  explicit RollingUpdate(Supervisor& supervisor) : supervisor_(supervisor) {}

  // REQUIRES: !is_under_way().
  void begin(TimePoint now);
  // A task has changed, or time has passed; the run has made this step. Each returns the sentence
  // that ends the update, if it ends now and there is something to report. The supervisor may have
  // effects afterwards.
  std::optional<std::string> task_changed(TimePoint now) { return go_on(now); }
  std::optional<std::string> stepped(std::uint64_t step, TimePoint now);
  std::optional<std::string> time(TimePoint now) { return go_on(now); }

  [[nodiscard]] bool is_under_way() const noexcept { return task_.has_value(); }
  [[nodiscard]] TimePoint deadline() const noexcept { return task_ ? limit_ : TimePoint::max(); }

 private:
  enum class Return : std::uint8_t { kAwaited, kBack, kLate };

  std::optional<std::string> go_on(TimePoint now);
  bool restart_next(std::size_t from, TimePoint now);
  [[nodiscard]] Return come_back(TimePoint now);

  Supervisor& supervisor_;
  std::optional<std::size_t> task_;  // the task being restarted
  std::uint64_t restarts_ = 0;       // its number of restarts before
  TimePoint limit_{};
  std::optional<std::uint64_t> first_step_;  // the first one seen since it returned
  std::uint64_t last_step_ = 0;
};

}  // namespace disttf::roles
