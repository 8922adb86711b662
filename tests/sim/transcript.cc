#include "tests/sim/transcript.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace disttf::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::string_view kRule = "---";

[[noreturn]] void refuse(const std::string& line) {
  throw std::invalid_argument("a transcript has an invalid line: " + line);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

double number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0) {
    refuse(word);
  }
  return value;
}

std::uint64_t count_of(const std::string& word) {
  return static_cast<std::uint64_t>(number_of(word));
}

Duration seconds_of(const std::string& word) {
  return microseconds(std::llround(number_of(word) * 1e6));
}

// Returns whether the words match the pattern, in which "N" stands for any number. Appends these to
// `numbers`.
bool matches(const std::vector<std::string>& words, std::string_view pattern,
             std::vector<std::uint64_t>& numbers) {
  const std::vector<std::string> expected = words_of(std::string(pattern));
  numbers.clear();
  if (words.size() != expected.size()) {
    return false;
  }
  for (std::size_t each = 0; each < words.size(); ++each) {
    if (expected[each] == "N" && std::isdigit(static_cast<unsigned char>(words[each][0])) != 0) {
      numbers.push_back(count_of(words[each]));
    } else if (expected[each] != words[each]) {
      return false;
    }
  }
  return true;
}

// A property that a cluster can have.
struct Trait {
  std::string_view pattern;
  void (*apply)(Scenario& scenario, std::uint64_t number);
};
constexpr std::array<Trait, 18> kTraits = {{
    {"N ps", [](Scenario& scenario, std::uint64_t number) { scenario.ps = number; }},
    {"N workers", [](Scenario& scenario, std::uint64_t number) { scenario.trainers = number; }},
    {"N steps",
     [](Scenario& scenario, std::uint64_t number) { scenario.config.train_steps = number; }},
    {"seed N", [](Scenario& scenario, std::uint64_t number) { scenario.seed = number; }},
    {"replicas",
     [](Scenario& scenario, std::uint64_t /*number*/) { scenario.config.ps_replicas = 2; }},
    {"a disk", [](Scenario& scenario, std::uint64_t /*number*/) { scenario.has_disk = true; }},
    {"a snapshot every N steps",
     [](Scenario& scenario, std::uint64_t number) { scenario.checkpoint.save_steps = number; }},
    {"sharded checkpoints",
     [](Scenario& scenario, std::uint64_t /*number*/) { scenario.checkpoint.sharded = true; }},
    {"async",
     [](Scenario& scenario, std::uint64_t /*number*/) { scenario.config.sync_replicas = false; }},
    {"N gradients a step",
     [](Scenario& scenario, std::uint64_t number) {
       scenario.config.replicas_to_aggregate = number;
     }},
    {"N micro-batches",
     [](Scenario& scenario, std::uint64_t number) { scenario.config.micro_batches = number; }},
    {"at least N workers",
     [](Scenario& scenario, std::uint64_t number) { scenario.config.min_workers = number; }},
    {"a launch with N restarts",
     [](Scenario& scenario, std::uint64_t number) {
       scenario.launch = roles::RestartOptions{.max_restarts = number};
     }},
    {"evaluated every N steps",
     [](Scenario& scenario, std::uint64_t number) { scenario.config.eval_every = number; }},
    {"patience N",
     [](Scenario& scenario, std::uint64_t number) { scenario.config.patience = number; }},
    {"a target",
     [](Scenario& scenario, std::uint64_t /*number*/) { scenario.config.target_accuracy = 0.9F; }},
    {"an evaluator of the directory",
     [](Scenario& scenario, std::uint64_t /*number*/) {
       scenario.has_evaluator = true;
       scenario.evaluates_directory = true;
     }},
    {"compute N ms",
     [](Scenario& scenario, std::uint64_t number) { scenario.pace.compute_us = number * 1000; }},
}};

void set_cluster(Scenario& scenario, const std::string& text) {
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::vector<std::string> words = words_of(part);
    std::vector<std::uint64_t> numbers;
    const auto* const trait = std::ranges::find_if(
        kTraits, [&](const Trait& each) { return matches(words, each.pattern, numbers); });
    if (trait == kTraits.end()) {
      refuse(part);
    }
    trait->apply(scenario, numbers.empty() ? 0 : numbers.front());
  }
}

// Reads words one after the other.
class Reader {
 public:
  explicit Reader(const std::string& line) : line_(line), words_(words_of(line)) {}
  std::string next() {
    if (at_ == words_.size()) {
      refuse(line_);
    }
    return words_[at_++];
  }
  bool skips(std::string_view words) {
    const std::vector<std::string> expected = words_of(std::string(words));
    if (words_.size() - at_ < expected.size() ||
        !std::equal(expected.begin(), expected.end(),
                    words_.begin() + static_cast<std::ptrdiff_t>(at_))) {
      return false;
    }
    at_ += expected.size();
    return true;
  }
  void expect_end() const {
    if (at_ != words_.size()) {
      refuse(line_);
    }
  }
  [[noreturn]] void refuse_line() const { refuse(line_); }

 private:
  const std::string line_;
  const std::vector<std::string> words_;
  std::size_t at_ = 0;
};

void set_moment(Fault& fault, const std::string& text) {
  Reader reader(text);
  const std::string what = reader.next();
  const std::string number = reader.next();
  reader.expect_end();
  if (what == "step") {
    fault.step = count_of(number);
  } else if (what == "time") {
    fault.at = seconds_of(number);
  } else {
    for (std::uint8_t kind = 1; kind < 64 && !fault.on; ++kind) {
      if (name_of(static_cast<net::FrameKind>(kind)) == what) {
        fault.on = static_cast<net::FrameKind>(kind);
      }
    }
    if (!fault.on) {
      reader.refuse_line();
    }
    fault.nth = count_of(number);
  }
}

// Reads the node that a fault strikes, or its other node.
void set_node(Fault& fault, Reader& reader, std::size_t ps, std::size_t& node) {
  if (reader.skips("sender")) {
    fault.to_sender = fault.to_sender || &node == &fault.node;
  } else if (!reader.skips("receiver")) {
    const bool is_ps = reader.skips("ps");
    if (!is_ps && !reader.skips("worker")) {
      reader.refuse_line();
    }
    node = count_of(reader.next()) + (is_ps ? 0 : ps);
    fault.is_named = true;
  }
}

bool set_fault_of_disk(Fault& fault, Reader& reader) {
  const bool crashes = reader.skips("crash at operation");
  if (crashes || reader.skips("kill at operation")) {
    fault.kind = Fault::Kind::kKillAtDisk;
    fault.detail = 16 * count_of(reader.next()) + (crashes ? 0 : 1);
    return reader.skips("of the disk");
  }
  if (reader.skips("fail")) {
    fault.kind = Fault::Kind::kDiskFails;
    fault.detail = 2 + 640 * (count_of(reader.next()) - 1);
    return reader.skips("operations of the disk");
  }
  if (reader.skips("unmount the directory for") || reader.skips("no answer of the store for")) {
    fault.kind = fault.words.find("unmount") != std::string::npos ? Fault::Kind::kUnmount
                                                                  : Fault::Kind::kStoreAway;
    fault.duration = seconds_of(reader.next());
    return reader.skips("s");
  }
  fault.kind = Fault::Kind::kRot;
  return reader.skips("rot");
}

Fault fault_of(const std::string& line, std::size_t ps) {
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) {
    refuse(line);
  }
  Fault fault;
  fault.words = line;
  fault.detail = 4;
  set_moment(fault, line.substr(0, colon));
  Reader reader(line.substr(colon + 1));
  static constexpr std::array<std::pair<std::string_view, Fault::Kind>, 10> kVerbs = {
      {{"kill", Fault::Kind::kKill},
       {"vanish", Fault::Kind::kVanish},
       {"terminate", Fault::Kind::kTerm},
       {"lose", Fault::Kind::kKill},
       {"freeze", Fault::Kind::kFreeze},
       {"replace", Fault::Kind::kReplace},
       {"isolate", Fault::Kind::kIsolate},
       {"break", Fault::Kind::kBreak},
       {"cut", Fault::Kind::kCutBody},
       {"clog", Fault::Kind::kClog}}};
  Reader of_disk(line.substr(colon + 1));
  if (set_fault_of_disk(fault, of_disk)) {
    of_disk.expect_end();
    return fault;
  }
  fault.detail = 4;
  const std::string verb = reader.next();
  const auto* const found = std::ranges::find(kVerbs, verb, &decltype(kVerbs)::value_type::first);
  if (found == kVerbs.end()) {
    refuse(line);
  }
  fault.kind = found->second;
  if (verb == "lose") {
    fault.detail = 1;
  }
  set_node(fault, reader, ps, fault.node);
  if (reader.skips("to")) {
    set_node(fault, reader, ps, fault.other);
  }
  if (reader.skips("for")) {
    fault.duration = seconds_of(reader.next());
    if (!reader.skips("s")) {
      refuse(line);
    }
  }
  reader.expect_end();
  return fault;
}

}  // namespace

Transcript parse_transcript(std::string_view text) {
  Transcript transcript;
  bool is_log = false;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (is_log) {
      transcript.log.push_back(line);
    } else if (line == kRule) {
      is_log = true;
    } else {
      transcript.script.push_back(line);
    }
  }
  Scenario& scenario = transcript.scenario;
  scenario = plain_scenario(1);
  for (const std::string& line : transcript.script) {
    if (line.starts_with("cluster ")) {
      set_cluster(scenario, line.substr(8));
    } else if (!line.empty() && !line.starts_with("#")) {
      scenario.faults.push_back(fault_of(line, scenario.ps));
    }
  }
  complete(scenario);
  return transcript;
}

std::string replay_transcript(const Transcript& transcript, bool trace) {
  std::vector<std::string> log;
  const Outcome outcome = simulate(transcript.scenario, trace, &log);
  std::string text;
  for (const std::string& line : transcript.script) {
    text += line + "\n";
  }
  text += std::string(kRule) + "\n";
  for (const std::string& line : log) {
    text += line + "\n";
  }
  for (std::size_t each = 0; each < transcript.scenario.faults.size(); ++each) {
    if (!outcome.happened[each]) {
      text += "it has not come to: " + transcript.scenario.faults[each].words + "\n";
    }
  }
  return text + (outcome.violation.empty() ? "all promises were kept" : outcome.violation) + "\n";
}

}  // namespace disttf::sim
