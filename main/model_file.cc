#include "main/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "main/toml_text.h"
#include "math/layers/layer_spec.h"
#include "math/layers/registry.h"
#include "math/model_spec.h"
#include "net/wire/text.h"

namespace disttf {
namespace {

// Thousands of layers fit; a wrong file, such as a checkpoint, must not fill the memory.
constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

// toml++ 3.3 has undefined behaviour for some characters beyond ASCII
// (is_non_ascii_horizontal_whitespace() ends in __builtin_unreachable()). Only comments may contain
// them, so each becomes '?': elsewhere the file is rejected for an unknown word.
std::string as_ascii(std::string_view text) {
  std::string out(checked_utf8(text));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) > 0x7F; }, '?');
  return out;
}

// Blanks the flags before the layers, and keeps the line numbers.
std::string without_flags(std::string text) {
  const std::size_t begin = begin_of_layers(text);
  if (begin != text.size()) {
    std::replace_if(
        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin),
        [](char c) { return c != '\n'; }, ' ');
  }
  return text;
}

class ModelFile {
 public:
  explicit ModelFile(const std::string& path) : path_(path) {}

  [[nodiscard]] std::vector<math::LayerSpec> layers(std::string_view text) const {
    toml::table root;
    try {
      // Cut after the conversion: both keep the number of lines, so errors name lines of the file.
      root = parse_toml(without_flags(as_ascii(text)));
    } catch (const TomlError& error) {
      refuse(error.line(), error.what());
    }
    for (const auto& [key, value] : root) {
      if (key.str() != "layer") {
        refuse(value, net::quoted(key.str()) + " is not layer");
      }
    }
    const toml::array* const list = root["layer"].as_array();
    if (list == nullptr || !list->is_array_of_tables()) {
      refuse(1, "there is no [[layer]]");
    }
    if (list->size() > math::kMaxLayers) {
      refuse(*list, fmt::format("{} layers; at most {}", list->size(), math::kMaxLayers));
    }
    std::vector<math::LayerSpec> layers;
    for (const toml::node& each : *list) {
      layers.push_back(layer(*each.as_table(), layers.size() + 1));
    }
    return layers;
  }

 private:
  [[noreturn]] void refuse(std::size_t line, std::string_view sentence) const {
    constexpr std::size_t kLongest = 300;  // a value may be as long as the file
    std::string shown(sentence.substr(0, kLongest));
    std::ranges::replace_if(
        shown, [](char c) { return c < ' ' || c > '~'; }, '?');
    throw std::invalid_argument(fmt::format("--model: {}, line {}: {}", path_, line, shown));
  }
  [[noreturn]] void refuse(const toml::node& at, std::string_view sentence) const {
    refuse(at.source().begin.line, sentence);
  }

  [[nodiscard]] math::LayerSpec layer(const toml::table& table, std::size_t number) const {
    math::LayerSpec spec;
    const auto word = [&](std::string_view key) {
      const toml::node* const node = table.get(key);
      if (node != nullptr && !node->is_string()) {
        refuse(*node, fmt::format("layer {}: {}: is not a word in quotes", number, key));
      }
      return node == nullptr ? std::string() : node->as_string()->get();
    };
    spec.type = word("type");
    spec.name = word("name");
    // The type first: it decides which fields the other keys may be.
    const math::LayerType* const type = math::find_layer_type(spec.type);
    if (type == nullptr) {
      const toml::node* const node = table.get("type");
      refuse(node == nullptr ? table : *node,
             fmt::format(
                 "layer {}: type: {} one of {}", number,
                 node == nullptr ? "is missing; it must be" : net::quoted(spec.type) + " is not",
                 names_of_types()));
    }
    for (const auto& [key, node] : table) {
      // Every layer has these two; all other keys are fields of its type.
      if (key.str() != "type" && key.str() != "name") {
        add_field(spec, *type, std::string(key.str()), node, number);
      }
    }
    // Again with all fields together, which finds those that are missing.
    check(spec, *type, table, number);
    return spec;
  }

  void add_field(math::LayerSpec& spec, const math::LayerType& type, const std::string& key,
                 const toml::node& node, std::size_t number) const {
    if (node.is_string()) {
      spec.fields.emplace(key, node.as_string()->get());
    } else if (const auto value = node.value<double>(); value && node.is_number()) {
      spec.fields.emplace(key, *value);
    } else {
      refuse(node, fmt::format("layer {} ({}): {}: is neither a number nor a word in quotes",
                               number, spec.type, key));
    }
    // Checks this field alone, so that the message names its line. Missing fields are found later.
    const math::LayerSpec alone{
        .type = spec.type, .name = {}, .fields = {{key, spec.fields.at(key)}}};
    // With an unknown key all fields stay, because the message lists them.
    const auto field = std::ranges::find(type.fields, key, &math::LayerField::name);
    const std::span<const math::LayerField> known =
        field == type.fields.end() ? type.fields : std::span(&*field, 1);
    check(alone, {.name = type.name, .about = {}, .fields = known, .make = nullptr}, node, number);
  }

  void check(const math::LayerSpec& spec, const math::LayerType& type, const toml::node& at,
             std::size_t number) const {
    try {
      static_cast<void>(math::LayerFields(spec, type.fields));
    } catch (const std::invalid_argument& error) {
      refuse(at, fmt::format("layer {} ({}): {}", number, spec.type, error.what()));
    }
  }

  [[nodiscard]] static std::string names_of_types() {
    return net::joined(math::layer_types(), ", ", &math::LayerType::name);
  }

  const std::string& path_;
};

}  // namespace

std::string model_choices() {
  std::string names;
  for (const std::string_view name : math::kModelNames) {
    names += std::string(name) + ", ";
  }
  return names + "or a model file, which ends in .toml";
}

bool is_model_file(std::string_view text) noexcept { return text.ends_with(".toml"); }

std::size_t begin_of_layers(std::string_view text) noexcept {
  for (std::size_t line = 0; line < text.size();) {
    const std::string_view rest = text.substr(line);
    const std::size_t word = std::min(rest.find_first_not_of(" \t"), rest.size());
    if (rest.substr(word).starts_with("[[")) {
      return line;
    }
    // size() - 1 stands for a last line without a line end, behind which the loop stops.
    line += std::min(rest.find('\n'), rest.size() - 1) + 1;
  }
  return text.size();
}

std::vector<math::LayerSpec> read_model_file(const std::string& path) {
  // Reset, because the stream reports no reason: errno of the failed open() does.
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // One byte more than allowed shows that the file is too large.
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // Not fail(): a read that ends at the end of a short file sets it, too.
  if (!file.is_open() || file.bad()) {
    throw std::invalid_argument(
        fmt::format("--model: {} cannot be read: {}", path,
                    std::system_category().default_error_condition(errno).message()));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes) {
    throw std::invalid_argument(
        fmt::format("--model: {} is not a model file: it is larger than a MiB", path));
  }
  return layers_from_toml(text, path);
}

std::vector<math::LayerSpec> layers_from_toml(std::string_view text, const std::string& path) {
  return ModelFile(path).layers(text);
}

}  // namespace disttf
