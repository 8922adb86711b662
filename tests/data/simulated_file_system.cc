#include "tests/data/simulated_file_system.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace disttf::data::test {
namespace {

using Path = std::filesystem::path;
using Node = DiskState::Node;

// The possible contents of an unsynced file after a power failure: the durable ones, all written
// bytes, the first half of them, or the right size without contents.
constexpr std::size_t kFileOutcomes = 4;

std::size_t outcomes_of(const Node& node) {
  if (node.is_directory) return std::size_t{1} << node.pending.size();
  return node.is_synced ? 1 : kFileOutcomes;
}

void carry_out(DiskState::Names& names, const DiskState::Change& change) {
  if (!change.taken.empty()) names.erase(change.taken);
  if (!change.given.empty()) names[change.given] = change.node;
}

void lose_power(Node& node, const DiskState::Choose& choose) {
  if (node.is_directory) {
    for (const DiskState::Change& change : node.pending) {
      if (choose(2) != 0) carry_out(node.durable_names, change);
    }
    node.names = node.durable_names;
    node.pending.clear();
    return;
  }
  const std::size_t outcome = node.is_synced ? 0 : choose(kFileOutcomes);
  if (outcome == 0) {
    node.contents = node.durable_contents;
  } else if (outcome == 2) {
    node.contents.resize(node.contents.size() / 2);
  } else if (outcome == 3) {
    std::ranges::fill(node.contents, std::uint8_t{0});
  }
  node.durable_contents = node.contents;
  node.is_synced = true;
  node.can_be_synced = true;
}

std::system_error failure(std::error_code error, const std::string& what, const Path& path) {
  return std::system_error(error, what + " " + path.string());
}

class SimulatedOpenFile final : public OpenFile {
 public:
  explicit SimulatedOpenFile(DiskState::Contents contents) : contents_(std::move(contents)) {}
  [[nodiscard]] std::uint64_t size_bytes() const override { return contents_.size(); }
  [[nodiscard]] std::size_t read(std::uint64_t offset, std::span<std::byte> to) const override {
    const auto all = std::as_bytes(std::span(contents_));
    const auto from = all.subspan(std::min<std::uint64_t>(offset, all.size()));
    const std::size_t count = std::min(from.size(), to.size());
    std::ranges::copy(from.first(count), to.begin());
    return count;
  }

 private:
  const DiskState::Contents contents_;
};

}  // namespace

std::size_t DiskState::outcomes() const {
  std::size_t count = 1;
  for (const Node& node : nodes) count *= outcomes_of(node);
  return count;
}

DiskState DiskState::after_power_cut(std::size_t outcome) const {
  return after_power_cut([&outcome](std::size_t ways) {
    const std::size_t chosen = outcome % ways;
    outcome /= ways;
    return chosen;
  });
}

DiskState DiskState::after_power_cut(const Choose& choose) const {
  DiskState left = *this;
  for (Node& node : left.nodes) lose_power(node, choose);
  return left;
}

class SimulatedNewFile final : public NewFile {
 public:
  SimulatedNewFile(SimulatedFileSystem& disk, Path target, Path path, DiskState::NodeId node)
      : disk_(disk), target_(std::move(target)), path_(std::move(path)), node_(node) {}
  ~SimulatedNewFile() override {
    try {
      if (!has_name_ && disk_.has_power()) disk_.remove(path_);
    } catch (const PowerCut&) {
      return;  // it stays
    }
  }
  void write(std::span<const std::uint8_t> bytes) override {
    const std::error_code error = disk_.begin();
    if (error) bytes = bytes.first(bytes.size() / 2);
    Node& node = disk_.state_.nodes[node_];
    node.contents.insert(node.contents.end(), bytes.begin(), bytes.end());
    node.is_synced = false;
    node.last_write = disk_.now_;
    if (error) throw failure(error, "cannot write", path_);
  }
  void sync() override {
    const std::error_code error = disk_.begin();
    Node& node = disk_.state_.nodes[node_];
    node.can_be_synced = node.can_be_synced && !error;
    if (error) throw failure(error, "cannot write", target_);
    if (node.can_be_synced) {
      node.durable_contents = node.contents;
      node.is_synced = true;
    }
  }
  void take_name() override {
    if (const std::error_code error = disk_.rename(path_, target_)) {
      throw failure(error, "cannot create", target_);
    }
    has_name_ = true;
  }

 private:
  SimulatedFileSystem& disk_;
  const Path target_;
  const Path path_;
  const DiskState::NodeId node_;
  bool has_name_ = false;
};

void SimulatedFileSystem::expect_power() const {
  if (!has_power_) throw PowerCut();
}

std::error_code SimulatedFileSystem::away() const {
  return is_away_ ? std::make_error_code(std::errc::resource_unavailable_try_again)
                  : std::error_code();
}

std::error_code SimulatedFileSystem::begin() {
  has_power_ = has_power_ && operations_ != cut_at_;
  expect_power();
  const bool fails = fail_at_ && operations_ >= *fail_at_ && operations_ < *fail_at_ + fails_;
  ++operations_;
  if (is_away_) return away();
  return fails ? std::make_error_code(error_) : std::error_code();
}

std::optional<DiskState::NodeId> SimulatedFileSystem::find(const Path& path) const {
  NodeId at = 0;
  for (const Path& part : path.relative_path()) {
    const Node& node = state_.nodes[at];
    const auto found = node.names.find(part.string());
    if (!node.is_directory || found == node.names.end()) return std::nullopt;
    at = found->second;
  }
  return at;
}

DiskState::NodeId SimulatedFileSystem::parent(const Path& path) const {
  const auto found = find(path.parent_path());
  if (!found || !state_.nodes[*found].is_directory) {
    throw failure(std::make_error_code(std::errc::no_such_file_or_directory), "cannot find", path);
  }
  return *found;
}

void SimulatedFileSystem::change(NodeId directory, const DiskState::Change& change) {
  Node& node = state_.nodes[directory];
  carry_out(node.names, change);
  node.pending.push_back(change);
  node.last_write = now_;
}

void SimulatedFileSystem::rot(const Path& path) {
  Node& node = state_.nodes[find(path).value()];
  node.contents[node.contents.size() / 2] ^= 1U;
  node.durable_contents = node.contents;
}

std::unique_ptr<NewFile> SimulatedFileSystem::create(const Path& target) {
  const Path path = target.string() + ".disttf-" + std::to_string(++temporaries_);
  const NodeId directory = parent(path);
  if (const std::error_code error = begin()) {
    throw failure(error, "cannot create a file in", path.parent_path());
  }
  state_.nodes.push_back({.last_write = now_});
  const NodeId node = state_.nodes.size() - 1;
  change(directory, {.taken = {}, .given = path.filename().string(), .node = node});
  return std::make_unique<SimulatedNewFile>(*this, target, path, node);
}

std::unique_ptr<OpenFile> SimulatedFileSystem::open(const Path& path) {
  expect_power();
  if (is_away_) throw failure(away(), "cannot read", path);
  const auto found = find(path);
  if (!found || state_.nodes[*found].is_directory) {
    throw failure(std::make_error_code(found ? std::errc::is_a_directory
                                             : std::errc::no_such_file_or_directory),
                  "cannot read", path);
  }
  return std::make_unique<SimulatedOpenFile>(state_.nodes[*found].contents);
}

std::uint64_t SimulatedFileSystem::size_of(const Path& path, std::error_code& error) {
  expect_power();
  const auto found = is_away_ ? std::nullopt : find(path);
  error = is_away_ ? away()
          : found  ? std::error_code()
                   : std::make_error_code(std::errc::no_such_file_or_directory);
  return found ? state_.nodes[*found].contents.size() : 0;
}

std::filesystem::file_time_type SimulatedFileSystem::last_write(const Path& path) {
  expect_power();
  if (is_away_) throw failure(away(), "cannot read", path);
  const auto found = find(path);
  if (!found) {
    throw failure(std::make_error_code(std::errc::no_such_file_or_directory), "cannot read", path);
  }
  return std::filesystem::file_time_type(std::chrono::seconds(state_.nodes[*found].last_write));
}

std::filesystem::file_time_type SimulatedFileSystem::now(const Path& /*directory*/) {
  expect_power();
  return std::filesystem::file_time_type(std::chrono::seconds(now_));
}

std::vector<std::string> SimulatedFileSystem::names_in(const Path& directory,
                                                       std::error_code& error) {
  expect_power();
  const auto found = is_away_ ? std::nullopt : find(directory);
  error = is_away_ ? away()
          : found  ? std::error_code()
                   : std::make_error_code(std::errc::no_such_file_or_directory);
  std::vector<std::string> names;
  if (found) {
    for (const auto& [name, node] : state_.nodes[*found].names) names.push_back(name);
  }
  return names;
}

bool SimulatedFileSystem::create_directory(const Path& path, std::error_code& error) {
  error = begin();
  const auto directory = find(path.parent_path());
  if (!error && !directory) error = std::make_error_code(std::errc::no_such_file_or_directory);
  if (error) return false;
  if (const auto there = find(path)) {
    if (!state_.nodes[*there].is_directory) error = std::make_error_code(std::errc::file_exists);
    return false;
  }
  state_.nodes.push_back({.is_directory = true, .last_write = now_});
  change(*directory,
         {.taken = {}, .given = path.filename().string(), .node = state_.nodes.size() - 1});
  return true;
}

// Supports only renames within one directory; no test needs more.
std::error_code SimulatedFileSystem::rename(const Path& from, const Path& to) {
  if (const std::error_code error = begin()) return error;
  const auto source = find(from);
  if (!source) return std::make_error_code(std::errc::no_such_file_or_directory);
  if (const auto there = find(to); there && !state_.nodes[*there].names.empty()) {
    return std::make_error_code(std::errc::directory_not_empty);
  }
  if (from.parent_path() != to.parent_path()) {
    return std::make_error_code(std::errc::cross_device_link);
  }
  change(parent(from),
         {.taken = from.filename().string(), .given = to.filename().string(), .node = *source});
  return {};
}

std::error_code SimulatedFileSystem::link(const Path& from, const Path& to) {
  if (const std::error_code error = begin()) return error;
  const auto source = find(from);
  if (!source) return std::make_error_code(std::errc::no_such_file_or_directory);
  if (find(to)) return std::make_error_code(std::errc::file_exists);
  change(parent(to), {.taken = {}, .given = to.filename().string(), .node = *source});
  return {};
}

std::error_code SimulatedFileSystem::remove(const Path& path) {
  if (const std::error_code error = begin()) return error;
  const auto there = find(path);
  if (!there) return {};
  if (!state_.nodes[*there].names.empty()) {
    return std::make_error_code(std::errc::directory_not_empty);
  }
  change(parent(path), {.taken = path.filename().string(), .given = {}, .node = 0});
  return {};
}

void SimulatedFileSystem::sync_directory(const Path& directory) {
  const std::error_code error = begin();
  const auto found = find(directory);
  if (error || !found) {
    throw failure(error ? error : std::make_error_code(std::errc::no_such_file_or_directory),
                  "cannot sync", directory);
  }
  Node& node = state_.nodes[*found];
  node.durable_names = node.names;
  node.pending.clear();
}

}  // namespace disttf::data::test
