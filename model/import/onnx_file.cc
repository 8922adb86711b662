#include "model/import/onnx_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "data/protobuf.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using data::ProtobufField;
using data::ProtobufReader;

// Far more than any chain of layers has; bounds the work on a hostile file.
constexpr std::size_t kMostNodes = 4096;
constexpr std::size_t kMostSizes = 16;
// TensorProto.DataType
constexpr std::uint64_t kFloats = 1;
constexpr std::uint64_t kInt32s = 6;
constexpr std::uint64_t kInt64s = 7;
constexpr std::uint64_t kDoubles = 11;

// Parses the protobuf messages of one file.
class OnnxReader {
 public:
  explicit OnnxReader(const std::string& where) : where_(where) {}

  // ModelProto: graph 7, opset_import 8, metadata_props 14
  OnnxFile file(std::string_view bytes) const {
    OnnxFile file;
    bool has_graph = false;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "file")) {
      if (field.number == 7) {
        graph(field.bytes, file);
        has_graph = true;
      } else if (field.number == 8) {
        opset(field.bytes, file);
      } else if (field.number == 14) {
        fact(field.bytes, file);
      }
    }
    if (!has_graph) {
      refuse("not an ONNX file: it has no graph");
    }
    return file;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument(where_ + ": " + why);
  }

  // Reads the next field; refuses a truncated message.
  bool next(ProtobufReader& reader, ProtobufField& field, const char* what) const {
    if (reader.next(field)) {
      return true;
    }
    if (!reader.is_whole()) {
      refuse(std::string("not an ONNX file, or cut short: a ") + what + " is incomplete");
    }
    return false;
  }

  // OperatorSetIdProto: domain 1, version 2
  void opset(std::string_view bytes, OnnxFile& file) const {
    std::string_view domain;
    std::uint64_t version = 0;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "version")) {
      domain = field.number == 1 ? field.bytes : domain;
      version = field.number == 2 ? field.value : version;
    }
    // Versions of other domains do not matter: their operators are refused.
    if (domain.empty() || domain == "ai.onnx") {
      file.opset = static_cast<std::int64_t>(version);
    }
  }

  // StringStringEntryProto: key 1, value 2
  void fact(std::string_view bytes, OnnxFile& file) const {
    std::string key;
    std::string value;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "fact")) {
      if (field.number == 1 || field.number == 2) {
        // Other fields may come from newer versions of the format; they are skipped.
        (field.number == 1 ? key : value) = field.bytes;
      }
    }
    file.facts.insert_or_assign(std::move(key), std::move(value));
  }

  // GraphProto: node 1, initializer 5, input 11, output 12, sparse_initializer 15
  void graph(std::string_view bytes, OnnxFile& file) const {
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "graph")) {
      if (field.number == 1) {
        if (file.nodes.size() == kMostNodes) {
          refuse("it has more than " + std::to_string(kMostNodes) + " nodes");
        }
        file.nodes.push_back(node(field.bytes));
      } else if (field.number == 5) {
        std::string name;
        OnnxTensor read = tensor(field.bytes, name);
        file.constants.insert_or_assign(std::move(name), std::move(read));
      } else if (field.number == 11) {
        file.inputs.push_back(value(field.bytes));
      } else if (field.number == 12) {
        file.outputs.push_back(value(field.bytes));
      } else if (field.number == 15) {
        refuse("it has sparse constants, which are not supported");
      }
    }
  }

  // NodeProto: input 1, output 2, name 3, op_type 4, attribute 5, domain 7
  OnnxNode node(std::string_view bytes) const {
    OnnxNode node;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "node")) {
      switch (field.number) {
        case 1:
          node.inputs.emplace_back(field.bytes);
          break;
        case 2:
          node.outputs.emplace_back(field.bytes);
          break;
        case 3:
          node.name = field.bytes;
          break;
        case 4:
          node.type = field.bytes;
          break;
        case 5: {
          std::string name;
          OnnxAttribute read = attribute(field.bytes, name);
          node.attributes.insert_or_assign(std::move(name), std::move(read));
          break;
        }
        case 7:
          node.domain = field.bytes;
          break;
        default:
          break;
      }
    }
    return node;
  }

  // AttributeProto: name 1, f 2, i 3, s 4, t 5, floats 7, ints 8
  OnnxAttribute attribute(std::string_view bytes, std::string& name) const {
    OnnxAttribute attribute;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "attribute")) {
      switch (field.number) {
        case 1:
          name = field.bytes;
          break;
        case 2:
          attribute.number = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
          break;
        case 3:
          attribute.whole = static_cast<std::int64_t>(field.value);
          break;
        case 4:
          attribute.text = field.bytes;
          break;
        case 5: {
          std::string unused;
          attribute.tensor = tensor(field.bytes, unused);
          break;
        }
        case 7:
          floats(field, attribute.numbers);
          break;
        case 8:
          wholes(field, attribute.wholes);
          break;
        default:
          break;
      }
    }
    return attribute;
  }

  void wholes(const ProtobufField& field, std::vector<std::int64_t>& to) const {
    if (!data::append_varints(field, to)) {
      refuse("not an ONNX file, or cut short: incomplete numbers");
    }
  }

  static void floats(const ProtobufField& field, std::vector<float>& to) {
    // A packed field has all numbers in its bytes, an unpacked one has one at a time.
    if (field.kind == ProtobufField::Kind::kNumber) {
      to.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(field.value)));
    } else {
      append_raw<float>(field.bytes, to);
    }
  }

  // Little-endian numbers. Drops a truncated one; the caller compares the count.
  template <typename From, typename To>
  static void append_raw(std::string_view bytes, std::vector<To>& to) {
    for (std::size_t at = 0; at + sizeof(From) <= bytes.size(); at += sizeof(From)) {
      From number;
      std::memcpy(&number, bytes.data() + at, sizeof(From));
      to.push_back(static_cast<To>(number));
    }
  }

  // TensorProto: dims 1, data_type 2, float_data 4, int32_data 5, int64_data 7, name 8, raw_data 9,
  // double_data 10, data_location 14
  OnnxTensor tensor(std::string_view bytes, std::string& name) const {
    OnnxTensor tensor;
    std::uint64_t type = 0;
    std::string_view raw;
    std::string_view doubles;
    bool is_elsewhere = false;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "tensor")) {
      if (field.number == 1) {
        wholes(field, tensor.sizes);
      } else if (field.number == 2) {
        type = field.value;
      } else if (field.number == 4) {
        floats(field, tensor.floats);
      } else if (field.number == 5 || field.number == 7) {
        wholes(field, tensor.numbers);
      } else if (field.number == 8) {
        name = field.bytes;
      } else if (field.number == 9) {
        raw = field.bytes;
      } else if (field.number == 10) {
        doubles = field.bytes;
      } else if (field.number == 14) {
        // data_location: 1 is EXTERNAL.
        is_elsewhere = field.value != 0;
      }
    }
    if (is_elsewhere) {
      refuse("the numbers of " + net::quoted(name) + " are in another file, which is not read");
    }
    if (type == kFloats) {
      // Either raw_data or float_data is set; the unused one is empty, and adds nothing.
      append_raw<float>(raw, tensor.floats);
    } else if (type == kDoubles) {
      append_raw<double>(raw.empty() ? doubles : raw, tensor.floats);
    } else if (type == kInt64s) {
      append_raw<std::int64_t>(raw, tensor.numbers);
    } else if (type == kInt32s) {
      append_raw<std::int32_t>(raw, tensor.numbers);
    } else {
      refuse("the constant " + net::quoted(name) + " is of type " + std::to_string(type) +
             "; supported are float, double, int32 and int64");
    }
    // The layers index the numbers by the sizes, so both must agree.
    check_count(tensor, name);
    return tensor;
  }

  void check_count(const OnnxTensor& tensor, const std::string& name) const {
    const std::size_t count = tensor.floats.size() + tensor.numbers.size();
    std::size_t expected = 1;
    bool is_good = tensor.sizes.size() <= kMostSizes;
    for (const std::int64_t size : tensor.sizes) {
      // Compare before multiplying: the data is in memory, so a larger product is wrong.
      is_good = is_good && size >= 0 && expected <= count;
      expected = is_good ? expected * static_cast<std::size_t>(
                                          std::min<std::int64_t>(size, std::int64_t{1} << 31U))
                         : expected;
    }
    if (!is_good || expected != count) {
      refuse("the constant " + net::quoted(name) + " has " + std::to_string(count) +
             " numbers, which does not match its shape");
    }
  }

  // ValueInfoProto: name 1, type 2 {tensor_type 1 {shape 2 {dim 1 {dim_value 1, dim_param 2}}}}
  OnnxValue value(std::string_view bytes) const {
    OnnxValue value;
    ProtobufReader reader(bytes);
    ProtobufField field;
    while (next(reader, field, "value")) {
      if (field.number == 1) {
        value.name = field.bytes;
      } else if (field.number == 2) {
        sizes_of(field.bytes, value);
      }
    }
    return value;
  }
  void sizes_of(std::string_view type, OnnxValue& value) const {
    ProtobufReader types(type);
    ProtobufField tensor;
    while (next(types, tensor, "type")) {
      // Fields of other numbers become empty messages, whose loops end at once.
      ProtobufReader parts(tensor.number == 1 ? tensor.bytes : std::string_view());
      ProtobufField shape;
      while (next(parts, shape, "type")) {
        ProtobufReader sizes(shape.number == 2 ? shape.bytes : std::string_view());
        ProtobufField size;
        while (next(sizes, size, "shape")) {
          // Bounds the list; the layers refuse inputs of more than four sizes.
          if (size.number == 1 && value.sizes.size() < kMostSizes) {
            value.sizes.push_back(size_of(size.bytes));
          }
        }
      }
    }
  }
  [[nodiscard]] std::int64_t size_of(std::string_view dimension) const {
    // A dimension that has a name instead of a number stays -1.
    std::int64_t size = -1;
    ProtobufReader reader(dimension);
    ProtobufField field;
    while (next(reader, field, "size")) {
      size = field.number == 1 ? static_cast<std::int64_t>(field.value) : size;
    }
    return size;
  }

  const std::string& where_;
};

}  // namespace

OnnxFile read_onnx(std::string_view bytes, const std::string& where) {
  return OnnxReader(where).file(bytes);
}

const OnnxValue& input_of(const OnnxFile& file, const std::string& where) {
  const OnnxValue* input = nullptr;
  for (const OnnxValue& each : file.inputs) {
    if (file.constants.contains(each.name)) {
      continue;  // files of old versions list their constants, too
    }
    if (input != nullptr) {
      throw std::invalid_argument(where + ": it has several inputs, " + net::quoted(input->name) +
                                  " and " + net::quoted(each.name) + "; must be one");
    }
    input = &each;
  }
  if (input == nullptr) {
    throw std::invalid_argument(where + ": it has no input");
  }
  return *input;
}

}  // namespace disttf::roles
