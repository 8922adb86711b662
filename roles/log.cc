#include "roles/log.h"

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace disttf::roles {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// One JSON object a line. The message goes through the JSON library: it may hold anything that a
// peer or the environment sent.
class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(std::string task)
      : task_(std::move(task)),
        time_("%Y-%m-%dT%H:%M:%S.%eZ", spdlog::pattern_time_type::utc, "") {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t time;
    time_.format(message, time);
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::ordered_json line = {
        {"time", std::string(time.data(), time.size())},
        {"level", std::string(level.data(), level.size())},
        {"task", task_},
        {"message", std::string(message.payload.data(), message.payload.size())}};
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(task_);
  }

 private:
  std::string task_;
  spdlog::pattern_formatter time_;
};

}  // namespace

void set_up_log(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>(options.task,
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(to_spdlog(options.level));
  logger->flush_on(spdlog::level::debug);
  if (options.format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>(options.task));
  } else {
    logger->set_pattern(options.name_task && !options.task.empty() ? "%H:%M:%S.%e %L [%n] %v"
                                                                   : "%H:%M:%S.%e %L %v");
  }
  spdlog::set_default_logger(std::move(logger));
}

void log_debug(std::string_view message) { spdlog::debug("{}", message); }
void log_info(std::string_view message) { spdlog::info("{}", message); }
void log_warning(std::string_view message) { spdlog::warn("{}", message); }
void log_error(std::string_view message) { spdlog::error("{}", message); }

void print_result(std::string_view line) {
  std::string text(line);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace disttf::roles
