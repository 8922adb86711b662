// Metrics of tasks: any body of METRICS_REPLY gives texts that encode to the same bytes, or
// nothing. Any text gives a task's metrics, from which a record and a timeline can be made, or
// nothing.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/wire/metrics_messages.h"
#include "run/monitor/core/run_view.h"
#include "run/monitor/core/task_metrics.h"
#include "run/monitor/core/trace.h"
#include "tests/fuzz/input.h"

namespace {

using disttf::roles::Trace;

const disttf::net::Cluster kCluster{.ps = {{.host = "p", .port = 1}, {.host = "q", .port = 1}},
                                    .workers = {{.host = "a", .port = 1}, {.host = "b", .port = 1}},
                                    .chief = {},
                                    .evaluators = {}};

template <typename Metrics>
void show(const Metrics& metrics, Trace& trace) {
  disttf::roles::RunView view;
  disttf::fuzz::require(view.take(disttf::roles::to_line(metrics, 1)));
  const auto& tasks = kCluster.tasks_of(metrics.task.job);
  if (metrics.task.index < tasks.size()) {
    trace.told(metrics);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = std::as_bytes(std::span(data, size));
  std::vector<std::string> texts;
  if (!disttf::net::decode_metrics(body, texts) && size <= disttf::net::kMaxMetricsReplyBytes) {
    const std::vector<std::byte> again = disttf::net::encode_metrics(texts);
    disttf::fuzz::require(std::vector(body.begin(), body.end()) == again);
  }
  texts.emplace_back(reinterpret_cast<const char*>(data), size);
  Trace trace(kCluster, {.from = 0, .count = 4});
  for (const std::string& text : texts) {
    if (const auto trainer = disttf::roles::trainer_metrics_from_json(text)) {
      show(*trainer, trace);
      const std::string told = to_json(*trainer);
      const auto again = disttf::roles::trainer_metrics_from_json(told);
      disttf::fuzz::require(again && to_json(*again) == told);
    }
    if (const auto ps = disttf::roles::ps_metrics_from_json(text)) {
      show(*ps, trace);
      const std::string told = to_json(*ps);
      const auto again = disttf::roles::ps_metrics_from_json(told);
      disttf::fuzz::require(again && to_json(*again) == told);
    }
  }
  disttf::fuzz::require(nlohmann::json::accept(trace.json()));
  return 0;
}
