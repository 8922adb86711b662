// Access control: the tokens of a file, as Authorization headers present them.
#include "net/http/access_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/data/scratch.h"

namespace disttf::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kOne(32, 'a');
const std::string kTwo = "another_token-of.34~characters+/==";

class AccessTokensTest : public testing::Test {
 protected:
  // Replaces the file by rename, as a user would.
  void write(const std::string& text, std::filesystem::perms mode = std::filesystem::perms(0600)) {
    data::test::write(scratch_.path() / "next", data::test::bytes_of(text));
    std::filesystem::permissions(scratch_.path() / "next", mode);
    std::filesystem::rename(scratch_.path() / "next", path_);
  }
  [[nodiscard]] std::string refused() const {
    try {
      static_cast<void>(AccessTokens(path_, {}));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  }

  const data::test::ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() / "tokens";
};

TEST_F(AccessTokensTest, AreSaidAsABearerOrAsAPassword) {
  write(kOne + "\n\n  " + kTwo + "\r\n");
  AccessTokens tokens(path_, {});
  EXPECT_EQ(tokens.offered(), kOne);
  for (const std::string& good : std::vector<std::string>{
           "Bearer " + kOne,
           "Bearer " + kTwo,
           "bearer  " + kOne + " ",
           // printf 'x:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' | base64, and without a name
           std::string("Basic eDphYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQ=="),
           std::string("basic OmFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"),
       }) {
    EXPECT_TRUE(tokens.admit(good)) << good;
  }
  for (const std::string& bad : std::vector<std::string>{
           std::string(),
           kOne,
           "Bearer",
           "Bearer ",
           "Bearer " + kOne + "a",
           "Bearer " + kOne.substr(1),
           "Bearer " + kOne + " " + kTwo,
           "Bearer " + kOne + "\n" + kTwo,
           "Token " + kOne,
           "Basic " + kOne,
           std::string("Basic"),
           std::string("Basic "),
           std::string("Basic ===="),
           // without a colon
           std::string("Basic YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="),
           // the token as the name
           std::string("Basic YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE6"),
           "Basic " + std::string(100'000, 'Y'),
       }) {
    EXPECT_FALSE(tokens.admit(bad)) << bad.substr(0, 100);
  }
}

TEST_F(AccessTokensTest, OfAFileThatIsNoneAreRefusedWithoutShowingThem) {
  EXPECT_EQ(refused(), "--token_file: \"" + path_ + "\" cannot be read: No such file or directory");
  write(kOne, std::filesystem::perms(0640));
  EXPECT_THAT(refused(), HasSubstr("its mode must be 0600 or 0400"));
  write("");
  EXPECT_THAT(refused(), HasSubstr("has 0 tokens: allowed are 1 to 64"));
  const std::string unseen = "a token with a character that is not visible, or not ASCII";
  for (const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
           {kOne.substr(1), "has a token of " + std::to_string(kOne.size() - 1) + " bytes"},
           {kOne + " " + kTwo, unseen},
           {kOne + "\xc3\xa9", unseen}}) {
    write(text);
    EXPECT_THAT(refused(), HasSubstr(sentence));
    EXPECT_THAT(refused(), testing::Not(HasSubstr("aaa")));
  }
  std::string many;
  for (int i = 0; i < 65; ++i) many += kOne + "\n";
  write(many);
  EXPECT_THAT(refused(), HasSubstr("has 65 tokens"));
  write(std::string(100'000, 'a'));
  EXPECT_THAT(refused(), HasSubstr("is too long"));
}

// The file is checked once a second.
TEST_F(AccessTokensTest, ComeAndGo) {
  write(kOne);
  std::string warned;
  AccessTokens tokens(path_, [&](std::string_view sentence) { warned = sentence; });
  EXPECT_TRUE(tokens.admit("Bearer " + kOne));
  const auto comes_to = [&](const std::string& token, bool admitted) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (tokens.admit("Bearer " + token) != admitted) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  };
  write(kTwo);
  EXPECT_TRUE(comes_to(kTwo, true));
  EXPECT_FALSE(tokens.admit("Bearer " + kOne));
  write("\n");
  EXPECT_TRUE(comes_to(kTwo, false)) << "no token is valid any more";
  EXPECT_EQ(tokens.offered(), "");
  write(kTwo);
  EXPECT_TRUE(comes_to(kTwo, true));
  EXPECT_EQ(warned, "");
  write("short");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (warned.empty() && std::chrono::steady_clock::now() < until) {
    EXPECT_TRUE(tokens.admit("Bearer " + kTwo));
  }
  EXPECT_THAT(warned, HasSubstr("; the previous tokens stay in use"));
  // A corrected file is accepted although its text is the same.
  warned.clear();
  write(kOne, std::filesystem::perms(0644));
  const auto warns_by = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (warned.empty() && std::chrono::steady_clock::now() < warns_by) {
    EXPECT_FALSE(tokens.admit("Bearer " + kOne));
  }
  EXPECT_THAT(warned, HasSubstr("its mode must be 0600 or 0400"));
  std::filesystem::permissions(path_, std::filesystem::perms(0600));
  EXPECT_TRUE(comes_to(kOne, true));
}

}  // namespace
}  // namespace disttf::net
