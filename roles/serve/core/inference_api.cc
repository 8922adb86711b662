#include "roles/serve/core/inference_api.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "roles/serve/core/api_route.h"
#include "roles/serve/core/fast_json.h"
#include "roles/serve/core/question.h"

namespace disttf::roles {
namespace {

static_assert(std::endian::native == std::endian::little);  // the byte order of binary tensors

using TensorBytes = std::span<const std::uint8_t>;

template <typename Element>
void add_elements(TensorBytes bytes, Rows& rows) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
    Element element{};
    // Copies, since the bytes in a request's body need not be aligned.
    std::memcpy(&element, bytes.data() + at, sizeof(Element));
    const auto value = static_cast<float>(element);
    if (!std::isfinite(value)) {
      throw BadRequest("inputs: value " + std::to_string(at / sizeof(Element) + 1) +
                       " is not a finite float32");
    }
    rows.add(value);
  }
}

struct Datatype {
  std::string_view name;
  std::size_t bytes;
  void (*add)(TensorBytes bytes, Rows& rows);
};
constexpr std::array<Datatype, 10> kDatatypes = {{
    {"UINT8", 1, [](TensorBytes bytes, Rows& rows) { rows.add(bytes); }},
    {"FP32", 4, add_elements<float>},
    {"FP64", 8, add_elements<double>},
    {"INT8", 1, add_elements<std::int8_t>},
    {"INT16", 2, add_elements<std::int16_t>},
    {"INT32", 4, add_elements<std::int32_t>},
    {"INT64", 8, add_elements<std::int64_t>},
    {"UINT16", 2, add_elements<std::uint16_t>},
    {"UINT32", 4, add_elements<std::uint32_t>},
    {"UINT64", 8, add_elements<std::uint64_t>},
}};
constexpr std::string_view kBytes = "BYTES";

class InferReader {
 public:
  InferReader(std::string_view body, std::size_t json_bytes, const TrainedModel& model,
              Question& question)
      : reader_(body.substr(0, json_bytes)),
        tail_(body.substr(json_bytes)),
        model_(model),
        question_(question) {}

  void read() {
    if (reader_.enter_object()) {
      do {
        const std::string_view key = reader_.key();
        if (key == "id") {
          question_.id = net::one_line(reader_.string());
        } else if (key == "inputs") {
          read_inputs();
        } else if (key == "outputs") {
          read_outputs();
        } else if (key == "parameters") {
          read_parameters([this](std::string_view name) {
            if (name != "binary_data_output") return false;
            question_.wants_binary = reader_.boolean();
            return true;
          });
        } else {
          reader_.skip();
        }
      } while (reader_.next_member());
    }
    reader_.end();
    if (!has_input_) {
      throw BadRequest("inputs is missing: an array with the tensor " + std::string(kInputName));
    }
    // After the whole JSON: shape, datatype and data come in any order.
    take_input();
  }

 private:
  // `take` reads the value of a known parameter, and returns whether it is known.
  template <typename Take>
  void read_parameters(const Take& take) {
    if (!reader_.enter_object()) return;
    do {
      if (!take(reader_.key())) {
        reader_.skip();
      }
    } while (reader_.next_member());
  }

  void read_inputs() {
    // Models have one input. An empty array is refused here as well.
    if (has_input_ || !reader_.enter_array()) {
      throw BadRequest("inputs holds one tensor, " + std::string(kInputName));
    }
    has_input_ = true;
    read_input();
    if (reader_.next_element()) {
      throw BadRequest("inputs holds one tensor, " + std::string(kInputName));
    }
  }

  void read_input() {
    std::string name;
    if (reader_.enter_object()) {
      do {
        const std::string_view key = reader_.key();
        if (key == "name") {
          name = reader_.string();
        } else if (key == "shape") {
          read_shape();
        } else if (key == "datatype") {
          datatype_ = reader_.string();
        } else if (key == "data") {
          read_data();
        } else if (key == "parameters") {
          read_parameters([this](std::string_view parameter) {
            if (parameter != "binary_data_size") return false;
            binary_size_ = reader_.whole_number();
            return true;
          });
        } else {
          reader_.skip();
        }
      } while (reader_.next_member());
    }
    // Checked at the end of the object: the name may be its last member.
    if (name != kInputName) {
      throw BadRequest("inputs: there is no tensor " + net::quoted(name) + "; the model takes " +
                       std::string(kInputName));
    }
  }

  void read_shape() {
    // A repeated key replaces the earlier one, as in most JSON parsers.
    shape_ = {};
    if (!reader_.enter_array()) return;
    do {
      if (shape_.rank == Dims::kMaxRank) {
        throw BadRequest("shape: more than " + std::to_string(Dims::kMaxRank) + " sizes");
      }
      shape_.sizes[shape_.rank++] = reader_.whole_number();
    } while (reader_.next_element());
  }

  // Reads numbers, flat or nested, or files as strings.
  void read_data() {
    // A second one would append its rows to those of the first.
    if (std::exchange(has_data_, true)) {
      throw BadRequest("inputs: data is given twice");
    }
    // Looks ahead with a copy of the reader: strings are files, everything else is numbers.
    JsonReader ahead = reader_;
    if (!ahead.enter_array() || ahead.peek() != JsonKind::kString) {
      data_ = read_tensor(reader_, question_.rows);
      return;
    }
    // True here: `ahead` has seen an element.
    static_cast<void>(reader_.enter_array());
    do {
      file_rows_ += add_base64(reader_.string(), kInputName, model_, question_.rows);
      ++files_;
    } while (reader_.next_element());
  }

  void read_outputs() {
    if (!reader_.enter_array()) return;
    do {
      if (reader_.enter_object()) {
        do {
          const std::string_view key = reader_.key();
          if (key == "name") {
            check_output(reader_.string());
          } else if (key == "parameters") {
            read_parameters([this](std::string_view name) { return take_output_parameter(name); });
          } else {
            reader_.skip();
          }
        } while (reader_.next_member());
      }
    } while (reader_.next_element());
  }

  void check_output(std::string_view name) const {
    if (name != output_name(model_)) {
      throw BadRequest("outputs: there is no tensor " + net::quoted(name) + "; the model gives " +
                       std::string(output_name(model_)));
    }
  }

  bool take_output_parameter(std::string_view name) {
    if (name == "binary_data") {
      question_.wants_binary = reader_.boolean();
      return true;
    }
    if (name != "classification") return false;
    question_.top = reader_.whole_number();
    if (model_.tells_numbers()) {
      throw BadRequest("classification: the model predicts a number, not a class");
    }
    return true;
  }

  void take_input() {
    // Exactly one of the two must be present.
    if (has_data_ == binary_size_.has_value()) {
      throw BadRequest(has_data_ ? "inputs: both data and binary_data_size; give one of them"
                                 : "inputs: data is missing, or binary_data_size");
    }
    // One input, so all bytes behind the JSON must be its own.
    if (binary_size_.value_or(0) != tail_.size()) {
      throw BadRequest("binary_data_size: " + std::to_string(binary_size_.value_or(0)) +
                       " bytes, but " + std::to_string(tail_.size()) + " follow the JSON");
    }
    if (datatype_ == kBytes) {
      take_files();
      return;
    }
    const auto type = std::ranges::find(kDatatypes, datatype_, &Datatype::name);
    if (type == kDatatypes.end() || files_ > 0) {
      throw BadRequest("datatype: " + net::quoted(datatype_) +
                       (files_ > 0 ? " does not fit strings; they need BYTES"
                                   : " is not supported; one of UINT8, FP32, FP64, INT8, INT16, "
                                     "INT32, INT64, UINT16, UINT32, UINT64, BYTES is"));
    }
    if (has_data_) {
      check_data();
    } else {
      take_binary(*type);
    }
    question_.count = rows_of(shape_, model_, "inputs");
  }

  void check_data() const {
    // A flat array is accepted for any shape with as many numbers, as the protocol allows.
    // hold() compares products without overflow: the client chooses the sizes.
    const bool is_flat = data_.rank == 1 && shape_.hold(data_.sizes[0]);
    if (!is_flat && !std::ranges::equal(data_.all(), shape_.all())) {
      throw BadRequest("inputs: data is " + data_.text() + ", the shape " + shape_.text());
    }
    // The rows turn into floats at the first value that is not a byte.
    if (datatype_ == "UINT8" && !model_.is_of_numbers() && !question_.rows.are_bytes()) {
      throw BadRequest("inputs: data holds values that are not UINT8 (whole, from 0 to 255)");
    }
  }

  void take_binary(const Datatype& type) {
    if (tail_.size() % type.bytes != 0 || !shape_.hold(tail_.size() / type.bytes)) {
      throw BadRequest("inputs: " + std::to_string(tail_.size()) + " bytes are no " +
                       std::string(type.name) + " of the shape " + shape_.text());
    }
    type.add({reinterpret_cast<const std::uint8_t*>(tail_.data()), tail_.size()}, question_.rows);
  }

  // Reads files, each preceded by its length in 4 bytes.
  void take_files() {
    std::string_view rest = tail_;
    while (!rest.empty()) {
      std::uint32_t size = 0;
      if (rest.size() >= sizeof(size)) {
        std::memcpy(&size, rest.data(), sizeof(size));
      }
      // Subtracts instead of adding: the client's size cannot overflow the comparison.
      if (rest.size() < sizeof(size) || rest.size() - sizeof(size) < size) {
        throw BadRequest("inputs: a length of BYTES is beyond the body's end");
      }
      const std::string_view file = rest.substr(sizeof(size), size);
      file_rows_ += add_file({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()},
                             kInputName, model_, question_.rows);
      ++files_;
      rest.remove_prefix(sizeof(size) + size);
    }
    if (files_ == 0 || !shape_.hold(files_)) {
      throw BadRequest("inputs: " + std::to_string(files_) + " files, but the shape is " +
                       shape_.text());
    }
    question_.count = file_rows_;
  }

  JsonReader reader_;
  std::string_view tail_;
  const TrainedModel& model_;
  Question& question_;
  bool has_input_ = false;
  Dims shape_;
  Dims data_;  // the sizes of the nested arrays
  bool has_data_ = false;
  std::string datatype_;
  std::optional<std::uint64_t> binary_size_;
  std::size_t files_ = 0;
  std::size_t file_rows_ = 0;
};

// "0.998:5:five", the most likely first, ties in the order of their classes.
std::vector<std::string> likeliest(const TrainedModel& model, std::span<const float> scores,
                                   std::size_t top) {
  std::vector<bool> is_taken(scores.size());
  std::vector<std::string> texts;
  // Selects the best one each time: `top` is small, so this beats sorting all classes.
  while (texts.size() < std::min(top, scores.size())) {
    std::size_t best = scores.size();
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (!is_taken[i] && (best == scores.size() || scores[i] > scores[best])) {
        best = i;
      }
    }
    is_taken[best] = true;
    append_number(texts.emplace_back(), scores[best]);
    texts.back() += ":" + std::to_string(best) + ":" + model.class_name(best);
  }
  return texts;
}

// Appends the elements of BYTES: preceded by their lengths, or as JSON strings.
void append_texts(std::string& out, std::span<const std::string> texts, bool is_binary) {
  for (const std::string& text : texts) {
    if (is_binary) {
      const auto size = static_cast<std::uint32_t>(text.size());
      out.append(reinterpret_cast<const char*>(&size), sizeof(size));
      out += text;
    } else {
      append_string(out, text);
      out += ',';
    }
  }
}

}  // namespace

void read_infer_question(std::string_view body, std::optional<std::size_t> json_bytes,
                         const TrainedModel& model, Question& question) {
  if (json_bytes.value_or(0) > body.size()) {
    throw BadRequest("Inference-Header-Content-Length: " + std::to_string(*json_bytes) +
                     " bytes of JSON, but the body has " + std::to_string(body.size()));
  }
  InferReader(body, json_bytes.value_or(body.size()), model, question).read();
}

ApiAnswer infer_answer(const Question& question, const Addressee& asked,
                       std::span<const float> outputs) {
  const TrainedModel& model = *asked.model;
  std::size_t columns = outputs.size() / question.count;
  std::string tensor;  // the elements
  if (question.top > 0) {
    for (std::size_t row = 0; row < question.count; ++row) {
      append_texts(tensor, likeliest(model, outputs.subspan(row * columns, columns), question.top),
                   question.wants_binary);
    }
    // likeliest() gives no more classes than the model has.
    columns = std::min(question.top, columns);
  } else if (question.wants_binary) {
    // JSON would write null; a binary tensor cannot express it.
    if (!std::ranges::all_of(outputs, [](float each) { return std::isfinite(each); })) {
      throw ApiError(500, "the model's output is not finite");
    }
    // Row-major little-endian floats, as the protocol's binary extension has them.
    tensor.assign(reinterpret_cast<const char*>(outputs.data()), outputs.size_bytes());
  } else {
    append_numbers(tensor, outputs);
  }
  ApiAnswer answer;
  std::string& text = answer.body;
  text = R"({"model_name":)";
  append_string(text, asked.name);
  text += R"(,"model_version":")" + std::to_string(asked.version) + '"';
  if (!question.id.empty()) {
    text += R"(,"id":)";
    append_string(text, question.id);
  }
  text += R"(,"outputs":[{"name":")" + std::string(output_name(model)) + R"(","datatype":")" +
          (question.top > 0 ? "BYTES" : "FP32") + R"(","shape":[)" +
          std::to_string(question.count) + "," + std::to_string(columns) + "],";
  if (question.wants_binary) {
    text += R"("parameters":{"binary_data_size":)" + std::to_string(tensor.size()) + "}}]";
    append_warnings(text, question);
    text += '}';
    // The client needs the boundary: the binary tensor follows the JSON without a separator.
    answer.json_bytes = text.size();
    text += tensor;
    return answer;
  }
  if (question.top > 0) {
    // Replaces the last comma.
    tensor.back() = ']';
    tensor.insert(tensor.begin(), '[');
  }
  text += R"("data":)" + tensor + "}]";
  append_warnings(text, question);
  text += "}\n";
  return answer;
}

std::string inference_metadata(const Addressee& asked, std::span<const std::uint64_t> versions) {
  using Json = nlohmann::ordered_json;
  const TrainedModel& model = *asked.model;
  const math::Shape& shape = model.config.model.input;
  Json known = Json::array();
  for (const std::uint64_t each : versions) {
    known.push_back(std::to_string(each));
  }
  const Json rows = model.is_of_numbers()
                        ? Json::array({-1, shape.size()})
                        : Json::array({-1, shape.height, shape.width, shape.channels});
  const Json input = {{"name", kInputName},
                      {"datatype", model.is_of_numbers() ? "FP32" : "UINT8"},
                      {"shape", rows}};
  const Json output = {{"name", output_name(model)},
                       {"datatype", "FP32"},
                       {"shape", Json::array({-1, model.config.model.classes})}};
  const Json metadata = {{"name", asked.name},
                         {"versions", std::move(known)},
                         {"platform", "disttf"},
                         {"inputs", Json::array({input})},
                         {"outputs", Json::array({output})}};
  return data::json_text(metadata) + "\n";
}

}  // namespace disttf::roles
