#include "tests/main/render/schema.h"

#include <fstream>

#include "tests/main/render/scripts.h"

namespace disttf::render {
namespace {

constexpr const char* kValidate =
    "import json, sys, jsonschema\n"
    "errors = jsonschema.Draft7Validator(json.load(open(sys.argv[1]))).iter_errors(\n"
    "    json.load(open(sys.argv[2])))\n"
    "texts = ['%s: %s' % ('.'.join(map(str, e.path)), e.message[:300]) for e in errors]\n"
    "print('\\n'.join(texts))\n"
    "sys.exit(1 if texts else 0)\n";

// "" where none has it.
std::string python() {
  for (const char* program : {"python3", "/usr/bin/python3"}) {
    if (run_shell(std::string(program) + " -c 'import jsonschema'").exit_code == 0) {
      return program;
    }
  }
  return "";
}

}  // namespace

bool has_schema_validator() { return !python().empty(); }

testing::AssertionResult fits_schema(const nlohmann::json& value, const std::string& schema_file,
                                     const std::string& part) {
  std::ifstream file(std::string(DISTTF_SOURCE_DIR "/tests/main/render/schemas/") + schema_file);
  const nlohmann::json schema = nlohmann::json::parse(file);
  const ScratchDirectory scratch;
  const std::string program = scratch.write("validate.py", kValidate);
  const std::string rules =
      scratch.write("schema.json", schema.at(nlohmann::json::json_pointer(part)).dump());
  const std::string document = scratch.write("document.json", value.dump());
  const Ran ran = run_shell(python() + " " + program + " " + rules + " " + document);
  return ran.exit_code == 0 ? testing::AssertionSuccess()
                            : testing::AssertionFailure() << ran.output << value.dump(2);
}

}  // namespace disttf::render
