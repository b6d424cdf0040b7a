#include "lab_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/findings.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using report::Verdict;

constexpr size_t kVerdictWidth = 14;

std::string coloured(const terminal::Terminal& terminal, Verdict verdict, const std::string& text) {
  switch (verdict) {
    case Verdict::holds:
      return terminal.green(text);
    case Verdict::fails:
      return terminal.red(text);
    case Verdict::partly:
      return terminal.cyan(text);
    case Verdict::noise:
    case Verdict::unjudged:
      return terminal.dim(text);
  }
  return text;
}

}  // namespace

std::string findings_text(const terminal::Terminal& terminal, const lab::Results& results, size_t width) {
  std::string text;
  const std::vector<report::Finding> findings = report::check_findings(results);
  size_t longest = kVerdictWidth;
  for (const report::Finding& finding : findings) longest = std::max(longest, report::verdict_text(finding).size());
  const std::string indent(longest + 2, ' ');
  const size_t room = std::max<size_t>(width, indent.size() + 20) - indent.size();
  for (const report::Finding& finding : findings) {
    const std::string verdict = terminal::padded_right(report::verdict_text(finding), longest);
    std::string before = coloured(terminal, finding.verdict, verdict) + "  ";
    for (const std::string& line : terminal::wrapped(finding.spec->says, room)) {
      text += before + terminal.bold(line) + "\n";
      before = indent;
    }
    if (finding.spec->ours) text += indent + terminal.dim("not a claim of the study") + "\n";
    for (const std::string& sentence : finding.sentences) {
      for (const std::string& line : terminal::wrapped(sentence, room)) text += indent + line + "\n";
    }
  }
  return text;
}

nlohmann::ordered_json findings_json(const lab::Results& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const report::Finding& finding : report::check_findings(results)) {
    list.push_back({{"name", finding.spec->name},
                    {"says", finding.spec->says},
                    {"ours", finding.spec->ours},
                    {"verdict", report::name(finding.verdict)},
                    {"cases", finding.cases},
                    {"decided", finding.decided},
                    {"sentences", finding.sentences},
                    {"reasons", finding.reasons}});
  }
  return list;
}

}  // namespace lockstep::tools
