// What a model is asked, whichever API it came by, and what the answer is to look like. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "roles/model/core/trained_model.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/rows.h"

namespace disttf::roles {

struct Question {
  ApiCall call = ApiCall::kPredict;
  Rows rows;
  std::size_t count = 0;          // rows
  bool by_columns = false;        // REST: "inputs" was given, "outputs" is wanted
  std::string id;                 // of the Open Inference Protocol: comes back; empty: none
  bool wants_binary = false;      // likewise: the output as bytes behind the JSON
  std::size_t top = 0;            // likewise: so many classes as "score:index:name"; 0: numbers
  std::string_view warning = {};  // of what is asked (question_range.h), a constant; empty: none

  // For another request.
  void clear(ApiCall of, const TrainedModel& model) {
    call = of;
    rows.clear(model);
    count = 0;
    by_columns = false;
    id.clear();
    wants_binary = false;
    top = 0;
    warning = {};
  }
};

// Whom it is asked.
struct Addressee {
  std::string_view name;
  std::uint64_t version = 0;
  const TrainedModel* model = nullptr;
};

// A body, and how it is told what it is.
struct ApiAnswer {
  std::string body;
  std::size_t json_bytes = 0;  // of a body that is JSON and tensors behind it; 0: all is JSON
};

}  // namespace disttf::roles
