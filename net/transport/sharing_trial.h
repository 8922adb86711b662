// Whether tasks here could share tensors, for somebody who wants to know it without a run.
#pragma once

#include <string>
#include <system_error>

namespace disttf::net {

// Makes memory and hands it to itself, as a ps and a trainer do it. Where that fails, `step` is at
// what: "to make memory that can be shared (memfd_create)".
[[nodiscard]] std::error_code try_sharing(std::string& step);

}  // namespace disttf::net
