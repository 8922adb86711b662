// The YAML writer is 70 lines of our own. yaml-cpp's Emitter can write comments, but linked in it
// costs 88 KB, a third of what is left below the file's size limit; libyaml's cannot write
// comments. The JSON library quotes scalars: a JSON string is a YAML string. The tests read the
// output with yaml-cpp.
#include "main/render/document.h"

#include <algorithm>
#include <array>

#include "data/json/json_text.h"

namespace disttf::render {
namespace {

constexpr std::size_t kIndent = 2;

// Whether YAML 1.1 or 1.2 reads the word as a boolean, as null or as a merge.
bool is_reserved(std::string_view text) {
  // No ~ and no <<: is_plain() excludes their characters.
  constexpr std::array<std::string_view, 9> kWords = {"y",   "n",    "yes",   "no",  "on",
                                                      "off", "true", "false", "null"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

// Whether the text needs no quotes: it begins with a letter, a slash or like a flag, so it is no
// number, date, time or document mark, and has no character with a meaning in YAML.
bool is_plain(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kMarks = "0123456789_-./=,:";
  const std::string_view start = text.starts_with("--") ? text.substr(2) : text;
  const bool starts_well =
      !start.empty() &&
      (kLetters.find(start.front()) != std::string_view::npos || text.front() == '/');
  const auto means_itself = [&](char c) {
    return kLetters.find(c) != std::string_view::npos || kMarks.find(c) != std::string_view::npos;
  };
  // A colon at the end would make the text a key.
  return starts_well && text.back() != ':' && std::all_of(text.begin(), text.end(), means_itself) &&
         !is_reserved(text);
}

std::string scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) {
    return value.get_ref<const std::string&>();
  }
  // JSON's quoted strings, numbers, {} and [] are YAML, so nothing but plain words is written here.
  return data::json_text(value);
}

void write_map(const Json& map, std::size_t indent, std::string& out);
void write_list(const Json& list, std::size_t indent, std::string& out);

// Whether the value is a map or list with entries, which is written on lines below its key.
bool is_block(const Json& value) { return value.is_structured() && !value.empty(); }

void write_block(const Json& value, std::size_t indent, std::string& out) {
  if (value.is_object()) {
    write_map(value, indent, out);
  } else {
    write_list(value, indent, out);
  }
}

void write_map(const Json& map, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const auto& [key, value] : map.items()) {
    // The comment comes first, because maps keep the order in which keys are added.
    if (key.starts_with('#')) {
      out += comment_lines(value.get_ref<const std::string&>(), margin + "# ");
    } else if (is_block(value)) {
      out += margin + scalar(key) + ":\n";
      write_block(value, indent + kIndent, out);
    } else {
      out += margin + scalar(key) + ": " + scalar(value) + "\n";
    }
  }
}

void write_list(const Json& list, std::size_t indent, std::string& out) {
  for (const Json& entry : list) {
    // The entry is written with its margin, and the hyphen then takes the place of a blank:
    // write_block() needs no case for lists.
    const std::size_t begin = out.size();
    if (is_block(entry)) {
      write_block(entry, indent + kIndent, out);
    } else {
      out += std::string(indent + kIndent, ' ') + scalar(entry) + "\n";
    }
    out[begin + indent] = '-';  // replaces a space of the margin
  }
}

}  // namespace

Json without_comments(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& entry : value) {
      list.push_back(without_comments(entry));
    }
    return list;
  }
  if (!value.is_object()) {
    return value;
  }
  Json map = Json::object();
  for (const auto& [key, entry] : value.items()) {
    if (!key.starts_with('#')) {
      map[key] = without_comments(entry);
    }
  }
  return map;
}

std::string to_json_text(const Json& value) {
  return data::json_text(without_comments(value), {.indent = 2}) + "\n";
}

std::string to_yaml_text(const Json& value) {
  std::string out;
  write_block(value, 0, out);
  return out;
}

std::string comment_lines(std::string_view text, std::string_view mark) {
  std::string out;
  // <=: an empty text is one empty comment, and a text that ends with a line break has an empty
  // last one.
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += std::string(mark) + std::string(text.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return out;
}

Json json_list(const std::vector<std::string>& entries) {
  Json list = Json::array();
  for (const std::string& entry : entries) {
    list.push_back(entry);
  }
  return list;
}

}  // namespace disttf::render
