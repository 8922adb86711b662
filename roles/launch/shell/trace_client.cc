#include "roles/launch/shell/trace_client.h"

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
#include "net/wire/text.h"
#include "roles/launch/shell/control_client.h"
#include "run/monitor/shell/terminal.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The largest possible timeline, of the most steps and tasks, is a tenth of it.
constexpr std::size_t kMostTimelineBytes = std::size_t{1} << 30U;

// Between two checks for the timeline.
constexpr std::chrono::milliseconds kTraceLook{200};

// The launch's answer to GET `target`; throws Failure with a sentence if there is none.
OrderedJson ask(const std::string& socket, const char* target) {
  const LaunchAnswer answer = ask_launch(socket, target);
  if (answer.error) {
    fail_to_reach(socket, answer.error);
  }
  if (!answer.is_ok()) {
    fail_as_reported(answer.status, answer.body);
  }
  return data::parse_ordered_json(answer.body);
}

OrderedJson newest_trace(const std::string& socket) {
  const OrderedJson run = ask(socket, "/v1/run");
  return run.is_object() ? run.value("trace", OrderedJson()) : OrderedJson();
}

// The pid of the leading chief: a restarted chief has no record of the request.
std::int64_t chief_pid(const std::string& socket) {
  const OrderedJson status = ask(socket, "/v1/status");
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
  std::string missing;
  for (const OrderedJson& task : trace.value("missing", OrderedJson::array())) {
    missing += (missing.empty() ? "" : ", ") + task.get<std::string>();
  }
  return missing.empty() ? text
                         : text + "Some or all steps of these tasks are missing: " + missing + "\n";
}

}  // namespace

int run_trace(const TraceOptions& options) {
  // Before the request, so that the new record is recognised even if it comes at once.
  const OrderedJson before = newest_trace(options.socket);
  const LaunchAnswer asked = ask_launch(options.socket, "/v1/trace",
                                        data::json_text(OrderedJson{{"steps", options.steps}}));
  if (asked.error) {
    fail_to_reach(options.socket, asked.error);
  }
  if (!asked.is_ok()) {
    fail_as_reported(asked.status, asked.body);
  }
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
