// A checkpoint from an untrusted author: its index, a ps's report of a file that it wrote, the
// names in a directory, and a file of tensors with correct checksums, which its author can compute.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "data/checksums.h"
#include "run/outcome.h"
#include "run/run_config.h"
#include "storage/checkpoint/core/checkpoint_index.h"
#include "storage/checkpoint/core/checkpoint_reader.h"
#include "tests/data/simulated_file_system.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::data::test::SimulatedFileSystem;
using disttf::fuzz::require;
using namespace disttf::roles;
using Bytes = std::span<const std::uint8_t>;

// Files of a checkpoint are found by these names, so they must not lead out of its directory.
void require_name_in_folder(const std::string& name) {
  const std::filesystem::path path(name);
  require(!name.empty() && !path.has_parent_path() && name != "." && name != "..");
}

std::string hash_of(Bytes bytes) {
  disttf::data::Sha256 hash;
  hash.update(std::as_bytes(bytes));
  return hash.hex();
}

// Gives the index a correct checksum, which its author can compute.
std::string with_own_hash(std::string text) {
  constexpr std::string_view kBefore = "{\n \"index_sha256\": \"";
  constexpr std::size_t kDigits = 64;
  if (text.starts_with(kBefore) && text.size() > kBefore.size() + kDigits) {
    std::fill_n(text.begin() + kBefore.size(), kDigits, '0');
    const std::string hash =
        hash_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    std::ranges::copy(hash, text.begin() + kBefore.size());
  }
  return text;
}

void check_index(const std::string& text) {
  const CheckpointIndex index = parse_index(with_own_hash(text), "index");
  require(index.layout.size() <= kMaxParameters);
  std::size_t end = 0;
  for (const ShardFile& file : index.files) {
    require_name_in_folder(file.name);
    require(file.range.begin == end && file.range.end >= end);
    end = file.range.end;
    require(file.sha256.size() == pieces_of(index.layout, index.optimizer, file.range).size());
  }
  require(end == index.layout.size());
  const std::string again = encode_index(index);
  require(encode_index(parse_index(again, "index")) == again);
}

void check_shard_file(std::string_view text) {
  const ShardFile file = shard_file_from_json(text);
  require_name_in_folder(file.name);
  require(to_json(shard_file_from_json(to_json(file))) == to_json(file));
}

void check_names(const std::string& text) {
  if (const auto name = checkpoint_name_from(text)) {
    require(to_string(*name) == text);
    require_name_in_folder(text);
  }
  if (const auto id = partial_name_from(text)) {
    require(partial_name(*id) == text);
    require_name_in_folder(text);
  }
}

void write(SimulatedFileSystem& files, const std::string& path, Bytes bytes) {
  disttf::data::write_durably(files, path, std::vector<Bytes>{bytes});
}

// The file itself gives the length of the header, up to its whole size. The tensors follow, if
// their number is right.
void check_tensors(Bytes bytes) {
  CheckpointIndex index{
      .step = 1, .config_json = "{}", .layout = {}, .optimizer = {"m"}, .files = {}};
  index.layout.add("w", {3});
  index.layout.add("b", {2});
  const std::size_t floats = index.layout.size();
  const auto pieces = pieces_of(index.layout, index.optimizer, {.begin = 0, .end = floats});
  std::uint64_t header = 8;
  for (std::size_t i = std::min<std::size_t>(8, bytes.size()); i > 0; --i) {
    header += std::uint64_t{bytes[i - 1]} << (8 * (i - 1));
  }
  const std::size_t begin = std::min<std::uint64_t>(header, bytes.size());
  ShardFile file{.name = "one.safetensors",
                 .range = {.begin = 0, .end = floats},
                 .optimizer = index.optimizer,
                 .size_bytes = bytes.size(),
                 .header_sha256 = hash_of(bytes.first(begin)),
                 .sha256 = {}};
  Bytes rest = bytes.subspan(begin);
  for (const Piece& piece : pieces) {
    const Bytes tensor = rest.first(std::min(rest.size(), piece.range.size() * sizeof(float)));
    file.sha256.push_back(hash_of(tensor));
    rest = rest.subspan(tensor.size());
  }
  index.files.push_back(file);
  SimulatedFileSystem files;
  std::error_code error;
  files.create_directory("c", error);
  const std::string text = encode_index(index);
  write(files, "c/" + std::string(kIndexName),
        {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  write(files, "c/" + file.name, bytes);
  const CheckpointReader reader(files, "c");
  const bool is_whole = reader.check_files().empty() && reader.verify().empty();
  std::optional<TrainingState> state;
  try {
    state = reader.read();
  } catch (const DamagedCheckpoint& damaged) {
    require(*damaged.what() != '\0');
  }
  require(state.has_value() == is_whole);
  if (state) require(state->parameters.size() == floats && state->optimizer.size() == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(data + 1, size - 1);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    switch (data[0] % 4) {
      case 0:
        check_names(text);
        break;
      case 1:
        check_shard_file(text);
        break;
      case 2:
        check_tensors(bytes);
        break;
      default:
        check_index(text);
        break;
    }
  } catch (const DamagedCheckpoint& damaged) {
    require(*damaged.what() != '\0');
  } catch (const Failure& failure) {
    require(failure.exit_code() == kUsage);
  } catch (const std::invalid_argument& refused) {
    require(*refused.what() != '\0');
  }
  return 0;
}
