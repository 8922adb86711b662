// docs/flags.md, whose tables are generated from the flags.
//
//   <!-- flags: launch, Training -->
//
// names the command, or commands, and the group of its --help for the table below it.
#pragma once

#include <string>

namespace disttf {

// Returns the document from the source tree.
[[nodiscard]] std::string read_flag_document();

// Returns the document with every table regenerated. Throws std::invalid_argument if a mark names
// an unknown command, or a group without flags.
[[nodiscard]] std::string with_tables(const std::string& document);

// The path of docs/flags.md in the source tree.
inline constexpr const char* kFlagDocumentPath = DISTTF_SOURCE_DIR "/docs/flags.md";

// The flags in deploy/helm/disttf, the Helm chart: lines of values.yaml between two marks, and a
// part of values.schema.json, generated from the flags that `render` passes to tasks.
inline constexpr const char* kChartPath = DISTTF_SOURCE_DIR "/deploy/helm/disttf/";

// Returns a file of the chart from the source tree.
[[nodiscard]] std::string read_chart_file(const std::string& name);

// Returns values.yaml with the lines between the marks regenerated. Throws std::invalid_argument if
// the marks are missing.
[[nodiscard]] std::string with_flag_lines(const std::string& values);

// Returns values.schema.json with `properties.flags.properties` regenerated.
[[nodiscard]] std::string with_flag_schemas(const std::string& schema);

}  // namespace disttf
