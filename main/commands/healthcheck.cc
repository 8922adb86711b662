#include "roles/serve/shell/healthcheck.h"

#include <CLI/CLI.hpp>
#include <chrono>

#include "main/commands/registry.h"
#include "main/flags/flag_group.h"
#include "net/http/url.h"

namespace disttf {
namespace {

constexpr const char* kHealthcheckGroup = "Healthcheck";
constexpr std::uint64_t kMostHealthcheckSeconds = 3600;

class HealthcheckCommand : public WordCommand {
 public:
  void add_options(CLI::App& app) override {
    FlagGroup add(app, kHealthcheckGroup);
    app.add_option("URL")->description(
        "The URL to request, such as http://127.0.0.1:8501/v2/health/ready: exits with 0 if the "
        "status is 200, else 1; without it the disttf of this container");
    add.number("--timeout", timeout_s_, "SECONDS", 1, kMostHealthcheckSeconds,
               "seconds for the whole check; then it fails");
    add.text("--ca_file", options_.ca_file, "FILE",
             "trusted certificate authorities of an https URL, PEM [the system's file]");
    add.text("--token_file", options_.token_file, "FILE",
             "file whose first [token](security.md#access-tokens) is sent");
  }

  std::unique_ptr<Action> action(const ParsedLine& /*line*/) override {
    options_.timeout = std::chrono::seconds(timeout_s_);
    return run_with(options_, roles::run_healthcheck);
  }

 private:
  void take(std::vector<std::string>& arguments) override {
    if (begins_with_word(arguments)) {
      options_.url = net::parse_url("healthcheck", take_only_word(arguments, "healthcheck", "URL"));
    }
  }

  roles::HealthcheckOptions options_{.url = std::nullopt};
  std::uint64_t timeout_s_ = 5;
};

}  // namespace

CommandRow healthcheck_command() {
  return {
      .name = "healthcheck",
      .description = "Check the health of a service; the exit code is the result",
      .words = "URL",
      .about =
          "Sends one request and exits with 0 if the status is 200. For container engines: "
          "the image contains no other client.",
      .examples = {{"disttf healthcheck http://127.0.0.1:8501/v2/health/ready",
                    "Is the service ready?"}},
      .files = {kAuthoritiesFile},
      .see_also = {"serve", "render"},
      .make = make_command<HealthcheckCommand>,
  };
}

}  // namespace disttf
