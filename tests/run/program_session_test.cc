// A task and its programs: what passes between them, and what happens when one dies, hangs or sends
// what it must not.
#include "run/program/program_session.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "math/program_layout.h"
#include "run/outcome.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

class ProgramSessionTest : public testing::Test {
 protected:
  // What the session had done since the last call, one word each.
  std::vector<std::string> done() {
    std::vector<std::string> words;
    session_.effects().drain([&words](const auto& effect) {
      using Effect = std::decay_t<decltype(effect)>;
      if constexpr (std::is_same_v<Effect, SendToProgram>) {
        words.push_back(name_of(effect.message.kind));
      } else if constexpr (std::is_same_v<Effect, SendToSupervisor>) {
        words.push_back("to supervisor: " + name_of(effect.message.kind));
      } else if constexpr (std::is_same_v<Effect, RowsAsked>) {
        words.push_back("rows of " + std::to_string(effect.rows));
      } else {
        words.push_back("note: " + effect.text);
      }
    });
    return words;
  }
  void send(const ProgramMessage& message, const std::string& body = {}) {
    session_.packet({.message = message, .body = std::as_bytes(std::span(body))}, now_);
  }
  // Returns the sentence with which the task fails.
  std::string failure_of(const ProgramMessage& message, const std::string& body = {}) {
    return sentence_of<Failure>([&] { send(message, body); }, "no failure");
  }
  void tell_layout(const std::string& shape = "[3]") {
    send({.kind = ProgramKind::kHello}, R"({"protocol": 1, "data": "mnist", "rows": 100})");
    send({.kind = ProgramKind::kVariable}, R"({"name": "w", "shape": )" + shape + "}");
    send({.kind = ProgramKind::kLayout, .count = 1});
  }
  void welcome_first() {
    session_.started(1, now_);
    tell_layout();
    session_.welcome("{}", now_);
    done();
  }
  void compute(std::uint64_t step) {
    session_.ask({.kind = ProgramKind::kCompute, .step = step, .slot = 1}, now_);
  }
  void answer(std::uint64_t step) {
    send({.kind = ProgramKind::kGradient, .step = step, .slot = 1, .value = 0.5});
  }

  ProgramSession session_{60s};
  ProgramSession::TimePoint now_{1h};
};

TEST_F(ProgramSessionTest, TakesTheLayoutAndWelcomesTheProgramOnceTheRunIsKnown) {
  session_.started(1, now_);
  EXPECT_FALSE(session_.has_layout());
  tell_layout();
  ASSERT_TRUE(session_.has_layout());
  EXPECT_EQ(session_.variables().at(0).name, "w");
  EXPECT_EQ(session_.hello().data, "mnist");
  EXPECT_EQ(session_.rows(), 100U);
  EXPECT_TRUE(done().empty());
  session_.welcome("{}", now_);
  EXPECT_EQ(done(), std::vector<std::string>{"WELCOME"});
}

TEST_F(ProgramSessionTest, PassesTheAnswerOnAndTellsTheSupervisorOnceOfTheFirstStep) {
  welcome_first();
  compute(7);
  EXPECT_EQ(done(), std::vector<std::string>{"COMPUTE"});
  EXPECT_FALSE(session_.answer());
  send({.kind = ProgramKind::kGradient, .step = 7, .slot = 1, .value = 0.5}, R"({"norm": 2})");
  ASSERT_TRUE(session_.answer());
  EXPECT_EQ(session_.answer()->loss, 0.5);
  EXPECT_EQ(session_.answer()->numbers, (ProgramNumbers{{"norm", 2}}));
  EXPECT_EQ(done(), std::vector<std::string>{"to supervisor: STEADY"});
  compute(8);
  answer(8);
  EXPECT_EQ(done(), std::vector<std::string>{"COMPUTE"});
}

TEST_F(ProgramSessionTest, TellsTheSupervisorOfTheHundredthStepOfEachProgram) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    session_.started(number, now_);
    tell_layout();
    if (number == 1) {
      session_.welcome("{}", now_);
    }
    std::vector<std::uint64_t> told_at;
    for (std::uint64_t step = 0; step < 3 * kSettledSteps; ++step) {
      compute(step);
      done();
      answer(step);
      if (!done().empty()) {
        told_at.push_back(step);
      }
    }
    EXPECT_EQ(told_at, (std::vector<std::uint64_t>{0, kSettledSteps - 1}));
    session_.ended(number, /*was_killed=*/true);
  }
}

TEST_F(ProgramSessionTest, AsksTheNextProgramWhatTheDeadOneHasNotAnswered) {
  welcome_first();
  compute(7);
  done();
  session_.ended(1, /*was_killed=*/true);
  session_.started(2, now_);
  done();
  tell_layout();
  EXPECT_EQ(done(), (std::vector<std::string>{"WELCOME", "COMPUTE"}));
  answer(7);
  EXPECT_TRUE(session_.answer());
}

TEST_F(ProgramSessionTest, DoesNotAskTheNextProgramWhatIsAnswered) {
  welcome_first();
  compute(7);
  answer(7);
  done();
  session_.started(2, now_);
  done();
  tell_layout();
  EXPECT_EQ(done(), std::vector<std::string>{"WELCOME"});
}

TEST_F(ProgramSessionTest, TellsTheSupervisorWhichProgramIsToldTheEndOfTheRun) {
  const auto released = [this] {
    session_.end(9);
    std::optional<ProgramMessage> message;
    session_.effects().drain([&](const auto& effect) {
      if constexpr (std::is_same_v<std::decay_t<decltype(effect)>, SendToSupervisor>) {
        message = effect.message;
      }
    });
    return message;
  };
  welcome_first();
  EXPECT_EQ(released(), (ProgramMessage{.kind = ProgramKind::kRelease, .step = 1}));
  EXPECT_TRUE(session_.is_released());
}

// What follows its loop is to run, although the program before it was killed as the run ended.
TEST_F(ProgramSessionTest, TellsTheEndToTheProgramThatIsStartedAgain) {
  welcome_first();
  session_.closed({}, now_);
  session_.end(9);
  session_.ended(1, /*was_killed=*/true);
  session_.started(2, now_);
  EXPECT_TRUE(done().empty());
  EXPECT_FALSE(session_.is_released());
  tell_layout();
  EXPECT_EQ(done(), (std::vector<std::string>{"WELCOME", "to supervisor: RELEASE", "END"}));
  EXPECT_TRUE(session_.is_released());
}

TEST_F(ProgramSessionTest, WaitsForNoProgramAfterOneThatHasExitedByItself) {
  welcome_first();
  session_.closed({}, now_);
  session_.end(9);
  EXPECT_TRUE(done().empty());
  session_.ended(1, /*was_killed=*/false);
  EXPECT_EQ(done(), std::vector<std::string>{"to supervisor: RELEASE"});
  EXPECT_TRUE(session_.is_released());
}

TEST_F(ProgramSessionTest, WaitsForNoProgramAfterOneThatHadExitedByItself) {
  welcome_first();
  session_.ended(1, /*was_killed=*/false);
  session_.end(9);
  EXPECT_EQ(done(), std::vector<std::string>{"to supervisor: RELEASE"});
}

TEST_F(ProgramSessionTest, IgnoresWhatAProgramThatHasEndedHadSentBefore) {
  session_.started(1, now_);
  session_.ended(1, /*was_killed=*/true);
  send({.kind = ProgramKind::kHello}, R"({"protocol": 1})");
  EXPECT_FALSE(session_.has_layout());
  EXPECT_EQ(failure_of({.kind = ProgramKind::kFailed}, "why"), "why");
}

TEST_F(ProgramSessionTest, IgnoresTheEndOfAProgramThatWasReplaced) {
  welcome_first();
  session_.started(2, now_);
  tell_layout();
  done();
  session_.ended(1, /*was_killed=*/true);
  compute(3);
  EXPECT_EQ(done(), std::vector<std::string>{"COMPUTE"});
}

TEST_F(ProgramSessionTest, StartsAWelcomedProgramAgainForAnotherRun) {
  welcome_first();
  session_.restart();
  EXPECT_EQ(done(), std::vector<std::string>{"to supervisor: RESTART"});
  session_.welcome("{}", now_);
  EXPECT_TRUE(done().empty());
  session_.started(2, now_);
  tell_layout();
  EXPECT_EQ(done(), std::vector<std::string>{"WELCOME"});
}

TEST_F(ProgramSessionTest, RefusesAnotherLayoutOfTheNextProgram) {
  welcome_first();
  session_.started(2, now_);
  EXPECT_THROW(tell_layout("[4]"), Failure);
}

TEST_F(ProgramSessionTest, RefusesAnotherNumberOfRowsOfTheNextProgram) {
  welcome_first();
  session_.started(2, now_);
  EXPECT_EQ(
      failure_of({.kind = ProgramKind::kHello}, R"({"protocol": 1, "data": "mnist", "rows": 50})"),
      "the program sent HELLO: rows is 50, of the program before it was 100");
  EXPECT_EQ(failure_of({.kind = ProgramKind::kHello}, R"({"protocol": 1, "data": "mnist"})"),
            "the program sent HELLO: rows is none, of the program before it was 100");
}

TEST_F(ProgramSessionTest, RefusesAProgramWithoutVariables) {
  session_.started(1, now_);
  send({.kind = ProgramKind::kHello}, R"({"protocol": 1})");
  EXPECT_EQ(failure_of({.kind = ProgramKind::kLayout, .count = 0}),
            "the program sent no variables, allowed are 1 to 65536");
}

TEST_F(ProgramSessionTest, RefusesAnAccuracyThatIsNoShare) {
  const auto evaluate = [this](const std::string& accuracy) {
    welcome_first();
    session_.ask({.kind = ProgramKind::kEvaluate, .step = 7}, now_);
    return failure_of({.kind = ProgramKind::kEvaluation, .step = 7},
                      "{\"accuracy\": " + accuracy + "}");
  };
  for (const char* const good : {"0", "0.5", "1", "null"}) {
    EXPECT_EQ(evaluate(good), "no failure") << good;
    session_.restart();
  }
  EXPECT_EQ(evaluate("5"), "the program sent EVALUATION: accuracy is 5.0, allowed is from 0 to 1");
  session_.restart();
  EXPECT_EQ(evaluate("-0.25"),
            "the program sent EVALUATION: accuracy is -0.25, allowed is from 0 to 1");
}

TEST_F(ProgramSessionTest, FailsWithTheSentenceOfTheProgram) {
  welcome_first();
  compute(7);
  EXPECT_EQ(failure_of({.kind = ProgramKind::kFailed}, "train.py:42: ValueError: x\n\x1b[31m"),
            "train.py:42: ValueError: x  [31m");
}

TEST_F(ProgramSessionTest, NamesAFailureWithoutASentence) {
  welcome_first();
  EXPECT_EQ(failure_of({.kind = ProgramKind::kFailed}),
            "the program sent FAILED without a sentence");
}

TEST_F(ProgramSessionTest, RefusesWhatWasNotAsked) {
  welcome_first();
  EXPECT_EQ(failure_of({.kind = ProgramKind::kGradient, .step = 7, .slot = 1}),
            "the program sent GRADIENT, nothing was asked");
  compute(7);
  EXPECT_EQ(failure_of({.kind = ProgramKind::kEvaluation, .step = 7}),
            "the program sent EVALUATION, asked was COMPUTE");
  EXPECT_EQ(failure_of({.kind = ProgramKind::kGradient, .step = 6, .slot = 1}),
            "the program sent GRADIENT of step 6 and slot 1, asked was step 7 and slot 1");
  EXPECT_EQ(failure_of({.kind = static_cast<ProgramKind>(99)}),
            "the program sent a message of kind 99, asked was COMPUTE");
}

TEST_F(ProgramSessionTest, RefusesAnotherOrderOfTheFirstMessages) {
  session_.started(1, now_);
  EXPECT_EQ(failure_of({.kind = ProgramKind::kLayout}), "the program sent LAYOUT instead of HELLO");
  send({.kind = ProgramKind::kHello}, R"({"protocol": 1})");
  EXPECT_EQ(failure_of({.kind = ProgramKind::kGradient}),
            "the program sent GRADIENT instead of VARIABLE or LAYOUT");
  EXPECT_EQ(failure_of({.kind = ProgramKind::kLayout, .count = 2}),
            "the program sent LAYOUT: count is 2, the number of VARIABLE before it is 0");
}

TEST_F(ProgramSessionTest, AnswersWhatTheProgramAsksOfRows) {
  welcome_first();
  compute(7);
  done();
  send({.kind = ProgramKind::kAskRows, .step = 9, .count = 50});
  EXPECT_EQ(done(), std::vector<std::string>{"rows of 50"});
  EXPECT_EQ(session_.rows(), 50U);
  EXPECT_NE(failure_of({.kind = ProgramKind::kAskRows, .count = 0}).find("count is 0"),
            std::string::npos);
}

TEST_F(ProgramSessionTest, TakesAProgramThatDoesNotAnswerForHung) {
  welcome_first();
  compute(0);
  answer(0);
  compute(1);
  done();
  now_ += 59s;
  session_.time(now_);
  EXPECT_TRUE(done().empty());
  now_ += 1s;
  session_.time(now_);
  const std::vector<std::string> words = done();
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[1], "to supervisor: RESTART");
  // Once is enough.
  session_.time(now_ + 1h);
  EXPECT_TRUE(done().empty());
}

TEST_F(ProgramSessionTest, TakesAProgramThatDoesNotJoinForHung) {
  session_.started(1, now_);
  EXPECT_EQ(session_.deadline(), now_ + 600s);
  send({.kind = ProgramKind::kHello}, R"({"protocol": 1})");
  now_ += 600s;
  session_.time(now_);
  EXPECT_EQ(done(), (std::vector<std::string>{
                        "note: The program has not told its variables, as its client does when it "
                        "joins, for 600 s: it counts as hung and is started again",
                        "to supervisor: RESTART"}));
  session_.started(2, now_);
  EXPECT_EQ(session_.deadline(), now_ + 600s) << "the next one has the same time";
  tell_layout();
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
}

TEST_F(ProgramSessionTest, TakesAProgramThatClosesItsSocketAndStaysForHung) {
  welcome_first();
  session_.closed({}, now_);
  compute(3);
  now_ += 60s;
  session_.time(now_);
  EXPECT_EQ(done(), (std::vector<std::string>{
                        "note: The program has closed its socket, and has not ended for 60 s: it "
                        "counts as hung and is started again",
                        "to supervisor: RESTART"}));
  session_.ended(1, /*was_killed=*/true);
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
}

// The task may read the supervisor's message first.
TEST_F(ProgramSessionTest, DoesNotTakeAProgramThatHasEndedForHung) {
  welcome_first();
  compute(3);
  session_.ended(1, /*was_killed=*/false);
  session_.closed({}, now_);
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
}

// The program may have been suspended, too, and then needs a moment to continue.
TEST_F(ProgramSessionTest, DoesNotCountTheTimeOfASuspension) {
  welcome_first();
  compute(0);
  answer(0);
  compute(1);
  const auto asked = now_;
  now_ += 50s;
  session_.forgive(40s, now_);
  EXPECT_EQ(session_.deadline(), asked + 100s);
  now_ = asked + 1099s;
  session_.forgive(1000s, now_);
  EXPECT_EQ(session_.deadline(), now_ + kThawGrace);
  answer(1);
  session_.forgive(1s, now_);
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
}

TEST_F(ProgramSessionTest, GivesTheFirstGradientAndEvaluationsTenTimesAsLong) {
  welcome_first();
  compute(0);
  EXPECT_EQ(session_.deadline(), now_ + 600s);
  answer(0);
  session_.ask({.kind = ProgramKind::kEvaluate, .step = 1}, now_);
  EXPECT_EQ(session_.deadline(), now_ + 600s);
}

TEST_F(ProgramSessionTest, WaitsForTwentyTimesTheUsualTimeOfAGradient) {
  welcome_first();
  compute(0);
  answer(0);
  for (std::uint64_t step = 1; step < 10; ++step) {
    compute(step);
    now_ += 10s;
    answer(step);
  }
  compute(10);
  EXPECT_EQ(session_.deadline(), now_ + 200s);
}

TEST_F(ProgramSessionTest, NeverTakesAProgramForHungWithATimeoutOf0) {
  ProgramSession patient(0s);
  std::swap(session_, patient);
  welcome_first();
  compute(0);
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
  session_.started(2, now_);
  EXPECT_EQ(session_.deadline(), ProgramSession::TimePoint::max());
}

TEST_F(ProgramSessionTest, TellsTheSupervisorOfTheEndBeforeTheProgram) {
  welcome_first();
  session_.end(20);
  EXPECT_EQ(done(), (std::vector<std::string>{"to supervisor: RELEASE", "END"}));
}

TEST_F(ProgramSessionTest, WaitsForTheSupervisorWhenTheSocketIsClosed) {
  welcome_first();
  compute(7);
  done();
  session_.closed({}, now_);
  EXPECT_TRUE(done().empty());
  EXPECT_THROW(session_.closed("a packet of 3 bytes", now_), Failure);
}

// ---- what the bodies say

TEST(ProgramFacts, OfAVariableAreChecked) {
  const math::Variable variable =
      read_variable(R"({"name": "bn.mean", "shape": [2, 3], "momentum": 0.9})");
  EXPECT_EQ(variable.shape, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(variable.momentum, 0.9F);
  EXPECT_FALSE(variable.decays);
  EXPECT_EQ(read_variable(R"({"name": "s", "shape": [], "rate_factor": 0.5})").rate_factor, 0.5F);
  for (const char* const wrong :
       {"", "[]", "{}", R"({"name": "w"})", R"({"name": "w", "shape": [0]})",
        R"({"name": "w", "shape": [-1]})", R"({"name": "w", "shape": [4294967296, 4294967296]})",
        R"({"name": "a b", "shape": [1]})", R"({"name": "", "shape": [1]})",
        R"({"name": "w", "shape": [1], "momentum": 1})",
        R"({"name": "w", "shape": [1], "rate_factor": -1})",
        R"({"name": "w", "shape": [1], "decays": 1})", R"({"name": 3, "shape": [1]})"}) {
    EXPECT_THROW(static_cast<void>(read_variable(wrong)), std::invalid_argument) << wrong;
  }
}

TEST(ProgramFacts, OfAVariableMayHaveAsManyDimensionsAsALayout) {
  const auto of = [](std::size_t dimensions) {
    std::string shape = "1";
    for (std::size_t each = 1; each < dimensions; ++each) {
      shape += ", 1";
    }
    return read_variable(R"({"name": "w", "shape": [)" + shape + "]}").shape.size();
  };
  EXPECT_EQ(of(math::kMaxDimensions), math::kMaxDimensions);
  EXPECT_THROW(static_cast<void>(of(math::kMaxDimensions + 1)), std::invalid_argument);
}

TEST(ProgramFacts, OfTwoFingerprintsDifferWhereOneLacksAText) {
  EXPECT_EQ(fingerprint_difference({{"torch", "2.9"}}, {}), "torch is 2.9, it is nothing there");
  EXPECT_EQ(fingerprint_difference({}, {{"torch", "2.9"}}), "torch is nothing, it is 2.9 there");
  EXPECT_EQ(fingerprint_difference({{"torch", "2.9"}}, {{"torch", "2.9"}}), "");
}

TEST(ProgramFacts, OfAHelloAreChecked) {
  const ProgramHello hello = read_hello(
      R"({"protocol": 1, "client": "c", "evaluates": true, "fingerprint": {"torch": "2.9"}})");
  EXPECT_TRUE(hello.evaluates);
  EXPECT_EQ(hello.fingerprint.at("torch"), "2.9");
  for (const char* const wrong :
       {"{}", R"({"protocol": 2})", R"({"protocol": 1, "data": "a b"})",
        R"({"protocol": 1, "rows": 4294967296})", R"({"protocol": 1, "rows": 0})",
        R"({"protocol": 1, "fingerprint": [1]})"}) {
    EXPECT_THROW(static_cast<void>(read_hello(wrong)), std::invalid_argument) << wrong;
  }
}

TEST(ProgramFacts, ThatAreNoJsonAreShown) {
  for (const char* const wrong : {R"({"norm": NaN})", R"({"norm": 1e999})", "{\"norm\xff\": 1}"}) {
    std::string sentence;
    try {
      static_cast<void>(read_numbers(wrong));
    } catch (const std::invalid_argument& error) {
      sentence = error.what();
    }
    EXPECT_TRUE(sentence.starts_with("the numbers: the body is \"{")) << sentence;
    EXPECT_TRUE(sentence.ends_with(
        ", allowed is a JSON object in UTF-8, with null for a number that is not finite"))
        << sentence;
  }
}

TEST(ProgramFacts, AreAtMost32Numbers) {
  std::string text = "{";
  for (int each = 0; each < 33; ++each) {
    text += (each == 0 ? "\"n" : ", \"n") + std::to_string(each) + "\": 1";
  }
  EXPECT_THROW(static_cast<void>(read_numbers(text + "}")), std::invalid_argument);
  EXPECT_TRUE(read_numbers("").empty());
  EXPECT_THROW(static_cast<void>(read_numbers(R"({"a": "b"})")), std::invalid_argument);
}

TEST(ProgramFacts, OfTheRunHaveAllThatDecidesOnAnUpdate) {
  RunConfig config;
  config.optimizer = {
      .kind = math::OptimizerKind::kSgd, .learning_rate = 0.1F, .weight_decay = 0.25F};
  config.rate_decay = math::RateDecay::kCosine;
  config.warmup_steps = 7;
  config.clip_norm = 2;
  Task task;
  task.cluster.workers = {{.host = "w0", .port = 1}};
  task.self = {.job = net::Job::kWorker, .index = 0};
  EXPECT_THAT(welcome_text(config, task, 16),
              testing::AllOf(testing::HasSubstr(R"("optimizer":"sgd")"),
                             testing::HasSubstr(R"("learning_rate":0.1,)"),
                             testing::HasSubstr(R"("learning_rate_decay":"cosine")"),
                             testing::HasSubstr(R"("warmup_steps":7)"),
                             testing::HasSubstr(R"("weight_decay":0.25)"),
                             testing::HasSubstr(R"("clip_norm":2)")));
}

}  // namespace
}  // namespace disttf::roles
