#include "roles/chief/shell/program_notes.h"

#include "run/program/program_facts.h"

namespace disttf::roles {

std::vector<EventRecord> ProgramNotes::told(std::size_t rank, const TrainerMetrics& metrics) {
  Known& known = known_[rank];
  const std::string name = net::task_name(metrics.task);
  std::vector<EventRecord> events;
  const auto warn = [&](const char* what, std::string text) {
    events.push_back({.level = EventRecord::Level::kWarning,
                      .task = name,
                      .what = what,
                      .text = std::move(text)});
  };
  // Without a fingerprint there is no program, or one of an older version. An elastic run refuses a
  // difference.
  if (!metrics.fingerprint.empty()) {
    const std::string difference = fingerprint_difference(metrics.fingerprint, fingerprint_);
    if (std::exchange(known.difference, difference) != difference && !difference.empty()) {
      warn(kFingerprint, "The program of " + name + " may compute other bits than that of " +
                             chief_ + ", the chief: " + difference);
    }
  }
  // Another process numbers its programs from 1 on.
  const bool is_same_process = std::exchange(known.pid, metrics.process.pid) == metrics.process.pid;
  const std::uint64_t before = std::exchange(known.programs, metrics.programs);
  if (is_same_process && before != 0 && metrics.programs > before) {
    const std::uint64_t deaths = metrics.programs - before;
    warn("program", "the program of " + name + " was killed" +
                        (deaths == 1 ? " " : ", " + std::to_string(deaths) + " times, ") +
                        "and started again");
  }
  return events;
}

}  // namespace disttf::roles
