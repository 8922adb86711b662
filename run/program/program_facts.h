// What a user's program reports of itself, and the numbers that it reports: the JSON bodies of
// docs/program_protocol.md.
//
// Values and pure functions; callable from any thread. Readers take untrusted text, and throw
// std::invalid_argument with a part of a sentence: "VARIABLE: shape is [0], allowed is ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "math/evaluation.h"
#include "math/parameter_layout.h"
#include "run/run_config.h"
#include "run/task.h"

namespace disttf::roles {

// HELLO.
struct ProgramHello {
  std::string client;      // "python 1.0, torch 2.9"
  std::string data;        // the word for the data set; empty: none
  std::uint32_t rows = 0;  // of the data set; 0: not told
  bool evaluates = false;
  std::map<std::string, std::string> fingerprint;  // what the bits of a gradient depend on
};
[[nodiscard]] ProgramHello read_hello(std::string_view body);

// A number of rows in a sentence: "600"; "none" for 0, which stands for not given.
[[nodiscard]] std::string rows_text(std::uint32_t rows);

// VARIABLE. Its offset is not set.
[[nodiscard]] math::Variable read_variable(std::string_view body);

// Numbers with names, in the order of the names; GRADIENT and EVALUATION.
using ProgramNumbers = math::ToldNumbers;
inline constexpr std::size_t kMostProgramNumbers = 32;
// Empty: no body. Null is a number that is not finite: NaN.
[[nodiscard]] ProgramNumbers read_numbers(std::string_view body);
// Throws if the accuracy of an EVALUATION is not from 0 to 1. NaN passes.
void check_evaluation(const ProgramNumbers& numbers);

// WELCOME for this trainer of the run. `size`: floats of the parameter vector.
[[nodiscard]] std::string welcome_text(const RunConfig& config, const Task& task, std::size_t size);

// The layout of these variables. Throws std::invalid_argument for names that occur twice, and for
// none.
[[nodiscard]] math::ParameterLayout layout_of_program(const std::vector<math::Variable>& variables);

// Where two fingerprints differ, "torch is 2.9, it is 2.8 there"; empty: nowhere.
[[nodiscard]] std::string fingerprint_difference(const std::map<std::string, std::string>& mine,
                                                 const std::map<std::string, std::string>& theirs);

}  // namespace disttf::roles
