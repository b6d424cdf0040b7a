#include "emulate/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "emulate/quantities.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

constexpr const char* kAllowed =
    "allowed are 'at 30s kill worker:1', 'at 30s stop worker:1 for 2s', 'at 60s cut node2 for 10s' and 'at 90s slow "
    "node3 to 25% for 10s', with ';' between them";

/// Parses one fault word by word.
class Piece {
 public:
  explicit Piece(std::string_view text) : text_(text), words_(std::string(text)) {}

  Fault parse() {
    if (const std::string word = next("'at'"); word != "at" && word != "at:") refuse(word, "'at'");
    fault_.at = time("a time, as 30s");
    parse_kind();
    fault_.target = next(of_node() ? "a node, as node2" : "a role, as worker:1");
    check_target();
    if (fault_.kind == Fault::Kind::slow) parse_share_of_node();
    parse_length();
    return fault_;
  }

 private:
  [[noreturn]] void refuse(const std::string& seen, const std::string& wanted) const {
    throw UsageError(fmt::format("faults: '{}': {} in place of {}; {}", text_,
                                 seen.empty() ? "nothing" : "'" + seen + "'", wanted, kAllowed));
  }
  std::string next(const std::string& wanted) {
    std::string word;
    if (!(words_ >> word)) refuse("", wanted);
    return word;
  }
  double time(const std::string& wanted) {
    const std::string word = next(wanted);
    const std::optional<double> seconds = parse_seconds(word);
    constexpr double kLongest = 1e9;
    if (!seconds || *seconds < 0 || *seconds > kLongest) refuse(word, wanted);
    return *seconds;
  }
  [[nodiscard]] bool of_node() const { return fault_.kind == Fault::Kind::cut || fault_.kind == Fault::Kind::slow; }

  void parse_kind() {
    const std::string word = next("kill, stop, cut or slow");
    if (word == "kill") {
      fault_.kind = Fault::Kind::kill;
    } else if (word == "stop") {
      fault_.kind = Fault::Kind::stop;
    } else if (word == "cut") {
      fault_.kind = Fault::Kind::cut;
    } else if (word == "slow") {
      fault_.kind = Fault::Kind::slow;
    } else {
      refuse(word, "kill, stop, cut or slow");
    }
  }
  void check_target() const {
    if (of_node() == fault_.target.starts_with("node")) return;
    refuse(fault_.target, of_node() ? "a node, as node2" : "a role, as worker:1");
  }
  void parse_share_of_node() {
    if (const std::string word = next("'to'"); word != "to") refuse(word, "'to'");
    const std::string word = next("a share, as 25%");
    const std::optional<double> share = parse_share(word);
    constexpr double kLeast = 0.01;
    if (!share || *share < kLeast || *share > 1) refuse(word, "a share from 1% to 100%");
    fault_.share = *share;
  }
  void parse_length() {
    std::string word;
    if (!(words_ >> word)) return;
    if (word != "for" || fault_.kind == Fault::Kind::kill) refuse(word, "the end");
    fault_.seconds = time("a length of time, as 10s");
    if (fault_.seconds <= 0) refuse("0", "a length of time");
    if (words_ >> word) refuse(word, "the end");
  }

  std::string_view text_;
  std::istringstream words_;
  Fault fault_;
};

/// Overlapping faults are refused, because the end of the first would also end the second.
void refuse_overlaps(const std::vector<Fault>& faults) {
  for (size_t i = 0; i < faults.size(); ++i) {
    const Fault& first = faults[i];
    if (first.seconds <= 0) continue;
    for (size_t k = i + 1; k < faults.size() && faults[k].at < first.at + first.seconds; ++k) {
      if (faults[k].kind != first.kind || faults[k].target != first.target) continue;
      throw UsageError(fmt::format("faults: 'at {}s {}' begins before 'at {}s {}' has ended; they must not overlap",
                                   faults[k].at, faults[k].text(), first.at, first.text()));
    }
  }
}

}  // namespace

std::string Fault::text() const {
  const std::string length = seconds > 0 ? fmt::format(" for {:g}s", seconds) : "";
  switch (kind) {
    case Kind::kill:
      return "kill " + target;
    case Kind::stop:
      return "stop " + target + length;
    case Kind::cut:
      return "cut " + target + length;
    case Kind::slow:
      return fmt::format("slow {} to {:g}%{}", target, share * 100, length);
  }
  return "";
}

std::vector<Fault> parse_faults(const std::string& text) {
  std::string plain = text;
  std::replace(plain.begin(), plain.end(), '\n', ';');
  std::vector<Fault> faults;
  for (const std::string_view piece : split(plain, ';')) {
    if (!trimmed(piece).empty()) faults.push_back(Piece(trimmed(piece)).parse());
  }
  std::stable_sort(faults.begin(), faults.end(), [](const Fault& a, const Fault& b) { return a.at < b.at; });
  refuse_overlaps(faults);
  return faults;
}

}  // namespace lockstep::emulate
