#include "roles/serve/core/rest_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/fast_json.h"
#include "roles/serve/core/question.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSignature = "serving_default";

// Parses a request's body.
class RestReader {
 public:
  RestReader(std::string_view body, const TrainedModel& model, Question& question)
      : reader_(body), model_(model), question_(question) {}

  void read() {
    bool has_rows = false;
    if (reader_.enter_object()) {
      do {
        // A copy: the reader's text of the key is overwritten by the next one.
        key_ = reader_.key();
        if (key_ == "signature_name") {
          check_signature();
        } else if (key_ == "context") {
          throw BadRequest("context: not supported; give every example all of its columns");
          // Unknown members are ignored, as TensorFlow Serving does.
        } else if (!is_rows(key_)) {
          reader_.skip();
        } else if (std::exchange(has_rows, true)) {
          throw BadRequest("the body holds rows twice; give instances or inputs, once");
        } else {
          read_rows();
        }
      } while (reader_.next_member());
    }
    reader_.end();
    if (!has_rows) {
      throw BadRequest(question_.call == ApiCall::kPredict
                           ? "instances is missing: an array of rows, or inputs"
                           : "examples is missing: an array of objects");
    }
  }

 private:
  [[nodiscard]] bool is_rows(std::string_view key) const {
    return question_.call == ApiCall::kPredict ? key == "instances" || key == "inputs"
                                               : key == "examples";
  }

  void check_signature() {
    const std::string_view name = reader_.string();
    // An empty name means the default signature.
    if (!name.empty() && name != kSignature) {
      throw BadRequest("signature_name: " + net::quoted(name) + " is not there; " +
                       std::string(kSignature) + " is");
    }
  }

  void read_rows() {
    question_.by_columns = key_ == "inputs";
    what_ = key_;
    // TensorFlow Serving's column format names its tensors; "instances" never does.
    if (question_.by_columns && reader_.peek() == JsonKind::kObject) {
      question_.count = read_named_tensor();
      return;
    }
    // The first element shows whether rows are arrays or objects; a copy of the reader looks ahead.
    JsonReader ahead = reader_;
    if (ahead.enter_array() && ahead.peek() == JsonKind::kObject) {
      static_cast<void>(reader_.enter_array());
      do {
        read_example();
        ++question_.count;
      } while (reader_.next_element());
      return;
    }
    question_.count = rows_of(read_tensor(reader_, question_.rows), model_, what_);
  }

  // Reads {"inputs": ROWS} below "inputs": a tensor with its name.
  std::size_t read_named_tensor() {
    std::size_t count = 0;
    if (reader_.enter_object()) {
      do {
        const std::string_view key = reader_.key();
        if (count > 0 || (key != kInputName && key != "b64")) {
          throw BadRequest("inputs: there is one tensor, " + std::string(kInputName));
        }
        count = key == "b64" ? add_base64(reader_.string(), what_, model_, question_.rows)
                             : rows_of(read_tensor(reader_, question_.rows), model_, what_);
      } while (reader_.next_member());
    }
    if (count == 0) {
      throw BadRequest("inputs: the object is empty; expected a tensor as " +
                       std::string(kInputName));
    }
    return count;
  }

  // Reads an object that is one row.
  void read_example() {
    // The rows of all examples are in one buffer, so each example is measured by its growth.
    const std::size_t before = question_.rows.values();
    // nullopt marks columns that this example has not given.
    columns_.assign(model_.config.examples.columns.size(), std::nullopt);
    bool has_columns = false;
    if (reader_.enter_object()) {
      do {
        const std::string_view key = reader_.key();
        // Columns first: a table may have a column of the name "inputs" or "b64".
        if (const std::optional<std::size_t> column = column_called(key)) {
          has_columns = true;
          columns_[*column] = read_cell();
        } else if (key == kInputName) {
          read_row();
        } else if (key == "b64") {
          static_cast<void>(add_base64(reader_.string(), what_, model_, question_.rows));
        } else if (columns_.empty()) {
          throw BadRequest(what_ + ": an example has " + net::quoted(key) + "; expected " +
                           std::string(kInputName) + " or b64");
        } else {
          reader_.skip();  // a table may have columns that the model does not use
        }
      } while (reader_.next_member());
    }
    // Only now, in the order of the model's inputs: the members of an object have no order.
    if (has_columns) {
      add_columns();
    }
    // Checked for each example: the totals of several could match by chance.
    if (question_.rows.values() - before != model_.config.model.input.size()) {
      throw BadRequest(what_ + ": example " + std::to_string(question_.count + 1) +
                       " does not hold the values of one row, which are " +
                       std::to_string(model_.config.model.input.size()));
    }
  }

  // The index of a column. Needs no search if the columns come in the order of training.
  [[nodiscard]] std::optional<std::size_t> column_called(std::string_view key) {
    const std::vector<std::string>& names = model_.config.examples.columns;
    if (next_column_ < names.size() && names[next_column_] == key) {
      return next_column_++;
    }
    const auto found = std::ranges::find(names, key);
    if (found == names.end()) {
      return std::nullopt;
    }
    next_column_ = static_cast<std::size_t>(found - names.begin()) + 1;
    return next_column_ - 1;
  }

  // Reads a number, or an array of one, as in TensorFlow's features.
  float read_cell() {
    if (reader_.peek() != JsonKind::kArray) {
      return reader_.number();
    }
    if (!reader_.enter_array()) {
      reader_.fail("a column of an example holds one number");
    }
    const float value = reader_.number();
    if (reader_.next_element()) {
      reader_.fail("a column of an example holds one number");
    }
    return value;
  }

  // Reads the value of "inputs" in an example.
  void read_row() {
    if (reader_.peek() == JsonKind::kObject) {
      if (!reader_.enter_object() || reader_.key() != "b64") {
        throw BadRequest(what_ + ": inputs is an object without b64");
      }
      static_cast<void>(add_base64(reader_.string(), what_, model_, question_.rows));
      // b64 is the whole value in TensorFlow Serving's JSON.
      if (reader_.next_member()) {
        throw BadRequest(what_ + ": b64 stands alone in its object");
      }
      return;
    }
    const Dims dims = read_tensor(reader_, question_.rows);
    if (!is_example(dims.all(), model_)) {
      throw BadRequest(what_ + ": inputs of example " + std::to_string(question_.count + 1) +
                       " has the shape " + dims.text() + "; the model takes " +
                       math::to_string(model_.config.model.input));
    }
  }

  void add_columns() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i]) {
        throw BadRequest(what_ + ": example " + std::to_string(question_.count + 1) +
                         " lacks the column " + net::quoted(model_.config.examples.columns[i]));
      }
      question_.rows.add(*columns_[i]);
    }
  }

  JsonReader reader_;
  const TrainedModel& model_;
  Question& question_;
  std::string key_;
  std::string what_;  // the name of the rows in messages
  std::vector<std::optional<float>> columns_;
  std::size_t next_column_ = 0;
};

void append_classes(std::string& text, const TrainedModel& model, std::span<const float> scores) {
  text += '[';
  for (std::size_t i = 0; i < scores.size(); ++i) {
    text += i == 0 ? "[" : ",[";
    append_string(text, model.class_name(i));
    text += ',';
    append_number(text, scores[i]);
    text += ']';
  }
  text += ']';
}

// A tensor of any number of rows of these sizes, in TensorFlow's notation.
Json tensor_json(std::string_view name, std::span<const std::size_t> sizes) {
  Json dims = Json::array({{{"size", "-1"}, {"name", ""}}});
  for (const std::size_t size : sizes) {
    dims.push_back({{"size", std::to_string(size)}, {"name", ""}});
  }
  const Json shape = {{"dim", std::move(dims)}, {"unknown_rank", false}};
  return {{name, {{"dtype", "DT_FLOAT"}, {"tensor_shape", shape}, {"name", name}}}};
}

}  // namespace

void read_rest_question(std::string_view body, const TrainedModel& model, Question& question) {
  if (question.call == ApiCall::kClassify && model.tells_numbers()) {
    throw BadRequest(
        "classify: the model predicts a number, not a class; use :regress or :predict");
  }
  if (question.call == ApiCall::kRegress && !model.tells_numbers()) {
    throw BadRequest(
        "regress: the model predicts classes, not a number; use :classify or :predict");
  }
  RestReader(body, model, question).read();
}

std::string rest_answer(const Question& question, const TrainedModel& model,
                        std::span<const float> outputs) {
  const std::size_t columns = outputs.size() / question.count;
  std::string text;
  // A float has at most 9 digits, with a sign, a point, an exponent and a comma.
  text.reserve(outputs.size() * 14 + 32);
  if (question.call == ApiCall::kPredict) {
    text = question.by_columns ? R"({"outputs":)" : R"({"predictions":)";
    append_rows(text, outputs, columns);
  } else if (question.call == ApiCall::kRegress) {
    text = R"({"results":)";
    append_numbers(text, outputs);
  } else {
    text = R"({"results":[)";
    for (std::size_t row = 0; row < question.count; ++row) {
      text += row == 0 ? "" : ",";
      append_classes(text, model, outputs.subspan(row * columns, columns));
    }
    text += ']';
  }
  append_warnings(text, question);
  return text + "}\n";
}

std::string rest_status(std::span<const VersionStatus> versions) {
  Json list = Json::array();
  for (const VersionStatus& each : versions) {
    const Json status = {{"error_code", each.is_available ? "OK" : "DATA_LOSS"},
                         {"error_message", each.sentence}};
    list.push_back({{"version", std::to_string(each.version)},
                    {"state", each.is_available ? "AVAILABLE" : "END"},
                    {"status", status}});
  }
  return data::json_text(Json{{"model_version_status", std::move(list)}}) + "\n";
}

std::string rest_metadata(const Addressee& asked) {
  const math::Shape& shape = asked.model->config.model.input;
  const std::size_t classes = asked.model->config.model.classes;
  const std::vector<std::size_t> sizes =
      asked.model->is_of_numbers()
          ? std::vector<std::size_t>{shape.size()}
          : std::vector<std::size_t>{shape.height, shape.width, shape.channels};
  const Json signature = {
      {"inputs", tensor_json(kInputName, sizes)},
      {"outputs", tensor_json(output_name(*asked.model), std::span(&classes, 1))},
      {"method_name", "tensorflow/serving/predict"}};
  const Json metadata = {
      {"model_spec",
       {{"name", asked.name}, {"signature_name", ""}, {"version", std::to_string(asked.version)}}},
      {"metadata", {{"signature_def", {{"signature_def", {{kSignature, signature}}}}}}}};
  return data::json_text(metadata) + "\n";
}

}  // namespace disttf::roles
