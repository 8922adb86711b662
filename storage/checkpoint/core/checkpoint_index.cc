#include "storage/checkpoint/core/checkpoint_index.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/checksums.h"
#include "data/json/json_text.h"
#include "math/program_layout.h"
#include "run/outcome.h"
#include "run/run_config.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::json;

// The file begins with its own checksum: the SHA-256 of the file with 64 zeros in this place.
constexpr std::string_view kSelfKey = "{\n \"index_sha256\": \"";
constexpr std::size_t kHexDigits = 64;
constexpr int kIndent = 1;
// The configuration is a flat object with lists; this is twice the depth that it has.
constexpr std::size_t kDeepest = 8;
// Bounds on what a damaged or foreign file makes a reader allocate.
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxOptimizerTensors = 16;

void require(bool condition, const std::string& what) {
  if (!condition) throw std::invalid_argument(what);
}

std::string self_hash(std::string text) {
  std::fill_n(text.begin() + kSelfKey.size(), kHexDigits, '0');
  return data::sha256_hex(std::as_bytes(std::span(text)));
}

bool is_hash(std::string_view text) {
  return text.size() == kHexDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Variables have the names that a user's program gives them: they are shown, and become no paths.
std::string variable_name_from(const Json& json) {
  auto name = json.get<std::string>();
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  require(!name.empty() && name.size() <= math::kMaxVariableNameBytes &&
              std::ranges::all_of(name, is_plain),
          "a variable's name is not made of printable characters");
  return name;
}

// Names are shown in sentences and tables, and those of files become paths.
std::string name_from(const Json& json) {
  auto name = json.get<std::string>();
  const auto is_plain = [](char c) { return c > ' ' && c <= '~' && c != '/' && c != ':'; };
  require(!name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
              std::ranges::all_of(name, is_plain),
          "a name is not made of letters, digits and signs");
  return name;
}

std::uint64_t count_from(const Json& json) {
  require(json.is_number_unsigned(), "a number is not a whole one");
  const auto count = json.get<std::uint64_t>();
  require(count <= kMaxCount, "a number is larger than any can be");
  return count;
}

std::string hash_from(const Json& json) {
  auto hash = json.get<std::string>();
  require(is_hash(hash), "a checksum is not 64 hex digits");
  return hash;
}

std::vector<std::string> optimizer_from(const Json& json) {
  require(json.is_array() && json.size() <= kMaxOptimizerTensors, "the optimizer is no short list");
  std::vector<std::string> names;
  for (const Json& name : json) names.push_back(name_from(name));
  return names;
}

// Describes a file without its content.
Json file_to_json(const ShardFile& file) {
  return {{"name", file.name},
          {"range", {file.range.begin, file.range.end}},
          {"size_bytes", file.size_bytes},
          {"header_sha256", file.header_sha256}};
}

ShardFile file_from(const Json& json) {
  ShardFile file{.name = name_from(json.at("name")),
                 .range = {.begin = count_from(json.at("range").at(0)),
                           .end = count_from(json.at("range").at(1))},
                 .optimizer = {},
                 .size_bytes = count_from(json.at("size_bytes")),
                 .header_sha256 = hash_from(json.at("header_sha256")),
                 .sha256 = {}};
  // Before anything computes the size of the range, which would underflow.
  require(file.range.begin <= file.range.end, "a range ends before it begins");
  return file;
}

math::ParameterLayout layout_from(const Json& json) {
  require(json.is_array() && json.size() <= math::kMaxProgramVariables,
          "the variables are no list");
  math::ParameterLayout layout;
  for (const Json& variable : json) {
    std::vector<std::size_t> shape;
    std::size_t size = 1;
    const Json& lengths = variable.at("shape");
    require(lengths.is_array() && lengths.size() <= math::kMaxDimensions, "a shape is no list");
    for (const Json& length : lengths) {
      shape.push_back(count_from(length));
      // A division, since the product could overflow.
      require(shape.back() >= 1 && shape.back() <= kMaxParameters / size,
              "a variable is empty or larger than any can be");
      size *= shape.back();
    }
    layout.add(variable_name_from(variable.at("name")), std::move(shape));
    require(layout.size() <= kMaxParameters, "the model is larger than any can be");
  }
  return layout;
}

Json layout_to_json(const math::ParameterLayout& layout) {
  Json json = Json::array();
  for (const math::Variable& variable : layout.variables()) {
    json.push_back({{"name", variable.name}, {"shape", variable.shape}});
  }
  return json;
}

// Both keys are present only if they differ from the default.
EarlyStopState early_stop_state_from(const Json& json) {
  EarlyStopState end{.best = {},
                     .step = json.value("ended", false) ? count_from(json.at("step")) : 0};
  if (const auto found = json.find("best_evaluation"); found != json.end()) {
    end.best = {.step = count_from(found->at("step")), .loss = found->at("loss").get<double>()};
    require(std::isfinite(end.best.loss), "a loss is no number");
  }
  return end;
}

std::optional<double> accuracy_from(const Json& json) {
  const auto found = json.find("accuracy");
  if (found == json.end()) return std::nullopt;
  const auto accuracy = found->get<double>();
  require(accuracy >= 0 && accuracy <= 1, "an accuracy is not from 0 to 1");
  return accuracy;
}

CheckpointIndex index_from(const Json& json) {
  CheckpointIndex index{.step = count_from(json.at("step")),
                        .config_json = data::json_text(json.at("configuration")),
                        .layout = layout_from(json.at("variables")),
                        .optimizer = optimizer_from(json.at("optimizer")),
                        .files = {},
                        .early_stop_state = early_stop_state_from(json),
                        .accuracy = accuracy_from(json)};
  std::size_t end = 0;
  for (const Json& entry : json.at("files")) {
    ShardFile file = file_from(entry);
    require(file.range.begin == end && file.range.end <= index.layout.size(),
            "the files do not hold ranges one after the other");
    end = file.range.end;
    // A reader sizes its memory by the model, and counts each file on the disk for its own range.
    require(std::ranges::find(index.files, file.name, &ShardFile::name) == index.files.end(),
            "two ranges are in one file");
    file.optimizer = index.optimizer;
    std::uint64_t tensor_bytes = 0;
    // The sizes bound the memory that a reader allocates.
    for (const Piece& piece : pieces_of(index.layout, index.optimizer, file.range)) {
      file.sha256.push_back(hash_from(json.at("sha256").at(piece.name)));
      tensor_bytes += piece.range.size() * sizeof(float);
    }
    require(file.size_bytes > tensor_bytes, "a file is smaller than what lies in it");
    index.files.push_back(std::move(file));
  }
  require(end == index.layout.size(), "the files do not hold the whole model");
  return index;
}

}  // namespace

std::string to_json(const ShardFile& file) {
  Json json = file_to_json(file);
  json["optimizer"] = file.optimizer;
  json["sha256"] = file.sha256;
  return data::json_text(json);
}

ShardFile shard_file_from_json(std::string_view text) {
  try {
    const Json json = data::parse_json(text);
    ShardFile file = file_from(json);
    file.optimizer = optimizer_from(json.at("optimizer"));
    for (const Json& hash : json.at("sha256")) file.sha256.push_back(hash_from(hash));
    return file;
  } catch (const Json::exception&) {
    throw std::invalid_argument("the description of a checkpoint's file lacks a field");
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("in the description of a checkpoint's file ") +
                                error.what());
  }
}

std::vector<Piece> pieces_of(const math::ParameterLayout& layout,
                             std::span<const std::string> optimizer, math::Range range) {
  std::vector<Piece> pieces;
  // Tensor 0 is the parameters. The order is that of the data in a file, which both sides derive
  // from here.
  for (std::size_t tensor = 0; tensor <= optimizer.size(); ++tensor) {
    for (const math::Variable& variable : layout.variables()) {
      const std::size_t begin = std::max(range.begin, variable.offset);
      const std::size_t end = std::min(range.end, variable.offset + variable.size);
      if (begin >= end) continue;
      Piece piece{.name = variable.name,
                  .shape = {variable.shape.begin(), variable.shape.end()},
                  .tensor = tensor,
                  .range = {begin, end}};
      if (tensor > 0) piece.name += "/" + optimizer[tensor - 1];
      // A variable that a range cuts has no shape in a file: its part is a row of floats, and its
      // name gives the offsets.
      if (end - begin < variable.size) {
        piece.name += ":" + std::to_string(begin - variable.offset) + "-" +
                      std::to_string(end - variable.offset);
        piece.shape = {end - begin};
      }
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

std::string encode_index(const CheckpointIndex& index) {
  Json config = data::parse_json(index.config_json, kDeepest);
  require(config.is_object(), "the configuration of a checkpoint is no JSON object");
  Json files = Json::array();
  Json weight_map = Json::object();
  Json hashes = Json::object();
  std::uint64_t total_bytes = 0;
  for (const ShardFile& file : index.files) {
    files.push_back(file_to_json(file));
    // pieces_of() has the order in which the writer has hashed them.
    auto hash = file.sha256.begin();
    for (const Piece& piece : pieces_of(index.layout, index.optimizer, file.range)) {
      weight_map[piece.name] = file.name;
      hashes[piece.name] = *hash++;
      total_bytes += piece.range.size() * sizeof(float);
    }
  }
  Json own = {{"format", kCheckpointFormat}, {"step", index.step}, {"optimizer", index.optimizer}};
  if (config.contains("seed")) own["seed"] = config["seed"];
  own["configuration"] = std::move(config);  // a list would copy it
  own["variables"] = layout_to_json(index.layout);
  own["files"] = std::move(files);
  own["sha256"] = std::move(hashes);
  if (const BestEvaluation& best = index.early_stop_state.best; best.step != 0) {
    own["best_evaluation"] = {{"step", best.step}, {"loss", best.loss}};
  }
  if (index.accuracy) own["accuracy"] = *index.accuracy;
  // (The previous evaluation of the end may be written after the run has ended.)
  if (index.step != 0 && index.early_stop_state.step == index.step) own["ended"] = true;
  // Readers of Hugging Face's sharded models need these two; disttf reads only "disttf".
  Json rest = {{"metadata", {{"total_size", total_bytes}}}};
  rest["weight_map"] = std::move(weight_map);
  rest["disttf"] = std::move(own);
  std::string text = std::string(kSelfKey) + std::string(kHexDigits, '0') + "\"," +
                     data::json_text(rest, {.indent = kIndent}).substr(1) + "\n";
  // The checksum covers the whole file, including itself as zeros.
  text.replace(kSelfKey.size(), kHexDigits, self_hash(text));
  return text;
}

CheckpointIndex parse_index(std::string_view text, const std::filesystem::path& path) {
  const auto hash = text.substr(std::min(text.size(), kSelfKey.size()), kHexDigits);
  if (!text.starts_with(kSelfKey) || hash.size() < kHexDigits) {
    throw DamagedCheckpoint(path.string() + " does not begin as an index of disttf's does");
  }
  // Before the text is parsed, so that a flipped bit is reported as damage and not as a syntax
  // error.
  if (const std::string actual = self_hash(std::string(text)); actual != hash) {
    throw DamagedCheckpoint(path.string() + " is damaged: its SHA-256 is " + actual +
                            ", expected the " + (is_hash(hash) ? std::string(hash) : "other") +
                            " that it begins with");
  }
  try {
    // The parser recurses as deep as the text is nested.
    require(data::json_depth(text) <= kDeepest, "it is nested too deep");
    const Json whole = data::parse_json(text);
    require(whole.is_object(), "it is no JSON object");
    const Json& json = whole.at("disttf");
    // The format comes first: the other fields may differ in another one.
    const std::uint64_t format = count_from(json.at("format"));
    // Not reported as damaged: readers would skip it and lose the run's progress.
    if (format != kCheckpointFormat) {
      throw Failure(kUsage, path.string() + " has format " + std::to_string(format) +
                                ", this version of disttf reads " +
                                std::to_string(kCheckpointFormat) +
                                "; use the version that wrote it, or another directory");
    }
    return index_from(json);
  } catch (const Json::exception& error) {
    throw DamagedCheckpoint(path.string() + " lacks what an index has: " + error.what());
  } catch (const std::invalid_argument& error) {
    throw DamagedCheckpoint(path.string() + " is no index: " + error.what());
  }
}

}  // namespace disttf::roles
