#include "main/help_text.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <memory>

namespace disttf {
namespace {

class PlainFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return plain_text(option->get_description());
  }
  // What a word may be, its description tells; the check is there for completion alone.
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? std::string() : CLI::Formatter::make_option_opts(option);
  }
};

// Where the link that begins with the bracket at `from` goes to, or npos: it is no link.
std::size_t target_of_link(std::string_view text, std::size_t from) {
  const std::size_t target = text.find("](", from);
  const std::size_t bracket = text.find(']', from);
  return target == bracket && text.find(')', target) != std::string_view::npos
             ? target
             : std::string_view::npos;
}

}  // namespace

std::string plain_text(std::string_view description) {
  std::string text;
  std::size_t target = std::string_view::npos;  // of the link that is being read
  for (std::size_t at = 0; at < description.size(); ++at) {
    const char c = description[at];
    if (at == target) {
      at = description.find(')', at);
      target = std::string_view::npos;
    } else if (c == '[' && target_of_link(description, at) != std::string_view::npos) {
      target = target_of_link(description, at);
    } else if (c != '`') {
      text += c;
    }
  }
  if (!description.empty() && description.front() != '`') {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

std::string document_text(std::string_view description) {
  if (!description.ends_with(']')) {
    return std::string(description);
  }
  const std::size_t bracket = description.rfind(" [");
  return std::string(description.substr(0, bracket)) + "; without it " +
         std::string(description.substr(bracket + 2, description.size() - bracket - 3));
}

void show_plain_help(CLI::App& app) { app.formatter(std::make_shared<PlainFormatter>()); }

}  // namespace disttf
