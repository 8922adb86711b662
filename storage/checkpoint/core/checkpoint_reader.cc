#include "storage/checkpoint/core/checkpoint_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

#include "data/checksums.h"
#include "data/safetensors.h"
#include "math/optimizer.h"
#include "run/run_config.h"

namespace disttf::roles {
namespace {

constexpr std::string_view kNameBegin = "checkpoint-";
constexpr std::string_view kPartialMark = ".partial-";
constexpr std::size_t kStepDigits = 8;  // at least, so that names sort like numbers
constexpr std::size_t kAttemptDigits = 16;
// Bytes read and hashed at a time: large enough to hide the cost of calls, small enough for the
// cache.
constexpr std::size_t kChunkBytes = std::size_t{1} << 18U;

std::string padded(std::uint64_t value, std::size_t digits, int base) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, base).ptr;
  std::string result(text.data(), end);
  if (result.size() < digits) result.insert(0, digits - result.size(), '0');
  return result;
}

std::uint64_t number_in(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// Reads `bytes` bytes from `offset` on, and calls `use` with each chunk. Reads into `destination`
// unless that is null. Throws DamagedCheckpoint if the file ends too early.
void read_chunks(const data::OpenFile& file, const std::filesystem::path& path,
                 std::uint64_t offset, std::uint64_t bytes, std::byte* destination,
                 const std::function<void(std::span<const std::byte>)>& use) {
  std::vector<std::byte> scratch(destination == nullptr ? kChunkBytes : 0);
  while (bytes > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kChunkBytes));
    std::byte* to = destination == nullptr ? scratch.data() : destination;
    const std::size_t count = file.read(offset, {to, wanted});
    if (count == 0) throw DamagedCheckpoint(path.string() + " is truncated");
    use({to, count});
    offset += count;
    bytes -= count;
    if (destination != nullptr) destination += count;
  }
}

std::string size_problem(const std::filesystem::path& path, std::uint64_t expected,
                         std::uint64_t found) {
  return path.string() + " has " + std::to_string(found) + " bytes, expected " +
         std::to_string(expected);
}

std::string hash_problem(const std::string& what, const std::string& expected,
                         const std::string& found) {
  return what + " is damaged: its SHA-256 is " + found + ", expected " + expected;
}

// Returns the header of a file whose size is right, checked against the index.
data::SafetensorsHeader read_header(const data::OpenFile& opened, const std::filesystem::path& path,
                                    const ShardFile& file, std::span<const Piece> pieces) {
  std::string detail;
  std::size_t size = 0;
  const auto check = [&](std::error_code error) {
    if (error) throw DamagedCheckpoint(path.string() + ": " + error.message() + ": " + detail);
  };
  const auto first_bytes = [&opened](std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    bytes.resize(opened.read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  };
  check(data::safetensors_header_size(first_bytes(data::kSafetensorsSizeBytes), file.size_bytes,
                                      size, detail));
  const auto bytes = first_bytes(size);
  if (const auto hash = data::sha256_hex(std::as_bytes(std::span(bytes)));
      hash != file.header_sha256) {
    throw DamagedCheckpoint(
        hash_problem("the header of " + path.string(), file.header_sha256, hash));
  }
  data::SafetensorsHeader header;
  check(data::parse_safetensors(bytes, file.size_bytes, header, detail));
  const auto is_same = [](const data::SafetensorsEntry& entry, const Piece& piece) {
    return entry.name == piece.name && entry.shape == piece.shape;
  };
  // The header has the offsets and the index the checksums, so both must list the same tensors.
  if (!std::ranges::equal(header.tensors, pieces, is_same)) {
    throw DamagedCheckpoint(path.string() + " holds other tensors than the index says");
  }
  return header;
}

}  // namespace

bool is_away(const std::error_code& error) noexcept {
  return error == std::errc::resource_unavailable_try_again;
}

std::string to_string(const CheckpointName& name) {
  return std::string(kNameBegin) + padded(name.step, kStepDigits, 10) +
         (name.revision > 1 ? "-" + std::to_string(name.revision) : "");
}

std::optional<CheckpointName> checkpoint_name_from(std::string_view text) {
  if (!text.starts_with(kNameBegin)) return std::nullopt;
  const std::string_view rest = text.substr(kNameBegin.size());
  const std::size_t dash = rest.find('-');
  CheckpointName name{.step = number_in(rest)};
  if (dash != std::string_view::npos) name.revision = number_in(rest.substr(dash + 1));
  // Formatted again and compared: only names that disttf writes are accepted.
  if (to_string(name) != text || name.step > kMaxCount || name.revision > kMaxCount) {
    return std::nullopt;
  }
  return name;
}

std::string partial_name(const SaveId& id) {
  return to_string(CheckpointName{.step = id.step}) + std::string(kPartialMark) +
         padded(id.attempt, kAttemptDigits, 16);
}

std::optional<SaveId> partial_name_from(std::string_view text) {
  const std::size_t mark = text.find(kPartialMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const auto name = checkpoint_name_from(text.substr(0, mark));
  if (!name) return std::nullopt;
  const SaveId id{.step = name->step,
                  .attempt = number_in(text.substr(mark + kPartialMark.size()), 16)};
  return partial_name(id) == text ? std::optional(id) : std::nullopt;
}

std::vector<CheckpointName> checkpoints_in(data::FileSystem& files,
                                           const std::filesystem::path& directory) {
  std::vector<CheckpointName> names;
  std::error_code error;
  for (const std::string& text : files.names_in(directory, error)) {
    if (const auto name = checkpoint_name_from(text)) names.push_back(*name);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    // A directory that does not exist yet has no checkpoints. Any other error must not look like
    // that: the run would start anew.
    throw std::system_error(error, "cannot read " + directory.string());
  }
  std::ranges::sort(names, std::ranges::greater{});
  return names;
}

CheckpointReader::CheckpointReader(data::FileSystem& files, std::filesystem::path path)
    : files_(files), path_(std::move(path)) {
  const auto file = path_ / kIndexName;
  // The limit bounds the memory that a damaged or foreign file takes.
  const auto bytes = data::read_file(files_, file, kMaxIndexBytes);
  index_ = parse_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

std::uint64_t CheckpointReader::size_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const ShardFile& file : index_.files) sum += file.size_bytes;
  return sum;
}

std::vector<std::string> CheckpointReader::check_files() const {
  std::vector<std::string> problems;
  for (const ShardFile& file : index_.files) {
    const auto path = path_ / file.name;
    std::error_code error;
    const std::uint64_t size = files_.size_of(path, error);
    // An unavailable store is not a damaged checkpoint: the caller may wait for it.
    if (is_away(error)) {
      throw std::system_error(error, "cannot read " + path.string());
    }
    if (error) {
      problems.push_back("cannot read " + path.string() + ": " + error.message());
    } else if (size != file.size_bytes) {
      problems.push_back(size_problem(path, file.size_bytes, size));
    }
  }
  return problems;
}

void CheckpointReader::read_file(const ShardFile& file, TrainingState* state,
                                 std::vector<std::string>& problems) const {
  const auto path = path_ / file.name;
  const std::vector<Piece> pieces = pieces_of(index_.layout, index_.optimizer, file.range);
  try {
    const std::unique_ptr<data::OpenFile> opened = files_.open(path);
    // Before the header is read: its offsets are checked against this size.
    if (const auto found = opened->size_bytes(); found != file.size_bytes) {
      throw DamagedCheckpoint(size_problem(path, file.size_bytes, found));
    }
    const data::SafetensorsHeader header = read_header(*opened, path, file, pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      std::byte* destination = nullptr;
      if (state != nullptr) {
        auto& values =
            piece.tensor == 0 ? state->parameters : state->optimizer[piece.tensor - 1].values;
        destination = std::as_writable_bytes(values.span().subspan(piece.range.begin)).data();
      }
      data::Sha256 hash;
      read_chunks(*opened, path, header.tensors[i].begin_bytes, header.tensors[i].size_bytes,
                  destination, [&hash](std::span<const std::byte> chunk) { hash.update(chunk); });
      if (const auto found = hash.hex(); found != file.sha256[i]) {
        problems.push_back(
            hash_problem(piece.name + " in " + path.string(), file.sha256[i], found));
      }
    }
  } catch (const DamagedCheckpoint& damaged) {
    problems.emplace_back(damaged.what());
  } catch (const std::system_error& error) {
    // The caller may wait for the store, or give up; it must not take the checkpoint for damaged.
    if (is_away(error.code())) throw;
    problems.emplace_back(error.what());
  }
}

std::vector<std::string> CheckpointReader::verify() const {
  std::vector<std::string> problems;
  for (const ShardFile& file : index_.files) read_file(file, nullptr, problems);
  return problems;
}

TrainingState CheckpointReader::read() const {
  // First, because it bounds the memory by what is on the disk.
  std::vector<std::string> problems = check_files();
  if (!problems.empty()) throw DamagedCheckpoint(problems.front());
  TrainingState state{.step = index_.step,
                      .parameters = math::AlignedVector(index_.layout.size()),
                      .optimizer = {},
                      .early_stop_state = index_.early_stop_state};
  for (const std::string& name : index_.optimizer) {
    state.optimizer.push_back({.name = name, .values = math::AlignedVector(index_.layout.size())});
    // Files contain no padding, which keeps its initial value.
    std::ranges::fill(state.optimizer.back().values.span(), math::initial_state_value(name));
  }
  for (const ShardFile& file : index_.files) {
    read_file(file, &state, problems);
    if (!problems.empty()) throw DamagedCheckpoint(problems.front());
  }
  return state;
}

}  // namespace disttf::roles
