// The lock of a --train_dir: a file "run.lock" that says which run writes checkpoints there. A
// second run that is given the same directory by mistake would mix its checkpoints with those of
// the first.
//
// The owner is the chief's process. It renews the file every kLockRenewal, so that others see that
// it lives. A process that wants the lock
//   - takes it at once where there is none, where the owner is a process of the same cluster (the
//     chief was restarted, on this host or another), or where the owner ran on this host and is
//     dead;
//   - is refused at once where the owner lives on this host and has the same directory;
//   - else looks whether the owner renews the lock. If it does, the process is refused. If it does
//     not for kLockExpiry, the owner is dead, and the process takes the lock.
//
// Times are those of the directory's file system, so clocks of different machines do not matter.
// Of two processes that take a free lock at the same moment, or the lock of one dead owner, one
// gets it: on a disk because a link to a file is made once; in a store, which has no links, because
// both read it again after kLockSettles, and the one that does not find its own lock ends.
//
// Values and functions; the waiting and renewing is roles/checkpoint/shell/held_run_lock.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/file_system.h"
#include "net/wire/cluster.h"

namespace disttf::roles {

inline constexpr std::string_view kRunLockName = "run.lock";
// In a store each renewal is a request that somebody pays for, and a disk does not feel it.
inline constexpr std::chrono::seconds kLockRenewal{15};
// Four renewals: one that a slow store delays is no death.
inline constexpr std::chrono::seconds kLockExpiry{60};
// A store has written a small object by then.
inline constexpr std::chrono::seconds kLockSettles{2};

struct RunLockOwner {
  std::string run;            // the same for every process that is the chief of one cluster
  std::string process;        // random: this process and no other
  std::string host;           // for sentences
  std::string machine;        // which start of which kernel, and which namespace of processes
  std::string directory;      // as the owner sees it; a lock in a copy names the original
  std::int64_t pid = 0;       // within `machine`
  std::uint64_t started = 0;  // of the process, in clock ticks since `machine` began
  std::uint64_t renewals = 0;
  std::string time;  // of the last renewal, by the owner's clock; for sentences
};

// One JSON object.
[[nodiscard]] std::string to_json(const RunLockOwner& owner);
// nullopt: the text is no lock of this version.
[[nodiscard]] std::optional<RunLockOwner> run_lock_owner_from(std::string_view text);

// RunLockOwner::run of a chief. A restarted chief has the same, wherever it runs: the addresses of
// the ps and of the chief decide. Addresses of the loopback mean another run on each `machine`.
[[nodiscard]] std::string run_of_cluster(const net::Cluster& cluster, std::string_view machine);

enum class LockVerdict : std::uint8_t {
  kTake,    // the owner is of the same run, or dead
  kRefuse,  // the owner lives
  kWatch,   // it is not known: whether the lock is renewed will show
};
// What `self` does about the lock of another process. `lives`: whether the process with the owner's
// pid and start time lives, where `self` is on the same machine and can see that.
[[nodiscard]] LockVerdict judge(const RunLockOwner& owner, const RunLockOwner& self,
                                std::optional<bool> lives);

enum class RenewalVerdict : std::uint8_t {
  kRenew,    // the lock is free, or this process', or its new owner did not renew it in time
  kStandBy,  // another process of the same run has it: the chief that replaced this one
  kEndRun,   // another run has it
};
// Decides for an owner, each time it is about to renew its lock. A chief that was replaced while it
// was frozen may write the lock once more when it goes on, over that of its successor. So the
// successor does not leave the lock for good: it stands by, and takes it back once the other
// process has not renewed it for kLockExpiry.
class LockRenewal {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // `text`: what is in the file; nullopt: there is no file.
  [[nodiscard]] RenewalVerdict verdict(const std::optional<std::string>& text,
                                       const RunLockOwner& self, Time now);

 private:
  std::string others_text_;
  Time others_since_;
};

// For who is refused, or has lost the lock: who has it, since when, and what to do.
[[nodiscard]] std::string in_use_sentence(const std::filesystem::path& directory,
                                          const RunLockOwner& owner);

// The file. Everything throws std::system_error, unless said otherwise.
class RunLockFile {
 public:
  // `files` must outlive the object.
  RunLockFile(data::FileSystem& files, std::filesystem::path directory)
      : files_(&files), directory_(std::move(directory)), path_(directory_ / kRunLockName) {}

  // What is in it; nullopt: there is none.
  [[nodiscard]] std::optional<std::string> read() const;
  // Since when it was last written; at least 0, and at most kLockExpiry.
  [[nodiscard]] std::chrono::milliseconds age() const;
  // Makes it, with the directory. False: there is one.
  [[nodiscard]] bool create(const RunLockOwner& owner) const;
  // Writes it, whatever it was.
  void write(const RunLockOwner& owner) const;
  // Writes it in the place of `text`, which a dead owner has left. False: the lock has changed
  // since it was read, or another process is taking it over. Then nothing is written, and the
  // caller reads it again. `is_dead`: whether a process that had begun to take the lock over has
  // died meanwhile.
  [[nodiscard]] bool take_over(const std::string& text, const RunLockOwner& self,
                               const std::function<bool(const RunLockOwner&)>& is_dead) const;
  // Removes it, where it is of this process. Does not throw.
  void remove_own(const RunLockOwner& self) const noexcept;

 private:
  enum class Claim : std::uint8_t { kOwn, kAnothers, kNoLinks };

  [[nodiscard]] std::optional<std::string> read_at(const std::filesystem::path& path) const;
  [[nodiscard]] std::chrono::milliseconds age_of(const std::filesystem::path& path) const;
  void write_at(const std::filesystem::path& path, const RunLockOwner& owner) const;
  [[nodiscard]] Claim claim(const std::string& text, const RunLockOwner& self,
                            const std::function<bool(const RunLockOwner&)>& is_dead,
                            std::vector<std::filesystem::path>& claims) const;

  data::FileSystem* files_;
  std::filesystem::path directory_;
  std::filesystem::path path_;
};

}  // namespace disttf::roles
