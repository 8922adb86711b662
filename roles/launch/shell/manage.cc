#include "roles/launch/shell/manage.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "data/json/json_text.h"
#include "data/output_file.h"
#include "data/posix_file_system.h"
#include "net/http/http_session.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "roles/launch/shell/control_client.h"
#include "roles/launch/shell/status_watch.h"
#include "run/monitor/core/text_table.h"
#include "run/monitor/shell/terminal.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

// Encodes a name from the command line: only characters that a path may hold pass unchanged.
std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte / 16U];
      out += kDigits[byte % 16U];
    }
  }
  return out;
}

net::LocalHttpRequest request_of(const ManageOptions& options, const std::string& socket) {
  const std::string task = encoded(options.task);
  const auto request = [&socket](const char* method, std::string target) {
    return net::LocalHttpRequest{
        .socket = socket, .method = method, .target = std::move(target), .body = {}};
  };
  switch (options.verb) {
    case ManageVerb::kStatus:
    case ManageVerb::kTop:
      return request("GET", "/v1/status");
    case ManageVerb::kPage:
      return request("POST", "/v1/page");
    case ManageVerb::kEndpoints:
      return request("GET", "/v1/endpoints");
    case ManageVerb::kLogs:
      return {.socket = socket,
              .target = "/v1/logs/" + task + (options.follow ? "?follow=true" : ""),
              .body = {},
              // A followed log may have no lines for hours, so it has no timeout.
              .read_timeout = std::chrono::seconds(options.follow ? 0 : 10)};
    case ManageVerb::kPodsList:
      return request("GET", "/v1/pods");
    case ManageVerb::kPodsRestart:
      return request("POST", "/v1/pods/" + task + "/restart");
    case ManageVerb::kPodsReplace:
      return request("POST", "/v1/pods/" + task + "/replace");
    // Handled before this function is called; only an update remains.
    case ManageVerb::kTrace:  // run_trace()
    case ManageVerb::kUpdate:
      break;
  }
  nlohmann::json update = nlohmann::json::object();
  if (options.update.workers) {
    update["workers"] = *options.update.workers;
  }
  if (options.update.options) {
    update["options"] = *options.update.options;
  }
  return {
      .socket = socket, .method = "POST", .target = "/v1/update", .body = data::json_text(update)};
}

// Prints the output of a log at once; in JSON, whole lines.
class LogPrinter {
 public:
  LogPrinter(std::string task, bool json) : task_(std::move(task)), json_(json) {}

  void print(std::string_view piece) {
    // Pieces are passed on as they arrive, so that a last line without a line feed appears, too.
    if (!json_) {
      write_output(piece);
      return;
    }
    rest_ += piece;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      const nlohmann::ordered_json line = {{"task", task_}, {"line", rest_.substr(0, end)}};
      write_output(data::json_text(line) + "\n");
      rest_.erase(0, end + 1);
    }
  }

 private:
  std::string task_;
  bool json_;
  std::string rest_;
};

StatusWatchOptions watch_options(const ManageOptions& options, const std::string& socket) {
  constexpr std::chrono::milliseconds kUsual{2000};
  return {.socket = socket,
          .is_top = options.verb == ManageVerb::kTop,
          .once = options.once,
          .json = options.json,
          .every = options.every.value_or(kUsual),
          .variables = options.variables};
}

}  // namespace

int run_manage(const ManageOptions& options) {
  const std::string socket = find_launch(options.socket, options.directory);
  // These ask the launch repeatedly, in their own loops.
  if (options.every || options.verb == ManageVerb::kTop) {
    return run_status_watch(watch_options(options, socket));
  }
  if (options.verb == ManageVerb::kTrace) {
    return run_trace({.socket = socket,
                      .steps = options.trace_steps,
                      .output = options.trace_output,
                      .json = options.json});
  }
  LogPrinter log(options.task, options.json);
  int status = 0;
  std::string body;
  const std::error_code error =
      net::http_over_local(request_of(options, socket), [&](int code, std::string_view piece) {
        status = code;
        // Logs are printed as they arrive; everything else is an answer to parse, or an error
        // message.
        if (code == net::http_status::kOk && options.verb == ManageVerb::kLogs) {
          log.print(piece);
        } else {
          body += piece;
        }
      });
  if (error) {
    // Also after some output: a log that ends by an error is not complete.
    fail_to_reach(socket, error);
  }
  if (status != net::http_status::kOk) {
    fail_as_reported(status, body);
  }
  if (options.verb == ManageVerb::kStatus && !options.json) {
    write_output(status_text(socket, body, options.variables));
  } else if (options.verb != ManageVerb::kLogs) {
    write_output(options.json ? body : text_of(options.verb, body));
  }
  return kDone;
}

namespace {

using OrderedJson = nlohmann::ordered_json;

std::string text_in(const OrderedJson& value) { return value.get<std::string>(); }

std::string endpoints_text(const OrderedJson& endpoints) {
  TextTable table = table_with("JOB ADDRESSES");
  for (const auto& [job, addresses] : endpoints.items()) {
    table.rows.push_back({job, net::joined(addresses, ",", text_in)});
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

namespace {

// The largest possible timeline, of the most steps and tasks, is a tenth of it.
constexpr std::size_t kMostTimelineBytes = std::size_t{1} << 30U;

// Between two checks for the timeline.
constexpr std::chrono::milliseconds kTraceLook{200};

OrderedJson newest_trace(const std::string& socket) {
  const OrderedJson run = data::parse_ordered_json(ask_or_fail(socket, "/v1/run"));
  return run.is_object() ? run.value("trace", OrderedJson()) : OrderedJson();
}

// The pid of the leading chief: a restarted chief has no record of the request.
std::int64_t chief_pid(const std::string& socket) {
  const OrderedJson status = data::parse_ordered_json(ask_or_fail(socket, "/v1/status"));
  std::int64_t pid = 0;
  if (status.is_object() && status.contains("tasks") && status["tasks"].is_array()) {
    for (const OrderedJson& task : status["tasks"]) {
      const std::string name = task.value("task", std::string());
      // Without a separate chief, worker 0 is the chief; with one, its entry wins in either order.
      if ((name == "chief:0" || (name == "worker:0" && pid == 0)) && task["pid"].is_number()) {
        pid = task["pid"].get<std::int64_t>();
      }
    }
  }
  return pid;
}

// Waits for the record of the timeline after `before`.
OrderedJson wait_for_trace(const std::string& socket, const OrderedJson& before) {
  // Ctrl-C ends the wait, not the collection in the chief.
  const StopSignal stop;
  const std::int64_t chief = chief_pid(socket);
  while (true) {
    OrderedJson trace = newest_trace(socket);
    // Before the check of the chief: a chief that ends right after the timeline has done its work.
    if (trace.is_object() && trace != before) {
      return trace;
    }
    // A new chief does not know about the request, so the record would never come.
    if (chief_pid(socket) != chief) {
      throw Failure(kError, "the chief ended before it collected the timeline; try again");
    }
    stop.interrupt().wait_until(net::Clock::now() + kTraceLook);
    stop.throw_if_stopped();
  }
}

// Moves the file to the wanted name. A run without --train_dir wrote a temporary file.
void bring(const std::string& from, const std::string& to) {
  try {
    data::PosixFileSystem disk;
    // Copies instead of renaming: the output may be on another file system.
    const std::vector<std::byte> bytes = data::read_file(disk, from, kMostTimelineBytes);
    data::write_output_file(to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const std::system_error& error) {
    throw Failure(kError, "--output: " + std::string(error.what()) + "; the timeline is in " +
                              net::quoted(from));
  }
  // Files in the traces folder of --train_dir belong to the run and stay.
  if (std::filesystem::path(from).parent_path().filename() != "traces") {
    std::error_code ignored;
    std::filesystem::remove(from, ignored);
  }
}

std::string text_of(const OrderedJson& trace, const std::string& file) {
  const OrderedJson& error = trace["clock_error_seconds"];
  std::string text = fmt::format("{}: {} steps, from {} on; open it at ui.perfetto.dev\n", file,
                                 trace.value("steps", 0), trace.value("from", std::uint64_t{0}));
  if (!error.is_number()) {
    text += "The clocks of some tasks could not be compared: their times are not comparable\n";
  } else if (error.get<double>() > 0) {
    text += fmt::format("Clocks of tasks differ by at most {:.0f} us\n", error.get<double>() * 1e6);
  }
  const std::string missing =
      net::joined(trace.value("missing", OrderedJson::array()), ", ", text_in);
  return missing.empty() ? text
                         : text + "Some or all steps of these tasks are missing: " + missing + "\n";
}

}  // namespace

int run_trace(const TraceOptions& options) {
  // Before the request, so that the new record is recognised even if it comes at once.
  const OrderedJson before = newest_trace(options.socket);
  static_cast<void>(ask_or_fail(options.socket, "/v1/trace",
                                data::json_text(OrderedJson{{"steps", options.steps}})));
  OrderedJson trace = wait_for_trace(options.socket, before);
  const std::string file = trace.value("file", std::string());
  if (file.empty()) {
    throw Failure(kError, "no timeline: " + trace.value("why_not", std::string("unknown reason")));
  }
  if (!options.output.empty()) {
    bring(file, options.output);
    trace["file"] = std::filesystem::absolute(options.output).string();
  }
  trace.erase("kind");
  write_output(options.json ? data::json_text(trace, {.indent = 2}) + "\n"
                            : text_of(trace, options.output.empty() ? file : options.output));
  return kDone;
}

}  // namespace disttf::roles
