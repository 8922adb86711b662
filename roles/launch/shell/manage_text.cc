#include "roles/launch/shell/manage_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "net/wire/text.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

// Columns two blanks apart, each as wide as its longest cell; nothing behind the last one.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t each = 0; each < row.size(); ++each) {
      widths[each] = std::max(widths[each], row[each].size());
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t each = 0; each < row.size(); ++each) {
      line += row[each] + std::string(widths[each] - row[each].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string run_line(const Json& status) {
  std::string line =
      "launch " + status.at("pid").dump() + ": " + status.at("state").get<std::string>();
  if (status.at("step").is_number()) {
    line += ", step " + status.at("step").dump() + " of " + status.at("train_steps").dump() +
            fmt::format(", loss {:.4f}", status.at("loss").get<double>());
  }
  return line + ", since " + status.at("since").get<std::string>() + "\n";
}

std::string status_text(const Json& status) {
  std::vector<Row> rows = {{"TASK", "ADDRESS", "STATE", "PID", "RESTARTS", "SINCE"}};
  for (const Json& task : status.at("tasks")) {
    rows.push_back({task.at("task").get<std::string>(), task.at("address").get<std::string>(),
                    task.at("state").get<std::string>(),
                    task.at("pid").is_null() ? "-" : task.at("pid").dump(),
                    task.at("restarts").dump(), task.at("since").get<std::string>()});
  }
  return run_line(status) + table(rows);
}

std::string endpoints_text(const Json& endpoints) {
  std::vector<Row> rows = {{"JOB", "ADDRESSES"}};
  for (const auto& [job, addresses] : endpoints.items()) {
    std::string joined;
    for (const Json& address : addresses) {
      joined += (joined.empty() ? "" : ",") + address.get<std::string>();
    }
    rows.push_back({job, joined});
  }
  return table(rows);
}

std::string pods_text(const Json& pods) {
  std::string text;
  for (const Json& pod : pods) {
    text += pod.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace

std::string text_of(ManageVerb verb, std::string_view json) {
  try {
    const Json parsed = Json::parse(json);
    switch (verb) {
      case ManageVerb::kStatus:
        return status_text(parsed);
      case ManageVerb::kEndpoints:
        return endpoints_text(parsed);
      case ManageVerb::kPodsList:
        return pods_text(parsed);
      default:
        return parsed.at("message").get<std::string>() + "\n";
    }
  } catch (const Json::exception&) {
    throw Failure(kError, "the launch answered with something unknown: " + net::quoted(json));
  }
}

}  // namespace disttf::roles
