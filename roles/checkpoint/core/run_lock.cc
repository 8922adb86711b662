#include "roles/checkpoint/core/run_lock.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;

// A lock has a few hundred bytes. Of a longer file nothing is known but that it is there.
constexpr std::size_t kMostLockBytes = 64 * 1024;

bool is_of_loopback(const net::Address& address) {
  return address.host == "localhost" || address.host == "::1" || address.host.starts_with("127.");
}

std::string lock_text(const nlohmann::json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

template <typename Number>
Number lock_number(const nlohmann::json& json, const char* key) {
  return json.contains(key) && json[key].is_number_integer() ? json[key].get<Number>() : Number{0};
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
  if (!json.is_object() || lock_number<int>(json, "disttf_lock") != 1) {
    return std::nullopt;
  }
  RunLockOwner owner{.run = lock_text(json, "run"),
                     .process = lock_text(json, "process"),
                     .host = lock_text(json, "host"),
                     .machine = lock_text(json, "machine"),
                     .directory = lock_text(json, "directory"),
                     .pid = lock_number<std::int64_t>(json, "pid"),
                     .started = lock_number<std::uint64_t>(json, "started"),
                     .renewals = lock_number<std::uint64_t>(json, "renewals"),
                     .time = lock_text(json, "time")};
  return owner.process.empty() ? std::nullopt : std::optional(std::move(owner));
}

std::string run_of_cluster(const net::Cluster& cluster, std::string_view machine) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string run;
  for (const std::uint8_t byte : net::sparse_hash_of(cluster)) {
    run += kHex[byte >> 4U];
    run += kHex[byte & 15U];
  }
  if (std::ranges::any_of(cluster.ps, is_of_loopback)) {
    run += "@" + std::string(machine);
  }
  return run;
}

LockVerdict judge(const RunLockOwner& owner, const RunLockOwner& self, std::optional<bool> lives) {
  if (owner.run == self.run) {
    return LockVerdict::kTake;
  }
  const bool is_same_machine = !owner.machine.empty() && owner.machine == self.machine;
  if (!is_same_machine || !lives) {
    return LockVerdict::kWatch;
  }
  if (!*lives) {
    return LockVerdict::kTake;
  }
  // In a copy of the directory the lock of the original lies, which nobody renews there.
  return owner.directory == self.directory ? LockVerdict::kRefuse : LockVerdict::kWatch;
}

std::string in_use_sentence(const std::filesystem::path& directory, const RunLockOwner& owner) {
  const std::string time = owner.time.empty() ? "" : ", which renewed its lock at " + owner.time;
  return "--train_dir: " + net::quoted(directory.string()) + " is in use by another run, process " +
         std::to_string(owner.pid) + " on host " + net::quoted(owner.host) + time +
         "; end that run, or give this one another directory";
}

std::optional<std::string> RunLockFile::read() const {
  try {
    const std::vector<std::byte> bytes = data::read_file(*files_, path_, kMostLockBytes);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory ||
        error.code() == std::errc::not_a_directory) {
      return std::nullopt;
    }
    throw;
  }
}

milliseconds RunLockFile::age() const {
  const auto age = files_->now(directory_) - files_->last_write(path_);
  return std::clamp(std::chrono::duration_cast<milliseconds>(age), milliseconds(0),
                    milliseconds(kLockExpiry));
}

void RunLockFile::write_at(const std::filesystem::path& path, const RunLockOwner& owner) const {
  const std::string text = to_json(owner);
  const auto file = files_->create(path);
  file->write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file->sync();  // and others may read it
  file->take_name();
}

bool RunLockFile::create(const RunLockOwner& owner) const {
  data::create_directories(*files_, directory_);
  const std::filesystem::path early = path_.string() + "-" + owner.process;
  write_at(early, owner);
  const std::error_code error = files_->link(early, path_);
  files_->remove(early);
  if (error && error != std::errc::file_exists) {
    if (read()) return false;
    write_at(path_, owner);  // a file system without links
  }
  return !error || error != std::errc::file_exists;
}

void RunLockFile::write(const RunLockOwner& owner) const { write_at(path_, owner); }

void RunLockFile::remove_own(const RunLockOwner& self) const noexcept {
  try {
    const auto text = read();
    const auto owner = text ? run_lock_owner_from(*text) : std::nullopt;
    if (owner && owner->process == self.process) {
      static_cast<void>(files_->remove(path_));
    }
  } catch (const std::exception&) {
    return;  // it expires
  }
}

}  // namespace disttf::roles
