#include "main/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "net/wire/text.h"

namespace disttf {
namespace {

constexpr unsigned char kLastAscii = 0x7F;
// TOML gives ~ no meaning, and the escaped text stays ASCII, so columns of errors count bytes.
constexpr char kEscape = '~';
constexpr int kHexadecimal = 16;

// The size of TOML's escape for kEscape at the beginning of `text`; 0: there is none.
std::size_t size_of_escaped_tilde(std::string_view text) noexcept {
  for (const std::string_view escape : {"\\u007", "\\U0000007"}) {
    const std::size_t last = escape.size();
    if (text.starts_with(escape) && last < text.size() &&
        (text[last] == 'E' || text[last] == 'e')) {
      return last + 1;
    }
  }
  return 0;
}

// A line for a message, shortened.
std::string excerpt(std::string_view line) {
  constexpr std::size_t kLongest = 60;
  const std::string text = unescape_non_ascii(net::trim(line));
  return net::quoted(text.size() > kLongest ? text.substr(0, kLongest) + "..." : text);
}

// toml++'s message without the name of the rule that it applied.
std::string_view reason_of(std::string_view description) noexcept {
  const std::size_t colon = description.find(": ");
  return description.starts_with("Error while parsing") && colon != std::string_view::npos
             ? description.substr(colon + 2)
             : description;
}

// The last text in '' of `reason`: toml++ quotes keys so.
std::string_view name_in(std::string_view reason) noexcept {
  const std::size_t end = reason.rfind('\'');
  const std::size_t begin = end == std::string_view::npos || end == 0 ? std::string_view::npos
                                                                      : reason.rfind('\'', end - 1);
  return begin == std::string_view::npos ? reason : reason.substr(begin + 1, end - begin - 1);
}

std::string sentence_of(std::string_view description, std::string_view line) {
  const std::string_view reason = reason_of(description);
  // Searches the words of toml++ 3.3; with another release a case that no longer matches gets the
  // general sentence.
  const auto says = [&](std::string_view part) {
    return description.find(part) != std::string_view::npos;
  };
  // The cases are users' usual mistakes; everything else gets toml++'s own reason.
  if (says("redefine existing")) {
    return net::quoted(unescape_non_ascii(name_in(reason))) + " is given twice; once is allowed";
  }
  if (says("string: ") && (says("control characters") || says("end-of-file"))) {
    return excerpt(line) + " has no closing quote on its line, or a control character in the text";
  }
  if (says("end-of-file") && says("array")) {
    return "the array has no closing ]";
  }
  if (says("expected value, saw '\\n'")) {
    return excerpt(line) + " has no value behind the =";
  }
  if (says("leading zeroes")) {
    return excerpt(line) + " has a number with a leading 0; write it without";
  }
  if (says("not representable in 64 bits")) {
    return excerpt(line) + " has a number beyond 64 bits";
  }
  return excerpt(line) + " is not TOML, which has key = value in each line and texts in quotes (" +
         unescape_non_ascii(reason) + ")";
}

}  // namespace

std::string_view checked_utf8(std::string_view text) {
  constexpr std::string_view kUtf8 = "\xEF\xBB\xBF";
  // A byte order mark of UTF-16: the most likely other encoding.
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    throw TomlError(1, "the file is UTF-16; save it as UTF-8");
  }
  // UTF-16 without a byte order mark has a zero byte in each ASCII character.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line = static_cast<std::size_t>(std::ranges::count(text.substr(0, zero), '\n')) + 1;
    throw TomlError(line, "a zero byte; a text file in UTF-8 has none");
  }
  // TOML ends no line at a lone CR, so every error would be in line 1.
  if (text.find('\r') != std::string_view::npos && text.find('\n') == std::string_view::npos) {
    throw TomlError(1, "lines end with CR alone; save the file with LF or CRLF line ends");
  }
  text.remove_prefix(text.starts_with(kUtf8) ? kUtf8.size() : 0);
  return text;
}

std::string escape_non_ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto append_escape = [&out](char c) {
    out += fmt::format("{}{:02X}", kEscape, static_cast<unsigned char>(c));
  };
  while (!text.empty()) {
    const char first = text.front();
    std::size_t taken = 1;
    if (const std::size_t escape = size_of_escaped_tilde(text); escape != 0) {
      append_escape(kEscape);
      taken = escape;
    } else if (static_cast<unsigned char>(first) > kLastAscii || first == kEscape) {
      append_escape(first);
    } else if (first == '\\' && text.size() > 1 && text[1] == '\\') {
      // Taken together: the second one begins no escape.
      out += "\\\\";
      taken = 2;
    } else {
      out += first;
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string unescape_non_ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = 0;
    const char* const digits = text.data() + at + 1;
    // escape_non_ascii() has escaped each ~ of the file, too.
    if (text[at] == kEscape && at + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, kHexadecimal).ptr == digits + 2) {
      out += static_cast<char>(byte);
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

toml::table parse_toml(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    const std::size_t line = error.source().begin.line;
    throw TomlError(line, sentence_of(error.description(), line_of(text, line)));
  }
}

std::string_view line_of(std::string_view text, std::size_t number) noexcept {
  for (std::size_t line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace disttf
