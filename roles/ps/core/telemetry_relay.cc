#include "roles/ps/core/telemetry_relay.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/wire/metrics_messages.h"

namespace disttf::roles {

std::optional<BodyPlan> TelemetryRelay::begin(Incoming& incoming, const net::FrameHeader& header) {
  if (net::MetricsFrame{}.from_header(header) || header.body_size == 0 ||
      header.body_size > net::kMaxMetricsBytes) {
    return std::nullopt;
  }
  incoming.text.resize(header.body_size);
  incoming.place = {std::as_writable_bytes(std::span(incoming.text))};
  return BodyPlan{.next = BodyPlan::Next::kInto, .places = incoming.place};
}

void TelemetryRelay::keep(std::size_t rank, std::string text) {
  std::deque<std::string>& texts = texts_[rank];
  texts.push_back(std::move(text));
  if (texts.size() > kMostOfTrainer) {
    texts.pop_front();
  }
}

std::vector<std::string> TelemetryRelay::take() {
  std::vector<std::string> all;
  for (auto& [rank, texts] : std::exchange(texts_, {})) {
    std::ranges::move(texts, std::back_inserter(all));
  }
  return all;
}

bool TelemetryRelay::set_window(const net::FrameHeader& header) {
  net::TraceSteps steps;
  if (header.body_size != 0 || steps.from_header(header) || steps.count > StepWindow::kMost) {
    return false;
  }
  window_ = {.from = steps.from, .count = steps.count};
  return true;
}

}  // namespace disttf::roles
