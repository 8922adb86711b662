#include "tests/main/render/yaml.h"

#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>

#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

using nlohmann::json;

bool matches(const std::string& text, const char* pattern) {
  return std::regex_match(text, std::regex(pattern, std::regex::icase));
}

json plain_scalar(const std::string& text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (matches(text, "-?(0|[1-9][0-9]*)")) {
    return std::stoll(text);
  }
  if (matches(text, "-?[0-9]+\\.[0-9]+")) {
    return std::stod(text);
  }
  if (matches(text, "|~|null|y|n|yes|no|on|off|true|false|[-+0-9].*|\\.([0-9].*|inf|nan)?") &&
      !text.starts_with("--")) {
    throw std::runtime_error("without quotes, \"" + text + "\" is not surely text");
  }
  return text;
}

json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    json map = json::object();
    for (const auto& entry : node) {
      const auto [place, is_new] =
          map.emplace(entry.first.as<std::string>(), to_json(entry.second));
      if (!is_new) {
        throw std::runtime_error("the key \"" + place.key() + "\" occurs twice");
      }
    }
    return map;
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& entry : node) {
      list.push_back(to_json(entry));
    }
    return list;
  }
  if (!node.IsScalar()) {
    return nullptr;
  }
  // yaml-cpp gives a quoted scalar the tag "!".
  return node.Tag() == "!" ? json(node.Scalar()) : plain_scalar(node.Scalar());
}

}  // namespace

std::vector<json> parse_yaml(const std::string& text) {
  std::vector<json> documents;
  for (const YAML::Node& document : YAML::LoadAll(text)) {
    documents.push_back(to_json(document));
  }
  return documents;
}

namespace {

// Reads lines {"schema": ..., "document": ...} from standard input. Writes for each a line to the
// file: a list of errors.
constexpr const char* kValidate =
    "import json, sys, jsonschema\n"
    "with open(sys.argv[1], 'w') as answers:\n"
    "    for line in sys.stdin:\n"
    "        asked = json.loads(line)\n"
    "        errors = jsonschema.Draft7Validator(asked['schema']).iter_errors(asked['document'])\n"
    "        texts = ['%s: %s' % ('.'.join(map(str, e.path)), e.message[:300]) for e in errors]\n"
    "        print(json.dumps(texts), file=answers, flush=True)\n";

// Returns a Python with jsonschema; "" if there is none.
const std::string& python() {
  static const std::string kFound = [] {
    for (const char* program : {"python3", "/usr/bin/python3"}) {
      if (run_shell(std::string(program) + " -c 'import jsonschema'").exit_code == 0) {
        return program;
      }
    }
    return "";
  }();
  return kFound;
}

// One Python process for all validations of this process: starting one takes longer than a
// validation.
class Validator {
 public:
  Validator() {
    const std::string answers = scratch_.path() + "/answers";
    if (mkfifo(answers.c_str(), S_IRUSR | S_IWUSR) != 0) {
      throw std::runtime_error("mkfifo failed");
    }
    const std::string program = scratch_.write("validate.py", kValidate);
    questions_.reset(popen((python() + " " + program + " " + answers).c_str(), "w"));
    if (questions_ == nullptr) {
      throw std::runtime_error("popen failed");
    }
    std::signal(SIGPIPE, SIG_IGN);  // the process may end before it is asked
    answers_.open(answers);         // waits for the writer
  }

  // Returns the errors; nullopt if the process ended instead of answering.
  std::optional<nlohmann::json> ask(const nlohmann::json& question) {
    if (!answers_) {
      return std::nullopt;
    }
    const std::string line = question.dump() + "\n";
    std::fwrite(line.data(), 1, line.size(), questions_.get());
    std::fflush(questions_.get());
    std::string answer;
    if (!std::getline(answers_, answer)) {
      return std::nullopt;
    }
    return nlohmann::json::parse(answer);
  }

 private:
  struct Closes {
    void operator()(std::FILE* pipe) const { pclose(pipe); }
  };

  ScratchDirectory scratch_;
  std::unique_ptr<std::FILE, Closes> questions_;
  std::ifstream answers_;
};

}  // namespace

bool has_schema_validator() { return !python().empty(); }

testing::AssertionResult fits(const nlohmann::json& value, const nlohmann::json& schema) {
  static Validator validator;
  const auto errors = validator.ask({{"schema", schema}, {"document", value}});
  if (!errors) {
    return testing::AssertionFailure() << "the validator process has ended";
  }
  return errors->empty() ? testing::AssertionSuccess()
                         : testing::AssertionFailure() << *errors << value.dump(2);
}

testing::AssertionResult fits_schema(const nlohmann::json& value, const std::string& schema_file,
                                     const std::string& part) {
  std::ifstream file(std::string(DISTTF_SOURCE_DIR "/tests/main/render/schemas/") + schema_file);
  const nlohmann::json schema = nlohmann::json::parse(file);
  return fits(value, schema.at(nlohmann::json::json_pointer(part)));
}

nlohmann::json without_unknown_fields(nlohmann::json schema) {
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object() &&
      !schema.contains("additionalProperties")) {
    schema["additionalProperties"] = false;
  }
  for (nlohmann::json& part : schema) {
    if (part.is_structured()) {
      part = without_unknown_fields(std::move(part));
    }
  }
  return schema;
}

}  // namespace disttf::render
