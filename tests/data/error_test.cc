#include "data/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace disttf::data {
namespace {

constexpr int kLast = static_cast<int>(DataError::kBadRecords);

TEST(DataError, EveryCodeHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  for (int value = 1; value <= kLast; ++value) {
    const std::string message = data_category().message(value);
    EXPECT_EQ(message.find("unknown"), std::string::npos) << value;
    EXPECT_TRUE(messages.insert(message).second) << value << ": " << message;
  }
}

TEST(DataError, ValuesThatAreNoCodeSaySo) {
  EXPECT_EQ(data_category().message(0), "unknown data error 0");
  EXPECT_EQ(data_category().message(kLast + 1), "unknown data error " + std::to_string(kLast + 1));
}

TEST(DataError, ConvertsToAnErrorCodeThatIsSet) {
  const std::error_code code = DataError::kBadLabel;
  EXPECT_TRUE(code);
  EXPECT_EQ(code, DataError::kBadLabel);
  EXPECT_NE(code, DataError::kWrongSize);
}

}  // namespace
}  // namespace disttf::data
