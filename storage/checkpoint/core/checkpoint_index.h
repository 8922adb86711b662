// The index of a checkpoint: which tensors lie in which file, with their checksums, and what else a
// run needs to go on. docs/checkpoint_format.md shows one.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "math/parameter_layout.h"
#include "run/training_state.h"
#include "storage/checkpoint/core/checkpoint_store.h"

namespace disttf::roles {

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";
inline constexpr std::uint64_t kCheckpointFormat = 1;
// An index is read as a whole. With 1000 ps it has 1 MiB, with the facts of a table of a million
// columns 40, with the most and longest variables of a program 210.
inline constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20U;

// A checkpoint, or a part of it, is not as it was written. The text is one sentence with the path.
class DamagedCheckpoint : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CheckpointIndex {
  std::uint64_t step = 0;
  std::string config_json;  // one JSON object
  math::ParameterLayout layout;
  std::vector<std::string> optimizer;  // names of its tensors; empty: it starts from zero
  std::vector<ShardFile> files;        // their ranges are [0, layout.size()), one after the other
  EarlyStopState early_stop_state = {};
  // Of an exported model: on a test set, if known.
  std::optional<double> accuracy = std::nullopt;
};

// What a file holds of one tensor: all of it, or, if a border between two ps cuts it, a part.
struct Piece {
  std::string name;  // "hid_w", "hid_w/m"; a part "hid_w/m:0-512" (floats of the variable)
  std::vector<std::uint64_t> shape;  // the variable's; of a part, its length
  std::size_t tensor = 0;            // 0: the parameters; i: optimizer[i - 1]
  math::Range range;                 // of the parameter vector
};

// Returns everything that a file with this range of the vector holds, in file order: the
// parameters, then the optimizer's tensors. Padding is left out.
[[nodiscard]] std::vector<Piece> pieces_of(const math::ParameterLayout& layout,
                                           std::span<const std::string> optimizer,
                                           math::Range range);

// Returns the text of the index file. Throws std::invalid_argument if config_json is not a JSON
// object. REQUIRES: `index` is as its comments say.
[[nodiscard]] std::string encode_index(const CheckpointIndex& index);

// Reads it back; `path` is for sentences. Throws DamagedCheckpoint, or Failure(kUsage) if the
// format is a later one. Every limit is checked: the result is as the comments above say.
[[nodiscard]] CheckpointIndex parse_index(std::string_view text, const std::filesystem::path& path);

}  // namespace disttf::roles
