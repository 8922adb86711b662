// The lock of a --train_dir: a file "run.lock" that names the run that writes checkpoints there. A
// second run with the same directory by mistake would mix its checkpoints with those of the first.
//
// The owner is the chief's process. It renews the file every kLockRenewal, so that others see that
// it is alive. A process that wants the lock
//   - takes it at once if there is none, if the owner is a process of the same cluster (the chief
//     was restarted, on this host or another), or if the owner ran on this host and is dead;
//   - is refused at once if the owner is alive on this host and has the same directory;
//   - otherwise watches whether the owner renews the lock. If it does, the process is refused. If
//     it does not within kLockExpiry, the owner is dead, and the process takes the lock.
//
// Times are those of the directory's file system, so the clocks of different machines do not
// matter. If two processes take a free lock at the same moment, or the lock of one dead owner, one
// gets it: on a disk because a hard link is created only once; in a store, which has no links,
// because both check again after kLockSettles, and the one that does not find its own lock ends.
//
// For the waiting, and the thread that renews, see storage/checkpoint/shell/held_run_lock.h.
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
// In a store each renewal is a paid request; on a disk it costs nothing noticeable.
inline constexpr std::chrono::seconds kLockRenewal{15};
// Four renewals: a slow store that delays one must not count as death.
inline constexpr std::chrono::seconds kLockExpiry{60};
// A store has written a small object by then.
inline constexpr std::chrono::seconds kLockSettles{2};

struct RunLockOwner {
  std::string run;            // the same for every process that is the chief of one cluster
  std::string process;        // random: this process and no other
  std::string host;           // for sentences
  std::string machine;        // a boot of a kernel, and a namespace of processes
  std::string directory;      // as the owner sees it; a copied lock names the original
  std::int64_t pid = 0;       // within `machine`
  std::uint64_t started = 0;  // of the process, in clock ticks since the boot
  std::uint64_t renewals = 0;
  std::string time;  // of the last renewal, by the owner's clock; for sentences
};

// One JSON object.
[[nodiscard]] std::string to_json(const RunLockOwner& owner);
// Returns nullopt if the text is not a lock of this version.
[[nodiscard]] std::optional<RunLockOwner> run_lock_owner_from(std::string_view text);

// Returns RunLockOwner::run of a chief. A restarted chief has the same value, wherever it runs: the
// addresses of the ps and of the chief decide. Loopback addresses mean another run on each
// `machine`.
[[nodiscard]] std::string run_of_cluster(const net::Cluster& cluster, std::string_view machine);

enum class LockVerdict : std::uint8_t {
  kTake,    // the owner is of the same run, or is dead
  kRefuse,  // the owner is alive
  kWatch,   // unknown: watch whether the lock is renewed
};
// Returns what `self` does about another process's lock. `lives`: whether the process with the
// owner's pid and start time is alive, if `self` is on the same machine and can see that.
[[nodiscard]] LockVerdict judge(const RunLockOwner& owner, const RunLockOwner& self,
                                std::optional<bool> lives);

enum class RenewalVerdict : std::uint8_t {
  kRenew,    // the lock is free or this process's, or its new owner did not renew it in time
  kStandBy,  // another process of the same run has it: the chief that replaced this one
  kEndRun,   // another run has it
};
// Decides for an owner, each time it is about to renew its lock. A chief that was replaced while it
// was suspended may write the lock once more when it resumes, over that of its successor. So the
// successor does not leave the lock for good: it stands by, and takes it back once the other
// process has not renewed it for kLockExpiry.
class LockRenewal {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // `text`: the file's content; nullopt if there is no file.
  [[nodiscard]] RenewalVerdict verdict(const std::optional<std::string>& text,
                                       const RunLockOwner& self, Time now);

 private:
  std::string others_text_;
  Time others_since_;
};

// For a process that is refused or has lost the lock: who holds it, since when, and what to do.
[[nodiscard]] std::string in_use_sentence(const std::filesystem::path& directory,
                                          const RunLockOwner& owner);

// The lock file. All functions throw std::system_error, unless stated otherwise.
class RunLockFile {
 public:
  // `files` must outlive the object.
  RunLockFile(data::FileSystem& files, std::filesystem::path directory)
      : files_(&files), directory_(std::move(directory)), path_(directory_ / kRunLockName) {}

  // Returns its content; nullopt if it does not exist.
  [[nodiscard]] std::optional<std::string> read() const;
  // Returns the time since it was last written; at least 0, and at most kLockExpiry.
  [[nodiscard]] std::chrono::milliseconds age() const;
  // Creates it, and the directory. Returns false if it exists.
  [[nodiscard]] bool create(const RunLockOwner& owner) const;
  // Writes it, whatever it contained.
  void write(const RunLockOwner& owner) const;
  // Replaces `text`, which a dead owner has left. Returns false, and writes nothing, if the lock
  // has changed since it was read, or another process is taking it over; the caller then reads it
  // again. `is_dead`: whether a process that had begun to take the lock over has died meanwhile.
  [[nodiscard]] bool take_over(const std::string& text, const RunLockOwner& self,
                               const std::function<bool(const RunLockOwner&)>& is_dead) const;
  // Removes it if it belongs to this process. Does not throw.
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

// One process's part in the lock, without its waits. All functions throw std::system_error, unless
// stated otherwise, and Failure(kUsage) where another run has the lock.
//
// Not thread-safe, except check().
class RunLockHolder {
 public:
  using Time = LockRenewal::Time;
  // Returns whether the process of an owner on this machine is alive; nullopt: unknown.
  using Lives = std::function<std::optional<bool>(const RunLockOwner&)>;

  // `files` must outlive the object.
  RunLockHolder(data::FileSystem& files, std::filesystem::path directory, RunLockOwner self,
                Lives lives);

  // Returns nullopt once this process has the lock. Otherwise it is to be called again, soon: the
  // result is how long the owner may go without a renewal before it counts as dead.
  [[nodiscard]] std::optional<std::chrono::milliseconds> try_to_take(Time now);
  // For each kLockRenewal, once it is taken. `time`: RunLockOwner::time.
  void renew(Time now, std::string time);
  // Before this process gives a checkpoint its name: only throws if another run has the lock, or
  // may have had it. That is so where the process was suspended for longer than kLockExpiry, and
  // has not looked at the lock since. `looked`: looked(). Callable from any thread.
  void check(Time now, Time looked) const;
  // When this process has taken the lock, or read it in renew(), last; Time::max(): never.
  [[nodiscard]] Time looked() const noexcept { return looked_; }
  // Gives the lock back, if it is this process's. Does not throw.
  void release() noexcept { file_.remove_own(self_); }

  // Of the lock that try_to_take() waits for.
  [[nodiscard]] const RunLockOwner& other() const noexcept { return other_; }

 private:
  [[nodiscard]] std::optional<std::chrono::milliseconds> attempt(Time now);
  [[nodiscard]] bool take_over(const std::string& text);
  void must_be_there(const std::optional<std::string>& text, Time now, Time looked) const;

  const std::filesystem::path directory_;
  const RunLockFile file_;
  RunLockOwner self_;  // renewals and time belong to the renewing thread
  const Lives lives_;
  LockRenewal renewal_;
  Time looked_ = Time::max();
  // A lock of another process while it is watched.
  std::string seen_;
  Time expires_{};
  RunLockOwner other_;
};

}  // namespace disttf::roles
