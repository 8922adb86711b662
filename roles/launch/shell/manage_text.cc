#include "roles/launch/shell/manage_text.h"

#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/text_table.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
std::string endpoints_text(const OrderedJson& endpoints) {
  TextTable table = table_with("JOB ADDRESSES");
  for (const auto& [job, addresses] : endpoints.items()) {
    std::string joined;
    for (const OrderedJson& address : addresses) {
      joined += (joined.empty() ? "" : ",") + address.get<std::string>();
    }
    table.rows.push_back({job, joined});
  }
  return text_of(table);
}

std::string pods_text(const OrderedJson& pods) {
  std::string text;
  for (const OrderedJson& pod : pods) {
    text += pod.get<std::string>() + "\n";
  }
  return text;
}

Failure unknown_answer(std::string_view json) {
  return {kError, "unexpected answer from the launch: " + net::quoted(json)};
}

}  // namespace

std::string text_of(ManageVerb verb, std::string_view json) {
  const OrderedJson parsed = data::parse_ordered_json(json);
  if (!parsed.is_structured()) {
    throw unknown_answer(json);
  }
  try {
    switch (verb) {
      case ManageVerb::kEndpoints:
        return endpoints_text(parsed);
      case ManageVerb::kPodsList:
        return pods_text(parsed);
      case ManageVerb::kPage:
        return parsed.at("url").get<std::string>() + "\n";
      default:
        return parsed.at("message").get<std::string>() + "\n";
    }
    // A wrong type or a missing field: the server is not a launch, or of another version.
  } catch (const OrderedJson::exception&) {
    throw unknown_answer(json);
  }
}

}  // namespace disttf::roles
