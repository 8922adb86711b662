#include "run/process/event_loop.h"

#include <exception>
#include <string>
#include <utility>

#include "run/process/log.h"

namespace disttf::roles {
namespace {

void warn_once(std::string_view what, const std::exception& error, std::string& last) noexcept {
  try {
    std::string sentence = std::string(what) + ": " + error.what();
    if (sentence != last) {
      log_warning(sentence);
      last = std::move(sentence);
    }
  } catch (const std::exception&) {
    return;  // no memory for the sentence
  }
}

}  // namespace

void keep_running(asio::io_context& context, std::string_view what) noexcept {
  std::string last;
  while (true) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      warn_once(what, error, last);
    }
  }
}

}  // namespace disttf::roles
