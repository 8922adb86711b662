// Arrays as a data set: the recognized names, images and rows of numbers, and the error messages.
#include "data/own/arrays.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "data/own/npy.h"
#include "data/own/own_data.h"
#include "data/own/row_source.h"
#include "math/random.h"
#include "tests/data/own/arrays_on_disk.h"
#include "tests/data/own/numbered_images.h"

namespace disttf::data {
namespace {

using test::Bytes;
using test::npy;
using test::NpzWriter;
using testing::ElementsAre;
using testing::HasSubstr;

class Arrays : public testing::Test {
 protected:
  std::filesystem::path archive() { return scratch_.path() / "a.npz"; }
  // [rows, 2, 3] bytes; all pixels of an image have the image's number as their value.
  static Bytes images(int rows) {
    Bytes elements;
    for (int row = 0; row < rows; ++row) {
      elements.insert(elements.end(), 6, static_cast<std::uint8_t>(row));
    }
    return npy("|u1", "(" + std::to_string(rows) + ", 2, 3)", elements);
  }
  // [rows] labels 0, 1, 2 in turn.
  static Bytes labels(int rows, const std::string& shape_end = ",)") {
    Bytes elements;
    for (int row = 0; row < rows; ++row) elements.push_back(static_cast<std::uint8_t>(row % 3));
    return npy("|u1", "(" + std::to_string(rows) + shape_end, elements);
  }
  static Bytes numbers(int rows) {
    Bytes elements;
    for (int row = 0; row < rows; ++row) {
      elements.insert(elements.end(), {0, static_cast<std::uint8_t>(row), 255, 255});
    }
    return npy(">i2", "(" + std::to_string(rows) + ", 2)", elements);
  }
  Dataset open(const OwnDataOptions& options) {
    OwnDataHooks hooks;
    hooks.cache_directory = scratch_.path() / "cache";
    hooks.purpose = static_cast<std::uint32_t>(math::Purpose::kHoldOut);
    hooks.random_bits = &math::random_bits;
    return open_own_data(options, hooks).dataset;
  }
  Dataset open() { return open({.path = archive()}); }
  std::string refusal(const OwnDataOptions& options) {
    return test::refusal_of([&] { static_cast<void>(open(options)); }, scratch_.path());
  }
  std::string refusal() { return refusal({.path = archive()}); }
  // Returns the error for an archive of these two arrays.
  std::string refusal(const Bytes& examples, const Bytes& labels) {
    NpzWriter(archive()).add("x.npy", examples).add("y.npy", labels);
    return refusal();
  }
  test::ScratchDirectory scratch_;
};

TEST_F(Arrays, OfBytesAreImages) {
  NpzWriter(archive())
      .add("x_train.npy", images(100), /*is_deflated=*/true)
      .add("y_train.npy", labels(100))
      .add("x_test.npy", images(4))
      .add("y_test.npy", labels(4), /*is_deflated=*/true);
  const Dataset dataset = open();
  EXPECT_EQ(dataset.name, "a");
  EXPECT_EQ(dataset.shape, (ImageShape{.height = 2, .width = 3, .channels = 1}));
  EXPECT_EQ(dataset.classes, 3U);
  EXPECT_THAT(dataset.class_names, ElementsAre("0", "1", "2"));
  EXPECT_EQ(dataset.train.rows(), 90U);
  EXPECT_EQ(dataset.validation.rows(), 10U);
  EXPECT_THAT(dataset.test.labels, ElementsAre(0, 1, 2, 0));
  EXPECT_TRUE(dataset.train.numbers.empty());
  EXPECT_TRUE(dataset.means.empty());
  test::expect_each_once(dataset);
  EXPECT_EQ(open().checksum, dataset.checksum) << "from what it was converted to";
}

TEST_F(Arrays, MayHaveChannels) {
  NpzWriter(archive())
      .add("images.npy", npy("|u1", "(20, 1, 2, 3)", Bytes(120, 7)))
      .add("labels.npy", labels(20, ", 1)"));
  EXPECT_EQ(open().shape, (ImageShape{.height = 1, .width = 2, .channels = 3}));
}

TEST_F(Arrays, OfRankTwoAreRowsOfNumbers) {
  NpzWriter(archive()).add("X.npy", numbers(20)).add("y.npy", labels(20));
  const Dataset dataset = open();
  EXPECT_EQ(dataset.shape.size(), 2U);
  EXPECT_EQ(dataset.train.rows(), 16U);
  EXPECT_EQ(dataset.train.numbers[1], -1);
  EXPECT_EQ(dataset.means[1], -1);
}

TEST_F(Arrays, MayHaveLabelsThatAreNumbers) {
  NpzWriter(archive())
      .add("X.npy", numbers(20))
      .add("y.npy", npy("<f8", "(20,)", Bytes(160, 0x40)));
  const Dataset dataset = open({.path = archive(), .label_is_number = true});
  EXPECT_EQ(dataset.classes, 0U);
  EXPECT_FLOAT_EQ(dataset.train.targets[0], 32.50196F);
}

TEST_F(Arrays, MayLieInAFolder) {
  std::filesystem::create_directory(scratch_.path() / "d");
  test::write(scratch_.path() / "d/train_images.npy", images(40));
  test::write(scratch_.path() / "d/train_labels.npy", labels(40));
  test::write(scratch_.path() / "d/val_images.NPY", images(5));
  test::write(scratch_.path() / "d/val_labels.npy", labels(5));
  test::write(scratch_.path() / "d/test_images.npy", images(4));
  test::write(scratch_.path() / "d/test_labels.npy", labels(4));
  test::write(scratch_.path() / "d/notes.npy", test::bytes_of("nothing"));
  const Dataset dataset = open({.path = scratch_.path() / "d"});
  EXPECT_EQ(dataset.name, "d");
  EXPECT_EQ(dataset.train.rows(), 40U);
  EXPECT_EQ(dataset.validation.rows(), 5U);
  EXPECT_EQ(dataset.test.rows(), 4U);
}

TEST_F(Arrays, AreConvertedAnewWhenTheFileHasChanged) {
  NpzWriter(archive()).add("X.npy", numbers(20)).add("y.npy", labels(20));
  const std::string checksum = open().checksum;
  NpzWriter(archive()).add("X.npy", numbers(40)).add("y.npy", labels(40));
  EXPECT_NE(open().checksum, checksum);
}

TEST(ArrayName, IsExamplesOrLabelsOfAPart) {
  const auto is = [](bool is_examples, std::optional<Part> part) {
    return std::optional(ArrayName{.is_examples = is_examples, .part = part});
  };
  EXPECT_EQ(parse_array_name("x_train"), is(true, Part::kTrain));
  EXPECT_EQ(parse_array_name("y_test"), is(false, Part::kTest));
  EXPECT_EQ(parse_array_name("X"), is(true, std::nullopt));
  EXPECT_EQ(parse_array_name("target"), is(false, std::nullopt));
  EXPECT_EQ(parse_array_name("val_images"), is(true, Part::kValidation));
  EXPECT_EQ(parse_array_name("Labels-VALID"), is(false, Part::kValidation));
  EXPECT_EQ(parse_array_name("train data"), is(true, Part::kTrain));
  for (const char* const name : {"", "train", "arr_0", "x_train_1", "target_names", "xtrain", "x_",
                                 "_x", "train_test", "x_y", "feature_names"}) {
    EXPECT_EQ(parse_array_name(name), std::nullopt) << name;
  }
}

TEST_F(Arrays, RefuseNamesThatDoNotFit) {
  NpzWriter(archive()).add("arr_0.npy", images(4)).add("arr_1.npy", labels(4));
  EXPECT_EQ(refusal(),
            "--data: a.npz has no arrays x_train and y_train, or X and y; what it has "
            "is arr_0, arr_1");
  NpzWriter(archive()).add("x_train.npy", images(4));
  EXPECT_EQ(refusal(), "--data: a.npz has x_train and no labels that belong to it");
  NpzWriter(archive()).add("y_test.npy", images(4));
  EXPECT_EQ(refusal(), "--data: a.npz has y_test and no examples that belong to it");
  NpzWriter(archive()).add("x.npy", images(4)).add("data.npy", images(4)).add("y.npy", labels(4));
  EXPECT_EQ(refusal(), "--data: a.npz has both data and x; one of them is allowed");
  NpzWriter(archive())
      .add("x.npy", images(4))
      .add("y.npy", labels(4))
      .add("x_train.npy", images(4))
      .add("y_train.npy", labels(4));
  EXPECT_EQ(refusal(),
            "--data: a.npz has both x and examples named train; only one of them is allowed");
  NpzWriter(archive()).add("x_test.npy", images(4)).add("y_test.npy", labels(4));
  EXPECT_EQ(refusal(), "--data: a.npz has no arrays to train on, such as x_train and y_train");
  test::write(scratch_.path() / "one.npy", numbers(4));
  EXPECT_EQ(refusal({.path = scratch_.path() / "one.npy"}),
            "--data: one.npy is one array without labels; use a folder with x.npy and y.npy, or "
            "one .npz");
}

TEST_F(Arrays, RefuseShapesThatDoNotFit) {
  EXPECT_EQ(refusal(npy("<f4", "(1, 2, 3)", Bytes(24)), labels(1)),
            "a.npz: x.npy: it is (1, 2, 3) of <f4; images are (rows, height, width) or (rows, "
            "height, width, channels) of |u1, and rows of numbers (rows, columns)");
  EXPECT_THAT(refusal(npy("<f4", "(1,)", Bytes(4)), labels(1)), HasSubstr("it is (1,) of <f4; "));
  EXPECT_THAT(refusal(npy("<f4", "()", Bytes(4)), labels(1)), HasSubstr("it is () of <f4; "));
  EXPECT_EQ(refusal(npy("|u1", "(1, 3, 8, 8)", Bytes(192)), labels(1)),
            "a.npz: x.npy: it is (1, 3, 8, 8) of |u1, images with their channels first; "
            "numpy.moveaxis(x, 1, -1) makes them last");
  for (const char* const shape :
       {"(0, 0, 3)", "(1, 5, 5, 5)", "(1, 5, 5, 0)", "(1, 9000, 9000)", "(1, 4294967296, 65536)"}) {
    EXPECT_THAT(refusal(npy("|u1", shape, {}), labels(1)),
                HasSubstr("images have 1 to 4 channels, last, and at most 64 MiB"))
        << shape;
  }
  EXPECT_EQ(refusal(npy("<f4", "(1, 0)", {}), labels(1)),
            "a.npz: x.npy: it has 0 columns; 1 to 262144 are allowed");
  EXPECT_EQ(refusal(npy("<f4", "(1, 262145)", {}), labels(1)),
            "a.npz: x.npy: it has 262145 columns; 1 to 262144 are allowed");
  EXPECT_EQ(refusal(numbers(4), labels(3)),
            "a.npz: y.npy: it has 3 labels for 4 examples; as many are expected, and one at least");
  EXPECT_THAT(refusal(numbers(0), labels(0)), HasSubstr("it has 0 labels for 0 examples"));
  EXPECT_EQ(refusal(numbers(1), npy("|u1", "(1, 10)", Bytes(10))),
            "a.npz: y.npy: it is (1, 10) of |u1; one label a row is expected, which argmax(axis=1) "
            "makes of classes that have a column each");
  EXPECT_EQ(refusal(numbers(1), npy("|u1", "(1, 1, 2)", Bytes(2))),
            "a.npz: y.npy: it is (1, 1, 2) of |u1; labels are (rows,) or (rows, 1)");
}

TEST_F(Arrays, RefuseNumbersThatAreNone) {
  Bytes elements(4 * 4 * 2);
  elements[4 * 5 + 3] = 0x7F;  // 0x7F800000 is infinity
  elements[4 * 5 + 2] = 0x80;
  EXPECT_EQ(refusal(npy("<f4", "(4, 2)", elements), labels(4)),
            "a.npz: x.npy: row 2, column 2: it is not a number of 32 bits");
  EXPECT_EQ(refusal(npy("<f4", "(4, 2)", Bytes(32)), npy("<f4", "(4,)", Bytes(16, 255))),
            "a.npz: y.npy: row 0: the label is not a number of 32 bits");
}

TEST_F(Arrays, RefuseFilesThatAreShorterOrLongerThanTheirShape) {
  Bytes longer = numbers(4);
  longer.push_back(0);
  EXPECT_EQ(refusal(longer, labels(4)),
            "a.npz: x.npy: it is longer than its shape says, (4, 2) of >i2");
  longer.resize(longer.size() - 2);
  EXPECT_EQ(refusal(longer, labels(4)),
            "a.npz: x.npy: it is shorter than its shape says, (4, 2) of >i2");
  longer.resize(20);
  EXPECT_EQ(refusal(longer, labels(4)), "a.npz: x.npy: it is shorter than its header says");
  // A billion rows that the file does not contain must not take memory.
  EXPECT_THAT(refusal(npy("|b1", "(1000000000, 2)", Bytes(8)), npy("|b1", "(1000000000,)", {})),
              testing::AnyOf(HasSubstr("shorter than its shape says"), HasSubstr("MiB free")));
}

// An archive of a kilobyte that declares 2^48 rows.
TEST_F(Arrays, AreNotConvertedWhereThereIsNoRoom) {
  EXPECT_THAT(refusal(npy("|b1", "(281474976710656, 2)", Bytes(8)),
                      npy("|b1", "(281474976710656,)", Bytes(4))),
              testing::MatchesRegex("--data_dir: cache has [0-9]+ MiB free, and a.npz becomes "
                                    "2147483648 MiB of arrays"));
}

TEST_F(Arrays, RefuseArchivesThatAreBroken) {
  test::write(archive(), test::bytes_of("no archive"));
  EXPECT_EQ(refusal(), "a.npz: it is not a ZIP archive, as .npz are");
  NpzWriter(archive()).add("x.npy", numbers(40)).add("y.npy", labels(40));
  Bytes bytes = test::read(archive());
  const std::string text(bytes.begin(), bytes.end());
  bytes[text.find("\xFF\xFF\0\1\xFF\xFF", 0, 6)] ^= 1U;  // of the numbers
  test::write(archive(), bytes);
  EXPECT_EQ(refusal(), "a.npz: x.npy: the zip file is corrupt");
}

TEST_F(Arrays, HaveNoColumnsToChoose) {
  NpzWriter(archive()).add("x.npy", numbers(40)).add("y.npy", labels(40));
  EXPECT_EQ(refusal({.path = archive(), .label_column = "1"}),
            "--data: a.npz has arrays; --label_column, --ignore_columns and --skip_lines are "
            "allowed only with text tables");
  NpzWriter(archive()).add("x.npy", images(40)).add("y.npy", labels(40));
  EXPECT_EQ(refusal({.path = archive(), .label_is_number = true}),
            "--data: a.npz has images, which have no columns, lines or labels that are numbers");
}

// NPY: the supported headers and elements, and the error messages for all others.

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
