#include "data/tensorboard/projector.h"

#include "text/shortest_number.h"

namespace disttf::data {
namespace {

void append_cell(std::string& to, std::string_view text) {
  for (const char c : text) {
    // A tab or newline in a name would add a cell or a row to the table.
    to += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
}

}  // namespace

std::string projector_config(std::string_view name) {
  std::string text = "embeddings {\n  tensor_name: \"" + std::string(name) + "\"\n";
  text += "  tensor_path: \"" + std::string(kProjectorPoints) + "\"\n";
  return text + "  metadata_path: \"" + std::string(kProjectorLabels) + "\"\n}\n";
}

std::string projector_points(std::span<const float> values, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    append_shortest(text, values[i]);
    text += (i + 1) % width == 0 ? '\n' : '\t';
  }
  return text;
}

std::string projector_labels(std::span<const ProjectorLabel> labels) {
  std::string text = "label\tanswer\n";
  for (const ProjectorLabel& each : labels) {
    append_cell(text, each.label);
    text += '\t';
    append_cell(text, each.answer);
    text += '\n';
  }
  return text;
}

}  // namespace disttf::data
