// The parts of help texts and man pages that several commands share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace disttf {

struct Example {
  const char* line;  // the command line
  const char* what;
};

struct FileText {
  const char* name;
  const char* what;
};

inline constexpr FileText kInputDataFile = {
    "./input_data", "The data set, or your own converted data: --data_dir."};
inline constexpr FileText kCheckpointsFile = {
    "TRAIN_DIR/checkpoint-*",
    "Checkpoints, each a directory of safetensors files with an index; incomplete ones do not "
    "appear."};
inline constexpr FileText kCredentialsFile = {"~/.aws/credentials, ~/.aws/config",
                                              "S3 credentials, in profiles."};
inline constexpr FileText kBestFile = {"TRAIN_DIR/best",
                                       "The best checkpoint of an evaluator with --keep_best."};
inline constexpr FileText kRecordsFile = {"TRAIN_DIR/records/*.jsonl",
                                          "Telemetry of the run, one JSON object a line."};
inline constexpr FileText kEventsFile = {"LOG_DIR/events.out.tfevents.*",
                                         "Summaries for TensorBoard."};
inline constexpr FileText kSocketFile = {"$XDG_RUNTIME_DIR/disttf/launch-*.sock",
                                         "The control socket of a running launch."};
inline constexpr FileText kRunSecretFile = {
    "$XDG_RUNTIME_DIR/disttf/launch-*.secret",
    "The secret of a running launch: the --secret_file of a task that joins."};
inline constexpr FileText kAuthoritiesFile = {
    "/etc/ssl/certs/ca-certificates.crt",
    "The certificate authorities for https downloads, unless --ca_file names others."};
inline constexpr FileText kRecipeFile = {
    "FILE.toml", "Flags, and layers of a model, that --config and --model read."};

// Those that a task reads or writes.
[[nodiscard]] std::vector<FileText> files_of_a_task();

// The kinds of environment variables that a command reads.
enum class Reads : std::uint8_t {
  kCluster,
  kDownloads,
  kStores,
  kTerminal,
  kPath,
  kGpus,
  kRuntime
};

struct VariableText {
  const char* names;  // one, or several that belong together, separated by commas
  Reads read_as;
  const char* what;
};
[[nodiscard]] std::span<const VariableText> variable_texts();

struct ExitText {
  int code;
  const char* what;
};
[[nodiscard]] std::span<const ExitText> exit_texts();

}  // namespace disttf
