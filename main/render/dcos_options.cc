#include "main/render/dcos_options.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/json/json_text.h"
#include "main/render/deployment.h"
#include "net/wire/text.h"

namespace disttf::render {
namespace {

using PlainJson = nlohmann::json;  // the order of keys does not matter here

enum class Type : std::uint8_t { kText, kWhole, kNumber, kBoolean };

// One row of the package's schema.
struct Option {
  const char* path;
  Type type;
  const char* fallback;         // as JSON; nullptr: none
  bool is_used = false;         // by disttf
  const char* words = nullptr;  // the allowed texts, separated by spaces; nullptr: any
};

constexpr const char* kDiskTypes = "ROOT MOUNT";

// Universe's beta-tensorflow, version 0.2.0-1.5.0-beta.
constexpr std::array kOptions = {
    Option{"service.name", Type::kText, R"("tensorflow")", true},
    Option{"service.user", Type::kText, R"("nobody")", true},
    Option{"service.service_account", Type::kText, R"("")"},
    Option{"service.service_account_secret", Type::kText, R"("")"},
    Option{"service.virtual_network_enabled", Type::kBoolean, "false", true},
    Option{"service.virtual_network_name", Type::kText, R"("dcos")", true},
    Option{"service.virtual_network_plugin_labels", Type::kText, R"("")"},
    Option{"service.mesos_api_version", Type::kText, R"("V1")", false, "V0 V1"},
    Option{"service.log_level", Type::kText, R"("INFO")", false,
           "OFF FATAL ERROR WARN INFO DEBUG TRACE ALL"},
    Option{"service.security.kerberos.enabled", Type::kBoolean, "false", true},
    Option{"service.security.kerberos.kdc.hostname", Type::kText, nullptr},
    Option{"service.security.kerberos.kdc.port", Type::kWhole, nullptr},
    Option{"service.security.kerberos.primary", Type::kText, R"("tensorflow")"},
    Option{"service.security.kerberos.realm", Type::kText, nullptr},
    Option{"service.security.kerberos.keytab_secret", Type::kText, nullptr},
    Option{"service.security.kerberos.debug", Type::kBoolean, "false"},
    Option{"service.job_url", Type::kText, R"("")"},
    Option{"service.job_path", Type::kText, R"("")"},
    Option{"service.job_name", Type::kText, R"("")"},
    Option{"service.job_context", Type::kText, R"("{}")", true},
    Option{"service.shared_filesystem", Type::kText, R"("")", true},
    Option{"service.hdfs.config_uri", Type::kText, R"("")"},
    Option{"service.gcs_key", Type::kText, R"("")"},
    Option{"service.use_gcs_key_secret", Type::kBoolean, "false"},
    Option{"service.use_tensorboard", Type::kBoolean, "false", true},
    Option{"service.tf_image", Type::kText, R"("mesosphere/dcos-tensorflow:0.0.3-1.5.0")"},
    Option{"service.gpu_tf_image", Type::kText, R"("mesosphere/dcos-tensorflow:0.0.3-1.5.0-gpu")"},
    Option{"service.region", Type::kText, R"("")"},
    Option{"parameter_server.count", Type::kWhole, "2", true},
    Option{"parameter_server.placement_constraint", Type::kText, R"("[]")", true},
    Option{"parameter_server.port", Type::kWhole, "2223", true},
    Option{"parameter_server.cpus", Type::kNumber, "1.0", true},
    Option{"parameter_server.mem", Type::kWhole, "4096", true},
    Option{"parameter_server.disk", Type::kWhole, "4096"},
    Option{"parameter_server.disk_type", Type::kText, R"("ROOT")", false, kDiskTypes},
    Option{"worker.count", Type::kWhole, "3", true},
    Option{"worker.placement_constraint", Type::kText, R"("[]")", true},
    Option{"worker.port", Type::kWhole, "2222", true},
    Option{"worker.cpus", Type::kNumber, "1.0", true},
    Option{"worker.mem", Type::kWhole, "4096", true},
    Option{"worker.disk", Type::kWhole, "4096"},
    Option{"worker.disk_type", Type::kText, R"("ROOT")", false, kDiskTypes},
    Option{"gpu_worker.count", Type::kWhole, "0", true},
    Option{"gpu_worker.gpus", Type::kWhole, "1", true},
    Option{"gpu_worker.cpus", Type::kNumber, "1.0", true},
    Option{"gpu_worker.mem", Type::kWhole, "4096", true},
    Option{"gpu_worker.disk", Type::kWhole, "4096"},
    Option{"gpu_worker.disk_type", Type::kText, R"("ROOT")", false, kDiskTypes},
    Option{"tensorboard.port", Type::kWhole, "6006", true},
    Option{"tensorboard.cpus", Type::kNumber, "1.0", true},
    Option{"tensorboard.mem", Type::kWhole, "4096", true},
};

[[noreturn]] void fail(const std::string& sentence) {
  throw std::invalid_argument("--options: " + sentence);
}

// A value for messages: texts in quotes; lists and maps only by kind, as they can be deep.
std::string shown(const PlainJson& value) {
  if (value.is_string()) {
    return net::quoted(value.get_ref<const std::string&>());
  }
  return value.is_array() ? "a list" : value.is_object() ? "a map" : data::json_text(value);
}

[[noreturn]] void refuse_option(const std::string& path, const PlainJson& value,
                                const std::string& expected) {
  fail(path + " is " + shown(value) + "; expected " + expected);
}

PlainJson parse(const std::string& what, std::string_view text) {
  PlainJson parsed = data::parse_json(text);
  if (!parsed.is_object() && !parsed.is_array()) {
    fail(what + " is not valid JSON: " + net::quoted(text));
  }
  return parsed;
}

std::string type_text(Type type) {
  switch (type) {
    case Type::kText:
      return "text";
    case Type::kWhole:
      return "a whole number";
    case Type::kNumber:
      return "a number";
    case Type::kBoolean:
      break;
  }
  return "true or false";
}

void check_value(const Option& option, const PlainJson& value) {
  const bool is_right = option.type == Type::kText     ? value.is_string()
                        : option.type == Type::kWhole  ? value.is_number_integer()
                        : option.type == Type::kNumber ? value.is_number()
                                                       : value.is_boolean();
  if (!is_right) {
    refuse_option(option.path, value, type_text(option.type));
  }
  if (option.words != nullptr) {
    const std::string words = " " + std::string(option.words) + " ";
    const auto& text = value.get_ref<const std::string&>();
    // The words are searched in one text, where "" and "V0 V1" would be found, too.
    if (text.empty() || text.find(' ') != std::string::npos ||
        words.find(" " + text + " ") == std::string::npos) {
      refuse_option(option.path, value, std::string("one of ") + option.words);
    }
  }
}

// "service.name" -> "/service/name"
PlainJson::json_pointer pointer(const std::string& path) {
  std::string text = "/" + path;
  std::replace(text.begin(), text.end(), '.', '/');
  return PlainJson::json_pointer(text);
}

bool is_section(const std::string& path) {
  return std::any_of(kOptions.begin(), kOptions.end(), [&path](const Option& option) {
    return std::string_view(option.path).starts_with(path + ".");
  });
}

// Copies the options of `given` into `merged`. Recurses as deep as the schema, four levels.
void merge(const PlainJson& given, const std::string& prefix, PlainJson& merged) {
  for (const auto& [key, value] : given.items()) {
    const std::string path = prefix + key;
    const auto option = std::find_if(kOptions.begin(), kOptions.end(),
                                     [&path](const Option& each) { return path == each.path; });
    // An unknown option is an error: a misspelled one must not train with its default.
    if (option != kOptions.end()) {
      check_value(*option, value);
      merged[pointer(path)] = value;
    } else if (!is_section(path)) {
      fail(net::quoted(path) + " is not an option of the TensorFlow package");
    } else if (!value.is_object()) {
      refuse_option(path, value, "a map of options");
    } else {
      merge(value, path + ".", merged);
    }
  }
}

// Typed access to the merged options.
class Merged {
 public:
  explicit Merged(const PlainJson& merged) : merged_(merged) {}

  [[nodiscard]] const PlainJson& at(const std::string& path) const {
    return merged_[pointer(path)];
  }
  [[nodiscard]] std::string text(const std::string& path) const { return at(path); }
  [[nodiscard]] bool is_true(const std::string& path) const { return at(path); }
  [[nodiscard]] std::uint64_t whole(const std::string& path, std::uint64_t least,
                                    std::uint64_t most) const {
    // is_number_unsigned() excludes negative numbers, which get() would convert to huge ones.
    const PlainJson& value = at(path);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
        value.get<std::uint64_t>() > most) {
      refuse_option(path, value,
                    "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }
  // Of the same range as --cpus, whose place the value takes.
  [[nodiscard]] double cpus(const std::string& path) const {
    const PlainJson& value = at(path);
    if (value < kLeastCpus || value > kMostCpus) {
      refuse_option(path, value,
                    "a number from " + cpus_text(kLeastCpus) + " to " + cpus_text(kMostCpus));
    }
    return value;
  }

 private:
  const PlainJson& merged_;
};

// Reads [["hostname", "UNIQUE"]] or hostname:UNIQUE.
std::vector<std::string> placement(const Merged& merged, const std::string& path) {
  const std::string text = merged.text(path);
  if (!text.starts_with("[")) {
    return text.empty() ? std::vector<std::string>{} : std::vector<std::string>{text};
  }
  std::vector<std::string> found;
  for (const PlainJson& entry : parse(path, text)) {
    std::string joined;
    bool is_list = entry.is_array() && !entry.empty();
    for (const PlainJson& part : entry) {
      is_list = is_list && part.is_string();
      if (is_list) {
        joined += (joined.empty() ? "" : ":") + part.get_ref<const std::string&>();
      }
    }
    if (!is_list) {
      refuse_option(path, merged.at(path), R"(lists of texts, as in [["hostname", "UNIQUE"]])");
    }
    found.push_back(joined);
  }
  return found;
}

constexpr std::uint64_t kMostMemoryMib = 1U << 24U;

std::uint16_t read_port(const Merged& merged, const std::string& path) {
  return static_cast<std::uint16_t>(merged.whole(path, 1, 65535));
}

DcosTensorBoard read_tensorboard(const Merged& merged) {
  return {.port = read_port(merged, "tensorboard.port"),
          .cpus = merged.cpus("tensorboard.cpus"),
          .memory_mib = merged.whole("tensorboard.mem", 1, kMostMemoryMib)};
}

DcosTasks read_tasks(const Merged& merged, const std::string& section) {
  constexpr std::uint64_t kMostTasks = 1000;
  return {.count = merged.whole(section + ".count", 1, kMostTasks),
          .port = read_port(merged, section + ".port"),
          .cpus = merged.cpus(section + ".cpus"),
          .memory_mib = merged.whole(section + ".mem", 1, kMostMemoryMib),
          .placement = placement(merged, section + ".placement_constraint")};
}

std::string flag_value(const std::string& key, const PlainJson& value) {
  if (value.is_string()) {
    return value;
  }
  if (value.is_number() || value.is_boolean()) {
    return data::json_text(value);
  }
  std::string joined;
  for (const PlainJson& part : value) {
    if (!part.is_number() || !value.is_array()) {
      joined.clear();
      break;
    }
    joined += (joined.empty() ? "" : ",") + data::json_text(part);
  }
  if (joined.empty()) {
    fail("service.job_context has " + shown(value) + " for " + net::quoted(key) +
         "; expected the value of a training flag");
  }
  return joined;
}

PlainJson read_context(const Merged& merged, DcosTrains trains) {
  const std::string path = "service.job_context";
  const std::string text = merged.text(path);
  const PlainJson context = text.empty() ? PlainJson::object() : parse(path, text);
  if (!context.is_object()) {
    refuse_option(
        path, merged.at(path),
        trains == DcosTrains::kJob ? "a map, as JSON" : "a map of training flags, as JSON");
  }
  return context;
}

std::vector<std::pair<std::string, std::string>> flags_of(const PlainJson& context) {
  std::vector<std::pair<std::string, std::string>> flags;
  for (const auto& [key, value] : context.items()) {
    flags.emplace_back(key, flag_value(key, value));
  }
  return flags;
}

DcosGpuWorkers read_gpu_workers(const Merged& merged) {
  constexpr std::uint64_t kMostTasks = 1000;
  constexpr std::uint64_t kMostGpus = 64;
  return {.count = merged.whole("gpu_worker.count", 1, kMostTasks),
          .gpus = merged.whole("gpu_worker.gpus", 1, kMostGpus),
          .cpus = merged.at("gpu_worker.cpus"),
          .memory_mib = merged.whole("gpu_worker.mem", 1, kMostMemoryMib)};
}

// The image of an option; empty if it is the package's own, which has another TensorFlow program.
std::string read_image(const Merged& merged, const std::string& path) {
  const auto* const option =
      std::ranges::find(kOptions, path, [](const Option& each) { return std::string(each.path); });
  const std::string image = merged.text(path);
  return data::parse_json(option->fallback) == image ? std::string() : image;
}

void refuse_what_is_missing(const Merged& merged, bool has_program) {
  // Rejected, not ignored: the run would have fewer workers than the file asks for.
  if (merged.at("gpu_worker.count") != 0 && !has_program) {
    refuse_option("gpu_worker.count", merged.at("gpu_worker.count"),
                  "0: disttf computes on CPUs; give these tasks to worker.count, or train your own "
                  "program (disttf render dcos --program)");
  }
  if (merged.is_true("service.security.kerberos.enabled")) {
    refuse_option("service.security.kerberos.enabled", true,
                  "false: disttf does not support Kerberos");
  }
  const std::string shared = merged.text("service.shared_filesystem");
  if (!shared.empty() && !shared.starts_with("/") && shared.find("://") == std::string::npos) {
    refuse_option("service.shared_filesystem", shared,
                  "a path, which begins with /, of a directory that all machines share, or a URL "
                  "such as gs://bucket/prefix or hdfs://namenode/path");
  }
}

// Sets the COMMAND of the package's job, and what is fetched for it.
void read_job(const Merged& merged, DcosOptions& options) {
  const std::string name = merged.text("service.job_name");
  if (name.empty()) {
    refuse_option("service.job_name", merged.at("service.job_name"),
                  "the module of the job, which --program runs without a COMMAND after --");
  }
  options.job_url = merged.text("service.job_url");
  if (!options.job_url.empty() && options.job_url.find("://") == std::string::npos) {
    refuse_option("service.job_url", merged.at("service.job_url"),
                  "a URL such as https://example.org/job.zip");
  }
  // Only blanks between the values of JSON can be line ends, which a COMMAND must not have.
  std::string context = merged.text("service.job_context");
  if (context == "{}") {
    context.clear();  // job.py's own default
  }
  std::ranges::replace_if(
      context, [](char each) { return each == '\n' || each == '\r'; }, ' ');
  options.command = {"python3", "-m", "disttf.job"};
  const std::array<std::pair<const char*, std::string>, 4> flags = {
      {{"--job_path=", merged.text("service.job_path")},
       {"--job_name=", name},
       {"--job_context=", context},
       {"--log_dir=", options.train_dir}}};
  for (const auto& [flag, value] : flags) {
    if (!value.empty()) {
      // A single brace would begin a placeholder.
      options.command.push_back(flag + replaced(replaced(value, "{", "{{"), "}", "}}"));
    }
  }
}

// A warning that names the given options without effect here; none if all have one.
std::vector<std::string> warnings(const PlainJson& merged, DcosTrains trains) {
  const bool has_program = trains != DcosTrains::kOwnModel;
  std::string names;
  for (const Option& option : kOptions) {
    const auto at = pointer(option.path);
    const std::string_view path = option.path;
    if (option.is_used || (has_program && path.ends_with("tf_image")) ||
        (trains == DcosTrains::kJob && path.starts_with("service.job_")) || !merged.contains(at) ||
        // A value that equals its default asks for nothing, as in a copy of the whole schema.
        (option.fallback != nullptr && merged[at] == data::parse_json(option.fallback))) {
      continue;
    }
    names += (names.empty() ? "" : ", ") + std::string(option.path);
  }
  if (names.empty()) {
    return {};
  }
  return {has_program
              ? "--options: ignored, because the program is that of --program: " + names
              : "--options: ignored, because disttf has its own program, image and data: " + names};
}

}  // namespace

PlainJson merge_dcos_options(std::string_view text) {
  // Defaults first: a consumer then needs no case for an option that the file leaves out.
  PlainJson merged = PlainJson::object();
  for (const Option& option : kOptions) {
    if (option.fallback != nullptr) {
      merged[pointer(option.path)] = data::parse_json(option.fallback);
    }
  }
  const PlainJson given = parse("the file", text);
  if (!given.is_object()) {
    fail("the file is a list; expected a map of options");
  }
  merge(given, "", merged);
  return merged;
}

DcosOptions read_dcos_options(std::string_view text, DcosTrains trains) {
  const bool has_program = trains != DcosTrains::kOwnModel;
  const PlainJson json = merge_dcos_options(text);
  const Merged merged(json);
  // Before the rest is read, so that the message names the unsupported feature and not a detail of
  // it.
  refuse_what_is_missing(merged, has_program);
  DcosOptions options;
  options.name = merged.text("service.name");
  options.user = merged.text("service.user");
  if (merged.is_true("service.virtual_network_enabled")) {
    options.network = merged.text("service.virtual_network_name");
  }
  options.train_dir = merged.text("service.shared_filesystem");
  options.ps = read_tasks(merged, "parameter_server");
  options.workers = read_tasks(merged, "worker");
  if (has_program) {
    if (merged.at("gpu_worker.count") != 0) {
      options.gpu_workers = read_gpu_workers(merged);
    }
    options.image = read_image(merged, "service.tf_image");
    options.gpu_image = read_image(merged, "service.gpu_tf_image");
  }
  if (merged.is_true("service.use_tensorboard")) {
    options.tensorboard = read_tensorboard(merged);
  }
  const auto context = read_context(merged, trains);
  if (trains == DcosTrains::kJob) {
    read_job(merged, options);
  } else {
    options.flags = flags_of(context);
  }
  options.warnings = warnings(json, trains);
  return options;
}

}  // namespace disttf::render
