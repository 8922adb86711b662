// The file that a user names for a result: --output, --metrics_textfile, the target of `cp`.
//
// Where there is none, or a regular file, the result is written beside it and takes its name at the
// end, so that a reader finds the old contents or the new ones, never a part. A link stays: what it
// leads to is replaced. Anything else (a device, a FIFO, what /dev/stdout or /dev/fd leads to) is
// not a file's name to be given away: the result is written into what is there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "data/file_system.h"

namespace disttf::data {

// What a process that reads from a FIFO may do to who writes into it.
enum class OutputReader : std::uint8_t {
  kIsAwaited,  // it is waited for until it has read; there must be one
  kIsNot,      // what it does not take at once is refused
};

// Throws std::system_error with a sentence that names the path; also where it is a FIFO that no
// process reads from.
[[nodiscard]] std::unique_ptr<NewFile> create_output(
    const std::filesystem::path& path, OutputReader reader = OutputReader::kIsAwaited);

// Writes it whole, and durably where it is a regular file. Throws as above.
void write_output_file(const std::filesystem::path& path, std::string_view text,
                       OutputReader reader = OutputReader::kIsAwaited);

}  // namespace disttf::data
