#include "roles/serve/shell/directory_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <ranges>
#include <system_error>
#include <utility>

#include "model/model_files.h"
#include "net/wire/text.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "storage/store/core/store_url.h"
#include "storage/store/shell/storage.h"

namespace disttf::roles {
namespace {

using FilePath = std::filesystem::path;

// Identifies the directory itself, not its name: copies of two models may have files of the same
// sizes and times.
std::uint64_t identity_of(const FilePath& directory) {
  struct stat facts {};
  if (is_store_url(directory) || ::stat(directory.c_str(), &facts) != 0) {
    return 0;
  }
  return std::hash<std::string>()(fmt::format("{} {}", facts.st_dev, facts.st_ino));
}

// Advice for an error that serve's own sandbox may have caused.
std::string what_to_do(const std::error_code& error) {
  return error == std::errc::permission_denied
             ? " (files added after the start may lie outside of the sandbox of --confine: name "
               "the directory in which links or models change, or restart serve)"
             : "";
}

// A checksum marker that changes with the files of a directory: from the directory's identity, and
// names, sizes and times of all files.
std::uint64_t fingerprint_of(const FilePath& directory) {
  std::uint64_t fingerprint = identity_of(directory);
  for (const StoreEntry& entry : Storage().entries(directory).value_or(std::vector<StoreEntry>())) {
    // Added, not chained: entries come in any order.
    fingerprint += std::hash<std::string>()(fmt::format("{} {} {}", entry.name, entry.size_bytes,
                                                        entry.modified.time_since_epoch().count()));
  }
  return fingerprint;
}

}  // namespace

DirectoryModels::DirectoryModels(FilePath directory, std::size_t keep, ModelRegistry& registry)
    : directory_(std::move(directory)), keep_(keep), registry_(registry) {}

// The models in the directory, newest first, each version once.
std::vector<DirectoryModels::Candidate> DirectoryModels::candidates() const {
  Storage disk;
  std::vector<Candidate> found;
  // The directory is one checkpoint itself, not a folder of them.
  if (disk.exists(directory_ / kIndexName)) {
    return {{.path = directory_, .version = std::nullopt, .is_checkpoint = true}};
  }
  for (const CheckpointName& name : checkpoints_in(disk, directory_)) {
    if (found.empty() || found.back().version != name.step) {  // the highest revision comes first
      found.push_back(
          {.path = directory_ / to_string(name), .version = name.step, .is_checkpoint = true});
    }
  }
  bool is_empty = true;
  for (const StoreEntry& entry : disk.entries(directory_).value_or(std::vector<StoreEntry>())) {
    is_empty = false;
    const auto version = net::whole_number(entry.name);  // 123 for "00000123"
    if (version && entry.is_directory) {
      found.push_back(
          {.path = directory_ / entry.name, .version = version, .is_checkpoint = false});
    }
  }
  if (found.empty() && !is_empty) {
    return {{.path = directory_, .version = std::nullopt, .is_checkpoint = false}};
  }
  std::ranges::sort(found, std::ranges::greater(), &Candidate::version);
  return found;
}

std::shared_ptr<const LoadedModel> DirectoryModels::loaded(const Candidate& candidate,
                                                           std::uint64_t fingerprint) const {
  const std::shared_ptr<const ServedModels> now = registry_.now();
  for (const std::shared_ptr<const LoadedModel>& each : now->models) {
    // The path alone does not suffice: a file may be replaced in place.
    if (each->path == candidate.path && each->files_fingerprint == fingerprint) {
      return each;
    }
  }
  return nullptr;
}

std::unique_ptr<LoadedModel> DirectoryModels::read(const Candidate& candidate) {
  TrainedModel model =
      candidate.is_checkpoint ? read_checkpoint_model(candidate.path) : read_model(candidate.path);
  has_program_ = has_program_ || model.config.model.is_program();
  require_layers(model.config, "serve");
  std::unique_ptr<LoadedModel> loaded =
      registry_.try_out(std::move(model), candidate.path.string());
  loaded->path = candidate.path;
  // A folder's number wins over the step in the model: its owner has chosen it.
  loaded->version = candidate.version.value_or(loaded->version);
  return loaded;
}

// Loads a model; nullptr: it is rejected, now or earlier.
std::shared_ptr<const LoadedModel> DirectoryModels::load(const Candidate& candidate,
                                                         std::uint64_t fingerprint) {
  const auto known = std::ranges::find(refused_, candidate.path, &Refused::path);
  // A bad model is not read again every look; changed files or the passing of time allow it.
  if (known != refused_.end() && known->files_fingerprint == fingerprint &&
      std::chrono::steady_clock::now() < known->again) {
    return nullptr;
  }
  try {
    std::unique_ptr<LoadedModel> loaded = read(candidate);
    loaded->files_fingerprint = fingerprint;
    std::erase_if(refused_, [&](const Refused& each) { return each.path == candidate.path; });
    return loaded;
  } catch (const Failure& failure) {
    // An empty directory is no error: the first model may come later.
    if (candidate.path == directory_ && !candidate.is_checkpoint && failure.exit_code() == kUsage) {
      return nullptr;
    }
    // kError: this machine lacks the memory now; otherwise the files are wrong.
    refuse(candidate, fingerprint, failure.what(), /*may_pass=*/failure.exit_code() == kError);
  } catch (const DamagedCheckpoint& damaged) {
    refuse(candidate, fingerprint, damaged.what(), /*may_pass=*/false);
  } catch (const std::system_error& error) {
    refuse(candidate, fingerprint, error.what() + what_to_do(error.code()), /*may_pass=*/true);
  } catch (const std::exception& error) {
    refuse(candidate, fingerprint, error.what(), /*may_pass=*/true);
  }
  return nullptr;
}

// `may_pass`: the files may be good, but the disk or this machine may have failed.
void DirectoryModels::refuse(const Candidate& candidate, std::uint64_t fingerprint,
                             const std::string& sentence, bool may_pass) {
  using Time = std::chrono::steady_clock;
  constexpr std::chrono::seconds kAgain{10};
  registry_.count_refused();
  auto known = std::ranges::find(refused_, candidate.path, &Refused::path);
  if (known == refused_.end()) {
    known = refused_.insert(known, {.path = candidate.path, .again = {}, .status = {}});
  }
  // The retries of the same error neither log nor publish again.
  if (known->status.sentence != sentence) {
    ++refusals_;
    log_warning("not served: " + sentence);
  }
  known->files_fingerprint = fingerprint;
  // Damaged files stay damaged until they change.
  known->again = may_pass ? Time::now() + kAgain : Time::time_point::max();
  known->status = {
      .version = candidate.version.value_or(0), .is_available = false, .sentence = sentence};
}

// Logs a sentence unless it was the last one. A directory without models only causes a log line:
// its first model may come later.
void DirectoryModels::say_once(const std::string& sentence) {
  if (said_ != sentence) {
    said_ = sentence;
    log_info(said_);
  }
}

void DirectoryModels::say_not_there() {
  const std::string name = net::quoted(directory_.string());
  say_once(registry_.now()->models.empty() ? "waiting for a model: " + name + " is not there yet"
                                           : name + " is gone; the present models stay");
}

bool DirectoryModels::is_there() {
  if (is_store_url(directory_)) {
    if (Storage().is_directory(directory_)) {
      return true;
    }
    say_not_there();
    return false;
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(directory_, error);
  const std::string name = net::quoted(directory_.string());
  if (status.type() == std::filesystem::file_type::not_found) {
    say_not_there();
    return false;
  }
  if (status.type() == std::filesystem::file_type::none) {
    throw std::system_error(error, "cannot look into " + name);
  }
  if (!std::filesystem::is_directory(status)) {
    throw Failure(kUsage, name + " is not a directory");
  }
  // Permissions and the sandbox show only when the directory is opened.
  const std::filesystem::directory_iterator readable(directory_, error);
  if (error) {
    say_once("cannot look into " + name + ": " + error.message() + what_to_do(error) +
             (registry_.now()->models.empty() ? "" : "; the present models stay"));
    return false;
  }
  return true;
}

void DirectoryModels::look() {
  if (!is_there()) {
    return;
  }
  const std::vector<Candidate> found = candidates();
  const std::uint64_t refusals_before = refusals_;
  // A deleted candidate must leave the list that clients see.
  const std::size_t forgotten = std::erase_if(refused_, [&found](const Refused& each) {
    return std::ranges::find(found, each.path, &Candidate::path) == found.end();
  });
  LoadedModels models;
  bool is_other = forgotten > 0;
  for (const Candidate& each : found) {
    // Newest first: older ones are not even read.
    if (models.size() == keep_) {
      break;
    }
    // Computed before the model is read, so that changes during the read are seen the next time.
    const std::uint64_t fingerprint = fingerprint_of(each.path);
    std::shared_ptr<const LoadedModel> model = loaded(each, fingerprint);
    if (model == nullptr) {
      model = load(each, fingerprint);
      is_other = is_other || model != nullptr;
    }
    if (model != nullptr) {
      models.push_back(std::move(model));
    }
  }
  is_other = is_other || refusals_ != refusals_before;
  const std::shared_ptr<const ServedModels> now = registry_.now();
  // Later checkpoints of that run are no models of layers, either.
  if (has_program_ && models.empty() && now->models.empty()) {
    throw Failure(kUsage, net::quoted(directory_.string()) +
                              " has the checkpoints of a user's program, and serve computes only "
                              "models of layers");
  }
  if (models.empty()) {
    models = now->models;  // keeps the present models if no other can be served
  }
  if (!models.empty()) {
    said_.clear();
  } else if (refused_.empty()) {
    say_once("waiting for a model: " + net::quoted(directory_.string()) +
             " contains neither checkpoints nor folders named by whole numbers");
  }
  if (is_other || models.size() != now->models.size()) {
    publish(std::move(models));
  }
}

void DirectoryModels::publish(LoadedModels models) {
  std::vector<VersionStatus> refused;
  for (const Refused& each : refused_) {
    refused.push_back(each.status);
  }
  registry_.publish(std::move(models), std::move(refused));
}

}  // namespace disttf::roles
