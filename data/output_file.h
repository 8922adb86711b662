// An output file that a user names: --output, --metrics_textfile, the target of `cp`.
//
// If the path is absent or a regular file, the result is written to a temporary file beside it and
// renamed at the end, so a reader finds the old or the new contents, never a part. A symbolic link
// stays, and its target is replaced. For anything else (a device, a FIFO, the targets of
// /dev/stdout or /dev/fd) the result is written directly to the existing path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "data/file_system.h"

namespace disttf::data {

// Whether a writer to a FIFO waits for the reader.
enum class OutputReader : std::uint8_t {
  kIsAwaited,  // waits until the reader has read everything; a reader must exist
  kIsNot,      // refuses what the reader does not accept at once
};

// Opens the output. Throws std::system_error with a sentence that names the path, including for a
// FIFO without a reader.
[[nodiscard]] std::unique_ptr<NewFile> create_output(
    const std::filesystem::path& path, OutputReader reader = OutputReader::kIsAwaited);

// Writes the whole text, durably if `path` is a regular file. Throws as above.
void write_output_file(const std::filesystem::path& path, std::string_view text,
                       OutputReader reader = OutputReader::kIsAwaited);

}  // namespace disttf::data
