// The filter language of `lockstep runs` and of the dashboard's list. All terms must hold:
//
//   model=lenet  lr<0.01  accuracy>95%  state=running  name=lenet-*  dataset=mnist,fashion-mnist  tag!=old  word
//
// A term is KEY OPERATOR VALUE without spaces, with = != < <= > >=; = and != compare texts without regard to case, take
// a list with commas (any of them) and * for any characters. A term without operator is searched in the run's texts.
// Keys are those of run_keys() and all settings. A value that is not known fits only !=. A value type; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_values.h"

namespace lockstep::records {

class RunFilter {
 public:
  RunFilter() = default;
  /// Reads terms, one per element. Throws UsageError that names the term for a term that cannot be read, or a key that
  /// none of the runs has.
  RunFilter(std::span<const std::string> terms, std::span<const RunValues> runs);
  /// Reads terms between spaces; a value in double quotes may hold spaces.
  static std::vector<std::string> terms_of(std::string_view line);
  /// Reads the words of a command line: a word holds one term, or several between spaces if each has an operator.
  static std::vector<std::string> terms_of_words(std::span<const std::string> words);

  [[nodiscard]] bool matches(const RunValues& run) const;

 private:
  enum class Operator : uint8_t { word, equal, unequal, less, at_most, more, at_least };
  struct Term {
    Operator compare = Operator::word;
    std::string key = {};
    std::vector<std::string> texts = {};  ///< in lower case; for an order, one
    double number = kUnknown;
    bool list = false;  ///< the value has words, of which any may fit
  };

  static Term read(const std::string& text, std::span<const RunValues> runs);
  static bool fits(const Term& term, const RunValues& run);
  static bool equals(const Term& term, const RunValue& value);

  std::vector<Term> terms_;
};

}  // namespace lockstep::records
