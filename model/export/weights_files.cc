#include "model/export/weights_files.h"

#include <array>
#include <cstdint>
#include <span>
#include <system_error>

#include "data/checksums.h"
#include "data/own/npy.h"
#include "data/safetensors.h"
#include "data/zip.h"
#include "run/outcome.h"
#include "storage/checkpoint/core/checkpoint_index.h"

namespace disttf::roles {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr const char* kWeightsName = "model-00001-of-00001.safetensors";

// The variables in the layout's order. Borrows from `model`.
std::vector<data::SafetensorsTensor> tensors_of(const TrainedModel& model,
                                                const math::ParameterLayout& layout) {
  std::vector<data::SafetensorsTensor> tensors;
  for (const math::Variable& variable : layout.variables()) {
    tensors.push_back({.name = variable.name,
                       .shape = {variable.shape.begin(), variable.shape.end()},
                       .values = model.parameters.span().subspan(variable.offset, variable.size)});
  }
  return tensors;
}

std::string joined(std::span<const Bytes> parts) {
  std::string file;
  for (const Bytes& part : parts) {
    file.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return file;
}

}  // namespace

std::string safetensors_model(const TrainedModel& model, const ModelFacts& facts,
                              std::size_t most_header_bytes) {
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  const auto tensors = tensors_of(model, layout);
  const auto header = data::encode_safetensors_header(facts, tensors);
  if (header.size() > most_header_bytes) {
    throw Failure(kUsage, "--format: \"safetensors\" has at most " +
                              std::to_string(most_header_bytes) +
                              " bytes of metadata, and this model has " +
                              std::to_string(header.size()) + "; use disttf");
  }
  return joined(data::safetensors_parts(header, tensors));
}

std::string npz_model(const TrainedModel& model, const ModelFacts& facts) {
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  if (layout.size() > data::kMostStoredBytes / (2 * sizeof(float))) {
    throw Failure(kUsage, "--format: \"npz\" holds at most 2 GiB, and the model has " +
                              std::to_string(layout.parameter_count()) +
                              " parameters; use disttf or safetensors");
  }
  std::vector<std::string> headers;
  // The members hold views of these strings, which must not move.
  headers.reserve(layout.variables().size());
  std::vector<data::StoredMember> members;
  for (const math::Variable& variable : layout.variables()) {
    headers.push_back(data::encode_npy_header(variable.shape));
    const auto values = model.parameters.span().subspan(variable.offset, variable.size);
    members.push_back(
        {.name = variable.name + ".npy",
         .parts = {data::bytes_in(headers.back()),
                   {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()}}});
  }
  // Lives until stored_zip() has copied it: the member is a view.
  const std::string json = to_json(facts);
  members.push_back({.name = "disttf.json", .parts = {data::bytes_in(json)}});
  return data::stored_zip(members);
}

DirectoryFiles disttf_model(const TrainedModel& model) {
  const math::ParameterLayout layout = math::layout_of(model.config.model);
  const auto tensors = tensors_of(model, layout);
  const auto header = data::encode_safetensors_header(
      {{"disttf_format", std::to_string(kCheckpointFormat)}, {"step", std::to_string(model.step)}},
      tensors);
  std::string weights = joined(data::safetensors_parts(header, tensors));
  ShardFile file{.name = kWeightsName,
                 .range = {.begin = 0, .end = layout.size()},
                 .optimizer = {},
                 .size_bytes = weights.size(),
                 .header_sha256 = data::sha256_hex(std::as_bytes(std::span(header))),
                 .sha256 = {}};
  for (const data::SafetensorsTensor& tensor : tensors) {
    file.sha256.push_back(data::sha256_hex(std::as_bytes(tensor.values)));
  }
  std::string index = encode_index({.step = model.step,
                                    .config_json = to_saved_json(model.config),
                                    .layout = layout,
                                    .optimizer = {},
                                    .files = {std::move(file)},
                                    .accuracy = model.accuracy});
  // The index last: it marks a complete checkpoint, and check_output() recognizes the export by it.
  return {{kWeightsName, std::move(weights)}, {std::string(kIndexName), std::move(index)}};
}

namespace {

using Path = std::filesystem::path;

Path parent_of(const Path& directory) {
  return directory.has_parent_path() ? directory.parent_path() : Path(".");
}

Path beside(const Path& directory, const std::string& mark) {
  return parent_of(directory) / (directory.filename().string() + ".disttf-" + mark);
}

void rename_or_throw(data::FileSystem& files, const Path& from, const Path& to) {
  if (const std::error_code error = files.rename(from, to)) {
    throw std::system_error(error, "cannot rename " + from.string() + " to " + to.string());
  }
}

void write_contents(data::FileSystem& files, const Path& directory,
                    const DirectoryFiles& contents) {
  data::create_directories(files, directory);
  for (const auto& [name, text] : contents) {
    const Path path = directory / name;
    data::create_directories(files, path.parent_path());
    data::write_durably(files, path, std::array{data::bytes_in(text)});
  }
  // After the files: their names in the directory must be on the disk before it is renamed.
  files.sync_directory(directory);
}

}  // namespace

void write_directory(data::FileSystem& files, const Path& directory, const DirectoryFiles& contents,
                     const std::string& mark, bool replaces) {
  const Path partial = beside(directory, mark);
  const Path old = beside(directory, mark + "-old");
  bool is_moved = false;
  try {
    write_contents(files, partial, contents);
    if (replaces) {
      // rename() cannot replace a directory that is not empty, so the old one moves away first.
      rename_or_throw(files, directory, old);
      is_moved = true;
    }
    rename_or_throw(files, partial, directory);
  } catch (...) {
    if (is_moved) {
      // Best effort: the error that is reported is the one that led here.
      static_cast<void>(files.rename(old, directory));
    }
    static_cast<void>(data::remove_all(files, partial));
    throw;
  }
  // Makes the new name durable before the old files are removed: a power cut leaves one of them.
  files.sync_directory(parent_of(directory));
  if (is_moved) {
    // The export is complete; files that remain only take space.
    static_cast<void>(data::remove_all(files, old));
  }
}

}  // namespace disttf::roles
