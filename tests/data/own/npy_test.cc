// NPY: the supported headers and elements, and the error messages for all others.
#include "data/own/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "data/own/row_source.h"
#include "tests/data/own/arrays_on_disk.h"

namespace disttf::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string dict_of(const std::string& type, const std::string& shape = "(2,)") {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }   \n";
}

NpyHeader header_of(const std::string& type) { return parse_npy_dict(dict_of(type), "a.npy"); }

std::string refusal_of_dict(const std::string& dict) {
  return test::refusal_of([&] { static_cast<void>(parse_npy_dict(dict, "a.npy")); }, "/none");
}

// Returns the elements in native or reversed byte order.
template <typename Element>
test::Bytes bytes_of_elements(const std::vector<Element>& elements, bool is_big_endian = false) {
  test::Bytes bytes;
  for (const Element element : elements) {
    test::Bytes each(sizeof(Element));
    std::memcpy(each.data(), &element, sizeof(Element));
    if (is_big_endian) std::ranges::reverse(each);
    bytes.insert(bytes.end(), each.begin(), each.end());
  }
  return bytes;
}

std::vector<float> numbers_of(const std::string& type, const test::Bytes& elements) {
  const NpyHeader header = header_of(type);
  std::vector<float> numbers(elements.size() / header.element_bytes);
  EXPECT_EQ(npy_numbers(header, elements, numbers), numbers.size()) << type;
  return numbers;
}

TEST(Npy, HasAHeader) {
  const NpyHeader header = parse_npy_dict(dict_of(">i2", "(3, 4, 5)"), "a.npy");
  EXPECT_EQ(header.kind, NpyKind::kSigned);
  EXPECT_EQ(header.element_bytes, 2U);
  EXPECT_TRUE(header.is_big_endian);
  EXPECT_THAT(header.shape, ElementsAre(3, 4, 5));
  EXPECT_EQ(header.row_elements(), 20U);
  EXPECT_EQ(header.text(), "(3, 4, 5) of >i2");
  EXPECT_EQ(header_of("<f4").text(), "(2,) of <f4");
}

TEST(Npy, HasItsHeaderInAnyOrderAndOfAnyVersion) {
  EXPECT_THAT(parse_npy_dict("{\"shape\":(3L,),'fortran_order':False,'descr':'|u1'}", "a").shape,
              ElementsAre(3));
  EXPECT_THAT(parse_npy_dict(dict_of("<f8", "()"), "a").shape, testing::IsEmpty());
  for (const std::uint8_t version : test::Bytes{1, 2, 3}) {
    const test::Bytes bytes = test::npy("<f4", "(1,)", {}, version);
    const NpyPrefix prefix = parse_npy_prefix(std::span(bytes).first(kNpyPrefixBytes), "a.npy");
    EXPECT_EQ(prefix.dict_begin + prefix.dict_bytes, bytes.size());
  }
}

TEST(Npy, ReadsEachKindOfElementInBothByteOrders) {
  EXPECT_THAT(numbers_of("|b1", {0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(numbers_of("|u1", {0, 255}), ElementsAre(0, 255));
  EXPECT_THAT(numbers_of("|i1", {127, 128}), ElementsAre(127, -128));
  for (const bool is_big : {false, true}) {
    const std::string order = is_big ? ">" : "<";
    const auto check = [&]<typename Element>(const char* kind, std::vector<Element> elements) {
      const std::vector<float> expected(elements.begin(), elements.end());
      EXPECT_EQ(numbers_of(order + kind, bytes_of_elements(elements, is_big)), expected) << kind;
    };
    check("i2", std::vector<std::int16_t>{-3, 258});
    check("u2", std::vector<std::uint16_t>{3, 65535});
    check("i4", std::vector<std::int32_t>{-3, 1 << 20});
    check("u4", std::vector<std::uint32_t>{3, 4000000000U});
    check("i8", std::vector<std::int64_t>{-3, std::int64_t{1} << 40U});
    check("u8", std::vector<std::uint64_t>{3, ~std::uint64_t{0} << 1U});
    check("f4", std::vector<float>{-0.1F, 1e30F});
    check("f8", std::vector<double>{-0.1, 1e-300, 3.4e38});
    // 1, -2, 65504, the smallest number, 0.333251953125
    EXPECT_THAT(
        numbers_of(order + "f2",
                   bytes_of_elements(std::vector<std::uint16_t>{0x3C00, 0xC000, 0x7BFF, 1, 0x3555},
                                     is_big)),
        ElementsAre(1, -2, 65504, 0x1p-24F, 0.333251953125F));
  }
}

TEST(Npy, FindsWhatIsNoFiniteNumberOf32Bits) {
  const auto place_of = [](const std::string& type, const test::Bytes& elements) {
    const NpyHeader header = header_of(type);
    std::vector<float> numbers(elements.size() / header.element_bytes);
    return npy_numbers(header, elements, numbers);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(place_of("<f8", bytes_of_elements(std::vector<double>{1, 2, 1e39})), 2U);
  EXPECT_EQ(place_of("<f8", bytes_of_elements(std::vector<double>{-kInfinity})), 0U);
  EXPECT_EQ(place_of("<f8", bytes_of_elements(std::vector<double>{1, std::nan("")})), 1U);
  EXPECT_EQ(place_of("<f2", bytes_of_elements(std::vector<std::uint16_t>{0, 0x7C00})), 1U);
  EXPECT_EQ(place_of("<f2", bytes_of_elements(std::vector<std::uint16_t>{0xFC01})), 0U);
}

TEST(Npy, CallsAClassTheSameOfAnyType) {
  const auto word = [](const std::string& type, const test::Bytes& element) {
    return npy_word(header_of(type), element);
  };
  EXPECT_EQ(word("|b1", {1}), "1");
  EXPECT_EQ(word("|i1", {255}), "-1");
  EXPECT_EQ(word(">i8", {0, 0, 0, 0, 0, 0, 0, 7}), "7");
  EXPECT_EQ(word("<u8", test::Bytes(8, 255)), "18446744073709551615");
  EXPECT_EQ(word("<f2", {0, 0x42}), "3");
  EXPECT_EQ(word("<f4", bytes_of_elements(std::vector<float>{-0.0F})), "0");
  EXPECT_EQ(word("<f4", bytes_of_elements(std::vector<float>{0.1F})), "0.1");
  EXPECT_EQ(word("<f8", bytes_of_elements(std::vector<double>{7})), "7");
}

TEST(Npy, RefusesElementsThatAreNoNumbers) {
  for (const char* const type : {"<U5", "|S3", "<c8", "<M8[ns]", "<f16", "|i4", "|f1", "<b2", "<i3",
                                 "i4", "", "<V8", "<i0", "<i9"}) {
    EXPECT_EQ(refusal_of_dict(dict_of(type)),
              "a.npy: its elements are " + std::string(type) +
                  "; bool, whole numbers of 1 to 8 bytes and floats of 2, 4 and 8 are read");
  }
  EXPECT_EQ(refusal_of_dict(dict_of("|O")),
            "a.npy: its elements are Python objects, which are refused because they can run code");
  EXPECT_EQ(refusal_of_dict("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
            "a.npy: its elements are records; one number each is expected");
}

TEST(Npy, RefusesFortransOrderAndShapesThatWrap) {
  EXPECT_EQ(refusal_of_dict("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}"),
            "a.npy: it is in Fortran's order; numpy.ascontiguousarray() makes the order that is "
            "read");
  for (const char* const shape : {"(4294967296, 4294967296)", "(9223372036854775807,)",
                                  "(0, 4294967296, 4294967296)", "(18446744073709551615,)"}) {
    EXPECT_EQ(refusal_of_dict(dict_of("<f4", shape)),
              "a.npy: its shape has more elements than a file can have");
  }
}

TEST(Npy, RefusesAHeaderThatIsNone) {
  for (const char* const dict :
       {"", "{", "{}", "()", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 3}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} {}"}) {
    EXPECT_THAT(refusal_of_dict(dict), HasSubstr("a.npy: its header ")) << dict;
  }
  EXPECT_EQ(refusal_of_dict("{'shape': (1,), 'shape': (2,)}"),
            "a.npy: its header has \"shape\"; descr, fortran_order and shape are expected, each "
            "once");
}

TEST(Npy, RefusesAPrefixThatIsNone) {
  const auto refusal = [](const test::Bytes& bytes) {
    return test::refusal_of([&] { static_cast<void>(parse_npy_prefix(bytes, "a.npy")); }, "/none");
  };
  test::Bytes bytes = test::npy("<f4", "(1,)", {});
  bytes.resize(kNpyPrefixBytes - 1);
  EXPECT_EQ(refusal(bytes), "a.npy: it does not begin like a NumPy array");
  EXPECT_EQ(refusal(test::bytes_of("PK\3\4 and more")),
            "a.npy: it does not begin like a NumPy array");
  EXPECT_EQ(refusal(test::bytes_of("\x93NUMPY\4\1....")),
            "a.npy: it has version 4.1 of NumPy's format; 1.0, 2.0 and 3.0 are read");
  EXPECT_EQ(refusal({0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 1, 0, 1, 0}),
            "a.npy: its header has 65537 bytes; 65536 at most are allowed");
}

TEST(Npy, AHeaderThatIsWrittenIsReadBack) {
  for (const std::vector<std::size_t>& shape :
       {std::vector<std::size_t>{}, {7}, {3, 4}, {3, 3, 16, 1234567}}) {
    const std::string header = encode_npy_header(shape);
    EXPECT_EQ(header.size() % 64, 0U);
    const NpyPrefix prefix = parse_npy_prefix(
        {reinterpret_cast<const std::uint8_t*>(header.data()), kNpyPrefixBytes}, "a.npy");
    EXPECT_EQ(prefix.dict_begin + prefix.dict_bytes, header.size());
    const NpyHeader read =
        parse_npy_dict(std::string_view(header).substr(prefix.dict_begin), "a.npy");
    EXPECT_EQ(read.type, "<f4");
    EXPECT_EQ(read.shape, std::vector<std::uint64_t>(shape.begin(), shape.end()));
  }
}

}  // namespace
}  // namespace disttf::data
