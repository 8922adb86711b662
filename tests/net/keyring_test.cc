#include "net/tls/keyring.h"

#include <gtest/gtest.h>

#include <string>

namespace disttf::net {
namespace {

const Secret kKeyOne{std::string(32, '1')};
const Secret kKeyTwo{std::string(32, '2')};
constexpr Peer kFirstPs{.cluster = {1}, .task = {.job = Job::kPs, .index = 0}};
constexpr Peer kSecondPs{.cluster = {1}, .task = {.job = Job::kPs, .index = 1}};
constexpr Peer kOfAnotherRun{.cluster = {2}, .task = {.job = Job::kPs, .index = 0}};

TEST(Keyring, OffersTheFirstAndAcceptsEach) {
  Keyring keys({kKeyTwo, kKeyOne});
  EXPECT_EQ(keys.offered().fingerprint(), kKeyTwo.fingerprint());
  EXPECT_TRUE(keys.find(kKeyOne.fingerprint()));
  EXPECT_TRUE(keys.find(kKeyTwo.fingerprint()));
  keys.set({kKeyOne});
  EXPECT_EQ(keys.offered().fingerprint(), kKeyOne.fingerprint());
  EXPECT_FALSE(keys.find(kKeyTwo.fingerprint()));
}

TEST(Keyring, APeerThatHasNeverTakenItsSecretNeverWill) {
  Keyring keys({kKeyOne, kKeyTwo});
  EXPECT_FALSE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  keys.agreed(kSecondPs);
  keys.agreed(kOfAnotherRun);
  EXPECT_FALSE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
}

TEST(Keyring, APeerThatHasTakenItBeforeMayDoSoAgain) {
  Keyring keys({kKeyOne});
  keys.agreed(kFirstPs);
  EXPECT_TRUE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  keys.set({kKeyTwo});
  EXPECT_TRUE(keys.may_be_changing(kKeyTwo.fingerprint(), kFirstPs));
}

// The key was offered before the file changed and refused after it.
TEST(Keyring, APeerMayTakeAnotherOneThanItWasOffered) {
  Keyring keys({kKeyOne});
  keys.set({kKeyTwo});
  EXPECT_TRUE(keys.may_be_changing(kKeyOne.fingerprint(), kFirstPs));
  EXPECT_FALSE(keys.may_be_changing(kKeyTwo.fingerprint(), kFirstPs));
}

}  // namespace
}  // namespace disttf::net
