// Curves as SVG 1.1: one file that a browser, an editor or a document shows.
//
// Curves differ in colour and in how they are dashed, so that either is enough; text is text; light
// and dark follow the reader's preference. The same chart gives the same bytes.
//
// Pure functions; callable from any thread.
#pragma once

#include <string>

#include "roles/monitor/core/chart.h"

namespace disttf::roles {

[[nodiscard]] std::string svg_of(const Chart& chart);

}  // namespace disttf::roles
