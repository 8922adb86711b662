#include "storage/store/shell/store_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/copy_files.h"

namespace disttf::roles {
namespace {

using Path = std::filesystem::path;
using SteadyClock = std::chrono::steady_clock;

constexpr double kMegabyte = 1e6;

// "a/" becomes "a".
Path without_slash(const std::string& place) {
  Path path(place);
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

// The entry of the place itself, if it is a file.
std::optional<StoreEntry> file_entry(Storage& storage, const Path& path) {
  std::error_code error;
  const std::uint64_t size = storage.size_of(path, error);
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  if (error) throw std::system_error(error, "cannot read " + path.string());
  return StoreEntry{
      .name = path.filename().string(), .size_bytes = size, .modified = storage.last_write(path)};
}

nlohmann::json json_of(const StoreEntry& entry) {
  nlohmann::json json{{"name", net::one_line(entry.name)}, {"directory", entry.is_directory}};
  if (!entry.is_directory) {
    json["bytes"] = entry.size_bytes;
    json["modified"] = time_text(entry.modified);
  }
  return json;
}

std::string line_of(const StoreEntry& entry) {
  const std::string name = net::one_line(entry.name);
  if (entry.is_directory) return fmt::format("{:>14}  {:20}  {}/", "", "", name);
  return fmt::format("{:>14}  {}  {}", entry.size_bytes, time_text(entry.modified), name);
}

// Turns an error of a store or a disk into Failure(kBadData).
template <typename Use>
int as_failure(const Use& use) {
  try {
    return use();
  } catch (const std::system_error& error) {
    throw Failure(kBadData, error.what());
  }
}

int list(const ListCommand& command) {
  Storage storage;
  const Path place = without_slash(command.place);
  auto entries = storage.entries(place);
  // A file lists itself, as with ls.
  if (!entries) {
    auto file = file_entry(storage, place);
    if (!file) throw Failure(kUsage, net::quoted(command.place) + ": does not exist");
    entries.emplace().push_back(*std::move(file));
  }
  if (command.as_json) {
    nlohmann::json all = nlohmann::json::array();
    for (const StoreEntry& entry : *entries) all.push_back(json_of(entry));
    print_result(data::json_text(
        nlohmann::json{{"place", net::one_line(command.place)}, {"entries", std::move(all)}}));
  } else {
    for (const StoreEntry& entry : *entries) print_result(line_of(entry));
  }
  return kDone;
}

int copy(const CopyCommand& command) {
  Storage storage;
  const Path from = without_slash(command.from);
  Path to = without_slash(command.to);
  // As with cp, a file goes into a directory under its own name. In a store, only a slash at the
  // end says that the target is a directory.
  if (command.to.ends_with('/') || (!is_store_url(to) && storage.is_directory(to))) {
    to /= from.filename();
  }
  std::vector<FileToCopy> files;
  if (!collect_files(storage, from, to, files)) {
    // It is no directory, so it is a file or nothing.
    if (!file_entry(storage, from)) {
      throw Failure(kUsage, net::quoted(command.from) + ": does not exist");
    }
    files.push_back({.from = from, .to = to});
  }
  // Before the list is moved from.
  const std::size_t count = files.size();
  const auto began = SteadyClock::now();
  const std::uint64_t bytes = copy_files(std::move(files), command.threads);
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - began).count();
  const double megabytes = static_cast<double>(bytes) / kMegabyte;
  print_written(
      fmt::format("Copied {} file{}, {:.1f} MB, to {} ({:.1f} MB/s)", count, count == 1 ? "" : "s",
                  megabytes, to.string(), megabytes / std::max(seconds, 1e-9)),
      to);
  return kDone;
}

}  // namespace

int run_list_command(const ListCommand& command) {
  return as_failure([&] { return list(command); });
}

int run_copy_command(const CopyCommand& command) {
  return as_failure([&] { return copy(command); });
}

}  // namespace disttf::roles
