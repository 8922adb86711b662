// read_record_line: any line gives a record that the view of a run accepts, nothing, or one short
// sentence. The run can be drawn after any record.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "run/monitor/core/chart.h"
#include "run/monitor/core/record_line.h"
#include "run/monitor/core/run_chart.h"
#include "run/monitor/core/run_view.h"
#include "run/monitor/core/show_text.h"
#include "tests/fuzz/input.h"

namespace {

using Json = nlohmann::ordered_json;

void draw(const std::string& view) {
  const Json json = Json::parse(view);
  const std::array<disttf::roles::PlottedRun, 1> runs = {{{.name = "run", .view = &json}}};
  for (const bool is_log : {false, true}) {
    const auto chart =
        disttf::roles::chart_of(runs, {.smooth = 2, .by_time = is_log, .is_log = is_log});
    disttf::fuzz::require(
        !disttf::roles::text_of(chart, {.columns = 40, .unicode = is_log}).empty());
    disttf::fuzz::require(disttf::roles::svg_of(chart).ends_with("</svg>\n"));
  }
  disttf::fuzz::require(!disttf::roles::show_text(json, "run", {}, 80).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  disttf::roles::RunView view;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const disttf::roles::RecordLine read = disttf::roles::read_record_line(line);
    disttf::fuzz::require(read.why.empty() || read.record.is_null());
    if (!read.why.empty()) {
      disttf::fuzz::require_sentence(read.why, "", 400);
    }
    if (read.record.is_object()) {
      view.take(read.record.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
  draw(view.json());
  return 0;
}
