// A request to a model, independent of the API, and the wanted form of the answer. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/predict/input_range.h"
#include "model/trained_model.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/rows.h"

namespace disttf::roles {

struct Question {
  ApiCall call = ApiCall::kPredict;
  Rows rows;
  std::size_t count = 0;          // rows
  bool by_columns = false;        // REST: "inputs" was given, "outputs" is wanted
  std::string id;                 // of the Open Inference Protocol, returned as it is; empty: none
  bool wants_binary = false;      // likewise: the output as bytes after the JSON
  std::size_t top = 0;            // likewise: so many classes as "score:index:name"; 0: numbers
  std::string_view warning = {};  // about the values (range_warning()), a constant; empty: none

  // Resets the object for another request.
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

// The model that a request names.
struct Addressee {
  std::string_view name;
  std::uint64_t version = 0;
  const TrainedModel* model = nullptr;
};

// A body, and the length of its JSON part.
struct ApiAnswer {
  std::string body;
  std::size_t json_bytes = 0;  // if tensors follow the JSON; 0: all is JSON
};

// The range of a question's values (model/predict/input_range.h). Pure.

// Scales the rows if `wanted` says so, and sets the question's warning if they do not look like the
// model's inputs. Does nothing for models of tables. REQUIRES: the question has been read.
void settle_range(InputRange wanted, const TrainedModel& model, Question& question);

// Appends ,"warnings":["..."] to the end of a JSON object, if there is a warning.
void append_warnings(std::string& json, const Question& question);

}  // namespace disttf::roles
