// Bodies of requests to a served model: any bytes give rows that it accepts, or one sentence. The
// first byte selects model and call; with the Open Inference Protocol, the second byte sets how
// many of the bytes are JSON. Another JSON reader accepts the responses.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "roles/serve/core/api_route.h"
#include "roles/serve/core/inference_api.h"
#include "roles/serve/core/rest_api.h"
#include "tests/fuzz/input.h"

namespace {

using namespace disttf;
using disttf::fuzz::require;

roles::TrainedModel model_of(unsigned kind) {
  roles::TrainedModel model;
  model.config.model.numbers = kind % 2 == 0;
  model.config.model.input = {.height = 1, .width = kind % 2 == 0 ? 1U : 2U, .channels = 2};
  if (kind % 4 == 1) {
    model.config.model.input.channels = 1;
  }
  model.config.model.classes = 3;
  model.config.examples.columns = {"x", "y"};
  return model;
}

void check(const roles::Question& question, const roles::TrainedModel& model) {
  require(question.count > 0);
  require(question.rows.values() == question.count * model.config.model.input.size());
  require(!model.is_of_numbers() || !question.rows.are_bytes());
  require(std::ranges::all_of(question.rows.numbers(), [](float x) { return std::isfinite(x); }));
  const std::vector<float> outputs(question.count * 3, 0.5F);
  if (question.call != roles::ApiCall::kInfer) {
    require(nlohmann::json::accept(roles::rest_answer(question, model, outputs)));
    return;
  }
  const roles::ApiAnswer answer =
      roles::infer_answer(question, {.name = "m", .version = 1, .model = &model}, outputs);
  const std::size_t json_bytes = answer.json_bytes == 0 ? answer.body.size() : answer.json_bytes;
  require(json_bytes <= answer.body.size());
  require(nlohmann::json::accept(answer.body.substr(0, json_bytes)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array kCalls = {roles::ApiCall::kPredict, roles::ApiCall::kClassify,
                                 roles::ApiCall::kInfer, roles::ApiCall::kInfer};
  if (size < 2) {
    return 0;
  }
  const roles::TrainedModel model = model_of(data[0]);
  const std::string_view body(reinterpret_cast<const char*>(data + 2), size - 2);
  roles::Question question;
  question.clear(kCalls[data[0] / 4 % kCalls.size()], model);
  try {
    if (question.call == roles::ApiCall::kInfer) {
      const auto json_bytes =
          data[1] == 0 ? std::nullopt : std::optional<std::size_t>(std::size_t{data[1]});
      roles::read_infer_question(body, json_bytes, model, question);
    } else {
      roles::read_rest_question(body, model, question);
    }
    check(question, model);
  } catch (const roles::ApiError& error) {
    const std::string_view sentence = error.what();
    require(error.status() == 400 && !sentence.empty() && sentence.size() < 2000);
    require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
  }
  return 0;
}
