#include "data/own/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>

#include "data/little_endian.h"
#include "data/own/row_source.h"
#include "data/own/shown_text.h"
#include "text/shortest_number.h"

namespace disttf::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself refuses headers above 10 000 bytes.
constexpr std::size_t kMostDictBytes = std::size_t{64} << 10U;
constexpr std::size_t kMostDimensions = 32;

[[noreturn]] void refuse_npy(const std::string& where, const std::string& sentence) {
  throw UnusableData(where + ": " + sentence);
}

// Parses a dict as NumPy writes it: three keys, with a string, a boolean and a tuple of integers.
class DictParser {
 public:
  DictParser(std::string_view text, const std::string& where) : rest_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    std::optional<std::string> type;
    std::optional<bool> is_fortran;
    bool has_shape = false;
    expect('{');
    while (!takes('}')) {
      const std::string key = string();
      expect(':');
      // NumPy writes each key once; a second one could hide the first from other readers.
      if (key == "descr" && !type) {
        type = type_text();
      } else if (key == "fortran_order" && !is_fortran) {
        is_fortran = truth();
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        refuse_npy(where_, "its header has \"" + printable(key) +
                               "\"; descr, fortran_order and shape are expected, each once");
      }
      if (!takes(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty() || !type || !is_fortran || !has_shape) {
      broken();
    }
    header.type = *type;
    if (*is_fortran) {
      refuse_npy(where_,
                 "it is in Fortran's order; numpy.ascontiguousarray() makes the order that "
                 "is read");
    }
    return header;
  }

 private:
  [[noreturn]] void broken() const { refuse_npy(where_, "its header is not one of NumPy's"); }
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  bool takes(char wanted) {
    skip_blanks();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!takes(wanted)) broken();
  }
  std::string string() {
    skip_blanks();
    if (!rest_.starts_with('\'') && !rest_.starts_with('"')) broken();
    // NumPy writes no escapes in these strings, so the next quote of the same kind ends them.
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) broken();
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string type_text() {
    skip_blanks();
    if (rest_.starts_with('[') || rest_.starts_with('(')) {
      refuse_npy(where_, "its elements are records; one number each is expected");
    }
    return string();
  }
  bool truth() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    }
    broken();
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> sizes;
    expect('(');
    while (!takes(')')) {
      skip_blanks();
      std::uint64_t size = 0;
      const auto [stopped, error] =
          std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || sizes.size() == kMostDimensions) broken();
      rest_.remove_prefix(static_cast<std::size_t>(stopped - rest_.data()));
      sizes.push_back(size);
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // long integers of Python 2
      if (!takes(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view rest_;
  const std::string& where_;
};

std::optional<NpyKind> element_kind(char sign) {
  switch (sign) {
    case 'b':
      return NpyKind::kBool;
    case 'i':
      return NpyKind::kSigned;
    case 'u':
      return NpyKind::kUnsigned;
    case 'f':
      return NpyKind::kFloat;
    default:
      return std::nullopt;
  }
}

// Parses "<f4": byte order, kind, number of bytes.
void take_type(NpyHeader& header, const std::string& where) {
  const std::string& type = header.type;
  // A separate message, because such files are common and reading them means unpickling.
  if (type.find('O') != std::string::npos) {
    refuse_npy(where,
               "its elements are Python objects, which are refused because they can run code");
  }
  const auto kind = type.size() == 3 ? element_kind(type[1]) : std::nullopt;
  const bool has_order =
      type.size() == 3 && std::string_view("<>=|").find(type[0]) != std::string_view::npos;
  const std::size_t bytes =
      has_order && type[2] >= '1' && type[2] <= '8' ? static_cast<std::size_t>(type[2] - '0') : 0;
  // Several bytes need an order, so '|' (no order) is allowed for single bytes only.
  const bool is_known = kind && std::has_single_bit(bytes) && (bytes == 1 || type[0] != '|') &&
                        (kind != NpyKind::kBool || bytes == 1) &&
                        (kind != NpyKind::kFloat || bytes >= 2);
  if (!is_known) {
    refuse_npy(where,
               "its elements are " + printable(type) +
                   "; bool, whole numbers of 1 to 8 bytes and floats of 2, 4 and 8 are read");
  }
  header.kind = *kind;
  header.element_bytes = bytes;
  header.is_big_endian = type[0] == '>';
}

// Converts a 16-bit float: 1 bit for the sign, 5 for the exponent, 10 for the fraction.
float half(std::uint16_t bits) noexcept {
  const int exponent = (bits >> 10U) & 0x1FU;
  const auto fraction = static_cast<float>(bits & 0x3FFU);
  const float magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                          : exponent == 0x1F
                              ? (fraction == 0 ? std::numeric_limits<float>::infinity()
                                               : std::numeric_limits<float>::quiet_NaN())
                              : std::ldexp(fraction + 1024.0F, exponent - 25);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

template <typename Bits>
Bits bits_at(const std::uint8_t* at, bool is_big_endian) noexcept {
  std::array<std::uint8_t, sizeof(Bits)> bytes{};
  // Elements follow the header directly, so they need not be aligned.
  std::memcpy(bytes.data(), at, bytes.size());
  if (is_big_endian) std::ranges::reverse(bytes);
  return std::bit_cast<Bits>(bytes);
}

// Calls `use` with a value of the elements' type.
template <typename Use>
auto with_element_type(const NpyHeader& header, Use use) {
  const bool is_signed = header.kind == NpyKind::kSigned;
  switch (header.element_bytes) {
    case 1:
      return is_signed ? use(std::int8_t{}) : use(std::uint8_t{});
    case 2:
      return is_signed ? use(std::int16_t{}) : use(std::uint16_t{});  // a half as its bits
    case 4:
      return header.kind == NpyKind::kFloat ? use(float{})
             : is_signed                    ? use(std::int32_t{})
                                            : use(std::uint32_t{});
    default:
      return header.kind == NpyKind::kFloat ? use(double{})
             : is_signed                    ? use(std::int64_t{})
                                            : use(std::uint64_t{});
  }
}

template <typename Number>
std::string shown_number(Number number) {
  if constexpr (std::floating_point<Number>) {
    return shortest_number(number);
  } else {
    return std::to_string(number);
  }
}

}  // namespace

std::uint64_t NpyHeader::row_elements() const noexcept {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

std::string NpyHeader::text() const {
  std::string sizes;
  for (const std::uint64_t size : shape) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  return "(" + sizes + (shape.size() == 1 ? ",) of " : ") of ") + type;
}

NpyPrefix parse_npy_prefix(std::span<const std::uint8_t> prefix, const std::string& where) {
  const auto is_magic = [&] {
    return std::ranges::equal(prefix.first(kMagic.size()), kMagic, [](std::uint8_t a, char b) {
      return a == static_cast<std::uint8_t>(b);
    });
  };
  if (prefix.size() < kNpyPrefixBytes || !is_magic()) {
    refuse_npy(where, "it does not begin like a NumPy array");
  }
  if (prefix[6] < 1 || prefix[6] > 3 || prefix[7] != 0) {
    refuse_npy(where, "it has version " + std::to_string(prefix[6]) + "." +
                          std::to_string(prefix[7]) +
                          " of NumPy's format; 1.0, 2.0 and 3.0 are "
                          "read");
  }
  // Version 1.0 has a length of two bytes, later ones of four.
  std::size_t length = prefix[8] | std::size_t{prefix[9]} << 8U;
  if (prefix[6] > 1) {
    length |= std::size_t{prefix[10]} << 16U | std::size_t{prefix[11]} << 24U;
  }
  if (length > kMostDictBytes) {
    refuse_npy(where, "its header has " + std::to_string(length) + " bytes; " +
                          std::to_string(kMostDictBytes) + " at most are allowed");
  }
  return {.dict_begin = prefix[6] > 1 ? std::size_t{12} : std::size_t{10}, .dict_bytes = length};
}

NpyHeader parse_npy_dict(std::string_view dict, const std::string& where) {
  NpyHeader header = DictParser(dict, where).parse();
  take_type(header, where);
  // Counts a size of 0 as 1, because other code multiplies the remaining sizes.
  std::uint64_t product = header.element_bytes;
  for (const std::uint64_t size : header.shape) {
    if (__builtin_mul_overflow(product, std::max<std::uint64_t>(size, 1), &product) ||
        product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse_npy(where, "its shape has more elements than a file can have");
    }
  }
  return header;
}

std::size_t npy_numbers(const NpyHeader& header, std::span<const std::uint8_t> elements,
                        std::span<float> numbers) noexcept {
  return with_element_type(header, [&](auto zero) {
    using Element = decltype(zero);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto element =
          bits_at<Element>(elements.data() + i * sizeof(Element), header.is_big_endian);
      if constexpr (std::is_same_v<Element, double>) {
        // The conversion of an out-of-range value is undefined behaviour.
        const bool fits = std::abs(element) <= double{std::numeric_limits<float>::max()};
        // NaN does not fit either; both become infinity, which the test below refuses.
        numbers[i] = fits ? static_cast<float>(element) : std::numeric_limits<float>::infinity();
      } else if constexpr (std::is_same_v<Element, std::uint16_t>) {
        numbers[i] = header.kind == NpyKind::kFloat ? half(element) : static_cast<float>(element);
      } else {
        numbers[i] = static_cast<float>(element);
      }
      // Returns the index, from which the caller derives row and column for its message.
      if (!std::isfinite(numbers[i])) return i;
    }
    return numbers.size();
  });
}

std::string npy_word(const NpyHeader& header, std::span<const std::uint8_t> element) {
  return with_element_type(header, [&](auto zero) {
    using Element = decltype(zero);
    const auto number = bits_at<Element>(element.data(), header.is_big_endian);
    if (header.kind != NpyKind::kFloat) {
      return shown_number(number);
    }
    double wide = 0;
    if constexpr (std::is_same_v<Element, std::uint16_t>) {
      wide = double{half(number)};
    } else {
      wide = static_cast<double>(number);
    }
    constexpr double kWhole = 9e15;  // below this a double represents every integer exactly
    if (std::abs(wide) < kWhole && wide == std::trunc(wide)) {
      return shown_number(static_cast<std::int64_t>(wide));
    }
    // The shortest text of the array's own type: as a double, 0.1F would be 0.10000000149011612.
    return std::is_same_v<Element, float> ? shown_number(static_cast<float>(wide))
                                          : shown_number(wide);
  });
}

std::string encode_npy_header(std::span<const std::size_t> shape) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kSizeOfLength = 2;
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const std::size_t size : shape) {
    dict += std::to_string(size) + ",";  // a one-element tuple needs the comma
  }
  dict += "), }";
  std::string header(kMagic);
  header += '\x01';  // version 1.0
  header += '\0';
  const std::size_t before = header.size() + kSizeOfLength;
  // Includes the line end that closes the header.
  // NumPy aligns the data to 64 bytes, so that they can be mapped.
  const std::size_t padded = (before + dict.size() + kAlignment) / kAlignment * kAlignment;
  dict.resize(padded - before - 1, ' ');
  dict += '\n';
  append_little_endian(header, static_cast<std::uint16_t>(dict.size()));
  return header + dict;
}

}  // namespace disttf::data
