#include "main/render/run_secret.h"

#include <algorithm>

#include "net/wire/text.h"

namespace disttf::render {

std::string secret_flag(const std::string& path) { return "--secret_file=" + path; }

void check_secret(const Deployment& deployment, std::string_view besides, const char* allowed) {
  const std::string& name = deployment.secret;
  // The name stands unquoted in scripts.
  const bool is_good = std::ranges::all_of(name, [besides](char c) {
    return net::is_letter(c) || net::is_digit(c) || besides.find(c) != std::string_view::npos;
  });
  // Programs would take a leading hyphen for an option.
  if (!is_good || name.starts_with('-')) {
    refuse("secret", name, allowed);
  }
}

void refuse_secret(const Deployment& deployment, std::string_view target, std::string_view why) {
  if (!deployment.secret.empty()) {
    refuse("secret", deployment.secret,
           "allowed for " + std::string(target) + ", " + std::string(why));
  }
}

void refuse_flag(const Deployment& deployment, std::string_view name, std::string_view whose) {
  const std::string start = "--" + std::string(name) + "=";
  for (const std::string& flag : deployment.flags) {
    if (flag.starts_with(start)) {
      refuse(name, std::string_view(flag).substr(start.size()),
             "allowed for " + std::string(whose));
    }
  }
}

void refuse_certificates(const Deployment& deployment, std::string_view target) {
  refuse_flag(deployment, "task_cert",
              std::string(target) + ", whose tasks have their files in common");
}

}  // namespace disttf::render
