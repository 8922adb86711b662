// Curves as SVG 1.1, for browsers, editors and documents.
//
// Curves differ in colour and in dashes, so that either suffices; text stays text; light and dark
// follow the reader's preference. Equal charts give equal bytes.
//
// Pure functions; callable from any thread.
#pragma once

#include <string>

#include "run/monitor/core/chart.h"

namespace disttf::roles {

[[nodiscard]] std::string svg_of(const Chart& chart);

}  // namespace disttf::roles
