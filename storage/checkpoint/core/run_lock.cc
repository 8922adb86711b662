#include "storage/checkpoint/core/run_lock.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// A lock has a few hundred bytes. A longer file is only known to exist.
constexpr std::size_t kMostLockBytes = 64 * 1024;

bool is_of_loopback(const net::Address& address) {
  return address.host == "localhost" || address.host == "::1" || address.host.starts_with("127.");
}

template <typename Number>
Number lock_number(const nlohmann::json& json, const char* key) {
  const nlohmann::json& member = data::member_of(json, key);
  return member.is_number_integer() ? member.get<Number>() : Number{0};
}

// The name of a process comes from a file that any user may have written.
std::string file_name_part(std::string_view process) {
  constexpr std::size_t kMost = 64;
  std::string part;
  std::ranges::copy_if(process.substr(0, kMost), std::back_inserter(part),
                       [](char c) { return net::is_letter(c) || net::is_digit(c); });
  return part.empty() ? "unknown" : part;
}

}  // namespace

std::string to_json(const RunLockOwner& owner) {
  const nlohmann::ordered_json json = {{"disttf_lock", 1},           {"run", owner.run},
                                       {"process", owner.process},   {"host", owner.host},
                                       {"pid", owner.pid},           {"started", owner.started},
                                       {"machine", owner.machine},   {"directory", owner.directory},
                                       {"renewals", owner.renewals}, {"time", owner.time}};
  return data::json_text(json) + "\n";
}

std::optional<RunLockOwner> run_lock_owner_from(std::string_view text) {
  constexpr std::size_t kMostDepth = 4;
  const auto json = data::parse_json(text, kMostDepth);
  if (lock_number<int>(json, "disttf_lock") != 1) {
    return std::nullopt;
  }
  RunLockOwner owner{.run = data::member_text(json, "run"),
                     .process = data::member_text(json, "process"),
                     .host = data::member_text(json, "host"),
                     .machine = data::member_text(json, "machine"),
                     .directory = data::member_text(json, "directory"),
                     .pid = lock_number<std::int64_t>(json, "pid"),
                     .started = lock_number<std::uint64_t>(json, "started"),
                     .renewals = lock_number<std::uint64_t>(json, "renewals"),
                     .time = data::member_text(json, "time")};
  return owner.process.empty() ? std::nullopt : std::optional(std::move(owner));
}

std::string run_of_cluster(const net::Cluster& cluster, std::string_view machine) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string run;
  for (const std::uint8_t byte : net::sparse_hash_of(cluster)) {
    run += kHex[byte >> 4U];
    run += kHex[byte & 15U];
  }
  // Loopback addresses are the same on every machine, and name different runs there.
  if (std::ranges::any_of(cluster.ps, is_of_loopback)) {
    run += "@" + std::string(machine);
  }
  return run;
}

LockVerdict judge(const RunLockOwner& owner, const RunLockOwner& self, std::optional<bool> lives) {
  // A restarted chief must not wait for its own predecessor.
  if (owner.run == self.run) {
    return LockVerdict::kTake;
  }
  const bool is_same_machine = !owner.machine.empty() && owner.machine == self.machine;
  // A pid means nothing on another machine or in another namespace: only renewals show a live
  // owner.
  if (!is_same_machine || !lives) {
    return LockVerdict::kWatch;
  }
  // Its process has ended, so the lock will not be renewed: no need to wait for its expiry.
  if (!*lives) {
    return LockVerdict::kTake;
  }
  // A copy of the directory contains the lock of the original, which is never renewed there.
  return owner.directory == self.directory ? LockVerdict::kRefuse : LockVerdict::kWatch;
}

std::string in_use_sentence(const std::filesystem::path& directory, const RunLockOwner& owner) {
  const std::string time = owner.time.empty() ? "" : ", which renewed its lock at " + owner.time;
  return "--train_dir: " + net::quoted(directory.string()) + " is in use by another run, process " +
         std::to_string(owner.pid) + " on host " + net::quoted(owner.host) + time +
         "; end that run, or give this one another directory";
}

RenewalVerdict LockRenewal::verdict(const std::optional<std::string>& text,
                                    const RunLockOwner& self, Time now) {
  const auto owner = text ? run_lock_owner_from(*text) : std::nullopt;
  // A lock that was removed or damaged is written again.
  if (!owner || owner->process == self.process) {
    others_text_.clear();
    return RenewalVerdict::kRenew;
  }
  // Two runs would mix their checkpoints. This one ends, as the other one has the lock.
  if (owner->run != self.run) {
    return RenewalVerdict::kEndRun;
  }
  if (others_text_ != *text) {
    others_text_ = *text;
    others_since_ = now;
  }
  return now - others_since_ < kLockExpiry ? RenewalVerdict::kStandBy : RenewalVerdict::kRenew;
}

std::optional<std::string> RunLockFile::read() const { return read_at(path_); }

std::optional<std::string> RunLockFile::read_at(const std::filesystem::path& path) const {
  try {
    const std::vector<std::byte> bytes = data::read_file(*files_, path, kMostLockBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory ||
        error.code() == std::errc::not_a_directory) {
      return std::nullopt;
    }
    throw;
  }
}

milliseconds RunLockFile::age() const { return age_of(path_); }

milliseconds RunLockFile::age_of(const std::filesystem::path& path) const {
  // Both times are the file system's, so this machine's clock does not matter. The bounds keep a
  // wrong date from making the wait longer.
  const auto age = files_->now(directory_) - files_->last_write(path);
  return std::clamp(std::chrono::duration_cast<milliseconds>(age), milliseconds(0),
                    milliseconds(kLockExpiry));
}

void RunLockFile::write_at(const std::filesystem::path& path, const RunLockOwner& owner) const {
  const std::string text = to_json(owner);
  const auto file = files_->create(path);
  file->write(data::bytes_in(text));
  file->sync();  // so that others may read it
  file->take_name();
}

bool RunLockFile::create(const RunLockOwner& owner) const {
  data::create_directories(*files_, directory_);
  // Under a name of its own first, so that the lock never exists with a part of its content.
  const std::filesystem::path early = path_.string() + "-" + owner.process;
  write_at(early, owner);
  // A link fails if the name exists, so that only one process creates the lock.
  const std::error_code error = files_->link(early, path_);
  files_->remove(early);
  if (error && error != std::errc::file_exists) {
    if (read()) return false;
    write_at(path_, owner);  // a file system without hard links
  }
  return !error || error != std::errc::file_exists;
}

void RunLockFile::write(const RunLockOwner& owner) const { write_at(path_, owner); }

// A process claims the lock of the owner P by the file run.lock-after-P, which can be made once.
// Where that is the file of a process Q that died over it, run.lock-after-Q decides, and so on.
RunLockFile::Claim RunLockFile::claim(const std::string& text, const RunLockOwner& self,
                                      const std::function<bool(const RunLockOwner&)>& is_dead,
                                      std::vector<std::filesystem::path>& claims) const {
  constexpr std::size_t kMostClaims = 16;
  const std::filesystem::path early = path_.string() + "-" + self.process;
  write_at(early, self);
  const auto owner = run_lock_owner_from(text);
  std::string before = file_name_part(owner ? owner->process : "");
  Claim result = Claim::kAnothers;
  while (true) {
    // The names in the files may form a cycle, which would not end.
    if (claims.size() == kMostClaims) {
      throw std::system_error(std::make_error_code(std::errc::too_many_links), path_.string());
    }
    const std::filesystem::path path = path_.string() + "-after-" + before;
    const std::error_code error = files_->link(early, path);
    if (error != std::errc::file_exists) {
      result = error ? Claim::kNoLinks : Claim::kOwn;
      claims.push_back(path);
      break;
    }
    const auto other = read_at(path);
    const auto claimant = other ? run_lock_owner_from(*other) : std::nullopt;
    if (!claimant || (!is_dead(*claimant) && age_of(path) < kLockExpiry)) {
      break;
    }
    claims.push_back(path);
    before = file_name_part(claimant->process);
  }
  files_->remove(early);
  return result;
}

bool RunLockFile::take_over(const std::string& text, const RunLockOwner& self,
                            const std::function<bool(const RunLockOwner&)>& is_dead) const {
  std::vector<std::filesystem::path> claims;
  const Claim claimed = claim(text, self, is_dead, claims);
  if (claimed == Claim::kAnothers) {
    return false;
  }
  // Another process may have taken the lock over, and removed its claim, since `text` was read.
  const bool is_as_read = read() == text;
  if (is_as_read) {
    write(self);
  }
  // After the lock is written: until then the claims keep others from taking the same dead owner's
  // lock.
  if (claimed == Claim::kOwn) {
    for (const auto& path : claims) {
      files_->remove(path);
    }
  }
  return is_as_read;
}

void RunLockFile::remove_own(const RunLockOwner& self) const noexcept {
  try {
    const auto text = read();
    const auto owner = text ? run_lock_owner_from(*text) : std::nullopt;
    if (owner && owner->process == self.process) {
      static_cast<void>(files_->remove(path_));
    }
  } catch (const std::exception&) {
    return;  // the lock expires
  }
}

RunLockHolder::RunLockHolder(data::FileSystem& files, std::filesystem::path directory,
                             RunLockOwner self, Lives lives)
    : directory_(std::move(directory)),
      file_(files, directory_),
      self_(std::move(self)),
      lives_(std::move(lives)) {}

std::optional<milliseconds> RunLockHolder::try_to_take(Time now) {
  const auto left = attempt(now);
  if (!left) {
    looked_ = now;
  }
  return left;
}

std::optional<milliseconds> RunLockHolder::attempt(Time now) {
  const auto taken = [](bool is_taken) {
    return is_taken ? std::nullopt : std::optional(milliseconds(0));
  };
  const std::optional<std::string> text = file_.read();
  if (!text) {
    return taken(file_.create(self_));
  }
  const auto owner = run_lock_owner_from(*text).value_or(RunLockOwner{});
  switch (judge(owner, self_, lives_(owner))) {
    case LockVerdict::kTake:
      if (owner.run == self_.run) {
        file_.write(self_);  // the chief was restarted
        return std::nullopt;
      }
      return taken(take_over(*text));
    case LockVerdict::kRefuse:
      throw Failure(kUsage, in_use_sentence(directory_, owner));
    case LockVerdict::kWatch:
      break;
  }
  // A lock that was renewed long ago has been so while this process was suspended.
  if (seen_.empty() || (seen_ != *text && file_.age() >= kLockExpiry)) {
    // It has already gone unrenewed for its age, so only the rest is waited for.
    seen_ = *text;
    expires_ = now + milliseconds(kLockExpiry) - file_.age();
    other_ = owner;
  }
  // The owner has renewed it, so it is alive.
  if (seen_ != *text) {
    throw Failure(kUsage, in_use_sentence(directory_, owner));
  }
  if (now < expires_) {
    return std::chrono::ceil<milliseconds>(expires_ - now);
  }
  // The text is passed on, so that a renewal between the read and the takeover is noticed.
  return taken(take_over(*text));
}

bool RunLockHolder::take_over(const std::string& text) {
  return file_.take_over(text, self_, [this](const RunLockOwner& claimant) {
    return claimant.machine == self_.machine && !claimant.machine.empty() &&
           lives_(claimant) == std::optional(false);
  });
}

// A run that ends removes its lock. If this process was suspended, that may have been another run,
// which took the lock meanwhile. A directory that was removed or cannot be written has no lock,
// either: then this process has looked each time, and goes on.
void RunLockHolder::must_be_there(const std::optional<std::string>& text, Time now,
                                  Time looked) const {
  if (!text && now - looked >= kLockExpiry) {
    throw Failure(kUsage, "--train_dir: " + net::quoted(directory_.string()) +
                              " has lost its lock while this process was suspended, "
                              "so another run may have saved there; look at its checkpoints, then "
                              "start this run again");
  }
}

void RunLockHolder::renew(Time now, std::string time) {
  const std::optional<std::string> text = file_.read();
  must_be_there(text, now, looked_);
  looked_ = now;
  switch (renewal_.verdict(text, self_, now)) {
    case RenewalVerdict::kStandBy:
      return;
    case RenewalVerdict::kEndRun:
      throw Failure(kUsage, in_use_sentence(directory_, *run_lock_owner_from(*text)));
    case RenewalVerdict::kRenew:
      break;
  }
  ++self_.renewals;
  self_.time = std::move(time);
  file_.write(self_);
}

void RunLockHolder::check(Time now, Time looked) const {
  const std::optional<std::string> text = file_.read();
  must_be_there(text, now, looked);
  const auto owner = text ? run_lock_owner_from(*text) : std::nullopt;
  if (owner && owner->run != self_.run) {
    throw Failure(kUsage, in_use_sentence(directory_, *owner));
  }
}

}  // namespace disttf::roles
