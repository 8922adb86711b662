// A setting of a run, as one row of the table in settings.cc: its name, its allowed values, the
// member of RunConfig that holds it, and its description for users.
//
// Code that handles settings by name uses the rows: the command line and the configuration file
// (main/setting_flags.h), the published JSON, contradictions and differences (to_json() and the
// functions after it in run_config.h), the bounds of each value (validate()), --help and
// docs/flags.md. So adding a setting takes a row and the member that it fills, and then the code
// that uses it.
//
// The settings of a run are those that all its tasks share: the chief publishes its own, and no
// task may have been given others. What each task chooses for itself (its threads, its log, its
// files) is not a row.
//
// Constant data and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "run/run_config.h"

namespace disttf::roles {

// Accesses a member of a RunConfig, by one lambda for reading and writing:
//   FieldRef<float>([](auto& run) -> auto& { return run.optimizer.momentum; })
template <typename T>
class FieldRef {
 public:
  // The lambda captures nothing. (It is called and not converted: clang 14 cannot convert one with
  // a deduced result.)
  template <typename Lambda>
  requires std::is_invocable_r_v<T&, Lambda, RunConfig&>
  constexpr explicit(false) FieldRef(Lambda /*field*/) noexcept
      : writable_([](RunConfig& run) -> T& { return Lambda()(run); }),
        readable_([](const RunConfig& run) -> const T& { return Lambda()(run); }) {}

  [[nodiscard]] T& in(RunConfig& run) const { return writable_(run); }
  [[nodiscard]] const T& in(const RunConfig& run) const { return readable_(run); }

 private:
  T& (*writable_)(RunConfig&);
  const T& (*readable_)(const RunConfig&);
};

// ---- The kinds of values ----

// A whole number. In JSON the same.
struct WholeNumber {
  FieldRef<std::uint64_t> field;
  std::uint64_t least = 0;
  std::uint64_t most = kMaxCount;
  // The configuration may hold 0 below `least`: not set. Users cannot write that.
  bool zero_is_unset = false;
};

// A whole number, or none. In JSON the number, or null.
struct OptionalNumber {
  FieldRef<std::optional<std::uint64_t>> field;
  std::uint64_t least = 0;
  std::uint64_t most = kMaxCount;
};

// A decimal number. In JSON the shortest one that reads back as the same float.
struct Fraction {
  enum class Range : std::uint8_t {
    kAboveZero,   // finite
    kZeroOrMore,  // finite
    kZeroToBelowOne
  };
  FieldRef<float> field;
  Range range = Range::kAboveZero;
};

// True or false. In JSON the same.
struct Switch {
  FieldRef<bool> field;
};

// One of some names: an enumeration whose values count from 0. In JSON the name.
class Choice {
 public:
  // names[i] is the name of enumerator i. `automatic`, if set, is the word for "each task finds it
  // out"; it is not a value.
  template <typename Lambda>
  constexpr Choice(Lambda /*field*/, std::span<const std::string_view> names,
                   std::string_view automatic = {}) noexcept
      : get_([](const RunConfig& run) { return static_cast<std::size_t>(Lambda{}(run)); }),
        set_([](RunConfig& run, std::size_t value) {
          auto& field = Lambda{}(run);
          field = static_cast<std::remove_cvref_t<decltype(field)>>(value);
        }),
        names_(names),
        automatic_(automatic) {}

  [[nodiscard]] std::string_view name(const RunConfig& run) const { return names_[get_(run)]; }
  // Returns false if there is no such name.
  [[nodiscard]] bool set(RunConfig& run, std::string_view name) const;
  [[nodiscard]] std::span<const std::string_view> names() const noexcept { return names_; }
  [[nodiscard]] std::string_view automatic() const noexcept { return automatic_; }

 private:
  std::size_t (*get_)(const RunConfig&);
  void (*set_)(RunConfig&, std::size_t);
  std::span<const std::string_view> names_;
  std::string_view automatic_;
};

// A model: a name, or a list of layers, which users write into a model file (main/model_file.h), or
// the variables of a user's program. In JSON the name, a list of objects, or an object
// (run/config_json.h).
struct Model {
  FieldRef<math::ModelSpec> field;
};

// Whole numbers between commas. In JSON a list.
struct NumberList {
  FieldRef<std::vector<std::size_t>> field;
  std::uint64_t least = 0;  // of each
  std::uint64_t most = kMaxCount;
  std::size_t most_entries = 0;
};

// "none" or "topk:SHARE" (compress_from_name). In JSON the same.
struct Compression {
  FieldRef<float> field;
};

// A name or a checksum, which is shown in sentences and logs. In JSON a string.
struct Word {
  FieldRef<std::string> field;
};

using SettingValue = std::variant<WholeNumber, OptionalNumber, Fraction, Switch, Choice, Model,
                                  NumberList, Compression, Word>;

// ---- A row ----

// The section of --help and docs/flags.md that lists a setting.
enum class SettingGroup : std::uint8_t { kTraining, kAugmentation, kElastic, kOutput };

struct Setting {
  std::string_view name;  // the flag without its dashes, and the key in JSON
  SettingValue value;
  // The description for --help and docs/flags.md; `quoted` words and [links](x.md) are for the
  // latter. Empty: no flag; the tasks find the value out.
  std::string about{};
  std::string_view argument = "N";  // the placeholder of the value in --help
  // What applies without the flag, if that is not the value in RunConfig{}: "no bound".
  std::string unset{};
  SettingGroup group = SettingGroup::kTraining;
  // False: a run continued with another value ends with the same weights.
  bool changes_weights = true;
  std::string_view other_name{};  // alternative name of the flag
  // A configuration without it, from a checkpoint that is older than this row, has the value in
  // RunConfig{}.
  bool may_be_missing = false;

  [[nodiscard]] bool is_flag() const noexcept { return !about.empty(); }
};

// All settings, in the order of the published JSON and of --help.
[[nodiscard]] std::span<const Setting> settings();

// Returns the value as written after the flag: "100", "adam", "128,64", "true"; "" for none.
[[nodiscard]] std::string text_of(const Setting& setting, const RunConfig& run);

// The reverse. Returns false, and leaves `run` unchanged, if the text is not a valid value.
[[nodiscard]] bool set_from_text(const Setting& setting, std::string_view text, RunConfig& run);

// Throws std::invalid_argument with the flag, the value and what is allowed, if the value is out of
// its own bounds.
void check_bounds(const Setting& setting, const RunConfig& run);

// Throws std::invalid_argument: "--batch_size: 0 is not from 1 to 1048576".
[[noreturn]] void refuse_setting(std::string_view name, const std::string& value,
                                 std::string_view allowed);

}  // namespace disttf::roles
