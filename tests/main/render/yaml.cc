#include "tests/main/render/yaml.h"

#include <yaml-cpp/yaml.h>

#include <regex>
#include <stdexcept>

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

}  // namespace disttf::render
