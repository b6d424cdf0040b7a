#include "report/summary.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chart/chart.h"
#include "lab/noise.h"
#include "records/statistics.h"
#include "report/figures.h"
#include "report/judgement.h"

namespace lockstep::report {
namespace {

using chart::escape_html;
using records::known;

/// What decides a finding, above the findings.
constexpr const char* kDecision =
    "Brackets hold the 95 % interval of a figure over its repeats: Student's t, of pairs where both sides have the "
    "same "
    "seeds and Welch's otherwise; Fieller's for ratios. A case is decided if its whole interval lies on one side of "
    "the "
    "limit, and is within noise otherwise; cases are not corrected for their number. One run decides only what equal "
    "settings repeat: counted bytes, steps and examples.";

struct Counts {
  size_t all = 0;
  size_t done = 0;
  size_t failed = 0;
  size_t running = 0;
  double seconds = 0;
};

Counts count_runs(const lab::Results& results) {
  Counts counts;
  for (const lab::RunResult& run : results.runs) {
    ++counts.all;
    counts.done += run.state == lab::RunState::done ? 1 : 0;
    counts.failed += run.state == lab::RunState::failed ? 1 : 0;
    counts.running += run.state == lab::RunState::running ? 1 : 0;
    if (run.ended > run.started) counts.seconds += run.ended - run.started;
  }
  return counts;
}

/// The case with the largest or smallest mean.
struct Best {
  double value = records::kUnknown;
  std::string name;
  std::string text;    ///< the value with its unit and half its interval
  std::string figure;  ///< the value with its unit
};

std::string plain_text_of(double value, const std::string& field) {
  const lab::Unit unit = unit_of(field);
  if (unit == lab::Unit::count) value = std::round(value);
  return figure_text(value, unit) + (unit == lab::Unit::times ? " ×" : field == "examples_per_second" ? " /s" : "");
}

/// Returns "± 0.12 %" of a text with a spread; empty without one.
std::string spread_of(const std::string& text) {
  const size_t place = text.find("± ");
  return place == std::string::npos ? "" : text.substr(place);
}

Best best_of(const std::vector<Case>& cases, const std::string& field, bool largest, bool with_group = false) {
  Best best;
  for (const Case& each : cases) {
    const double value = each.stat(field).mean;
    if (!known(value)) continue;
    if (known(best.value) && (largest ? value <= best.value : value >= best.value)) continue;
    best = {value, title_of(*each.members.front().run, with_group),
            spread_text(estimate_of(each.members, field), unit_of(field)), plain_text_of(value, field)};
    const size_t spread = best.text.find(" ± ");  // the spread says how many digits of a large number count
    if (field == "examples_per_second" && spread != std::string::npos)
      best.figure = best.text.substr(0, spread) + " /s";
  }
  return best;
}

/// `spread`: of the figure, "± 0.12 %"; may be empty.
std::string tile(const std::string& figure, const std::string& what, const std::string& spread = "") {
  constexpr size_t kShort = 9;
  return fmt::format("<div class=\"tile\"><b{}>{}</b>{}<span>{}</span></div>",
                     figure.size() > kShort ? " class=\"long\"" : "", escape_html(figure),
                     spread.empty() ? "" : "<span class=\"spread\">" + escape_html(spread) + "</span>",
                     escape_html(what));
}

/// "test accuracy from 98.9 % (3 nodes) to 99.1 % (one node)"
std::string range_text(const std::vector<Case>& cases, const std::string& field) {
  const Best low = best_of(cases, field, false);
  const Best high = best_of(cases, field, true);
  if (!known(low.value)) return "";
  const lab::Unit unit = unit_of(field);
  const std::string title = field_title(field);
  if (figure_text(low.value, unit) == figure_text(high.value, unit)) return fmt::format("{} {}", title, low.text);
  std::string text = fmt::format("{} from {} ({}) to {} ({})", title, low.text, low.name, high.text, high.name);
  if (unit == lab::Unit::seconds && low.value > 0 && high.value / low.value >= 1.05) {
    text += fmt::format(", {:.2g} times as long", high.value / low.value);
  }
  return text;
}

std::string group_sentence(const std::string& title, const std::vector<Case>& cases) {
  std::string text = fmt::format("<strong>{}</strong>: {}", escape_html(title), counted(cases.size(), "variation"));
  const bool accuracy = best_of(cases, "accuracy", true).value > 0;  // models that do not classify have 0
  const bool epochs = known(best_of(cases, "epoch_seconds", true).value);
  for (const std::string& field : {std::string(accuracy ? "accuracy" : "loss"),
                                   std::string(epochs ? "epoch_seconds" : "seconds"), std::string("speed_up")}) {
    const std::string range =
        field == "speed_up" && best_of(cases, field, true).name == best_of(cases, field, false).name
            ? ""
            : range_text(cases, field);
    if (!range.empty()) text += "; " + escape_html(range);
  }
  return "<li>" + text + ".</li>";
}

/// Lists what the scale leaves out of the study's own settings.
std::string cut_html(const lab::Experiment& experiment) {
  if (experiment.cut.empty()) return "";
  std::string html = "<p>Left out of the study's own settings:</p><ul class=\"cut\">";
  for (const std::string& what : experiment.cut) html += "<li>" + escape_html(what) + "</li>";
  return html + "</ul>";
}

/// Says which scale was run: titles and texts of a study describe its own settings.
std::string scale_html(const lab::Experiment& experiment) {
  if (experiment.scale.empty()) return "";
  if (experiment.scale != "quick")
    return fmt::format("<p>The experiment was run at the scale {}.</p>", escape_html(experiment.scale));
  return "<p>This is the quick form, with less training and fewer variations. Its results need not agree with the "
         "study's "
         "own settings, which are in the scale <code>full</code>.</p>";
}

/// Returns how many findings with this verdict have cases that it passes over.
std::ptrdiff_t passing_over(const std::vector<Finding>& findings, Verdict verdict) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& f) { return f.verdict == verdict && passes_over_cases(f); });
}

std::string verdict_counts(const std::vector<Finding>& findings) {
  std::string text;
  for (const Verdict verdict : {Verdict::holds, Verdict::partly, Verdict::fails, Verdict::noise, Verdict::unjudged}) {
    const auto count =
        std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.verdict == verdict; });
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    const bool many = count > 1;
    switch (verdict) {
      case Verdict::holds:
        text += fmt::format("{} {}", count, many ? "hold" : "holds");
        break;
      case Verdict::partly:
        text += fmt::format("{} {} in part", count, many ? "hold" : "holds");
        break;
      case Verdict::fails:
        text += fmt::format("{} {} not hold", count, many ? "do" : "does");
        break;
      case Verdict::noise:
        text += fmt::format("{} {} within noise", count, many ? "are" : "is");
        break;
      case Verdict::unjudged:
        text += fmt::format("{} {} not judged", count, many ? "are" : "is");
    }
    if (const auto some = passing_over(findings, verdict); some > 0)
      text += some == count ? " (with undecided cases)" : fmt::format(" ({} with undecided cases)", some);
  }
  return text;
}

std::string_view badge_class(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "good";
    case Verdict::partly:
      return "warn";
    case Verdict::fails:
      return "bad";
    case Verdict::noise:
    case Verdict::unjudged:
      break;
  }
  return "mute";
}

std::string_view badge_sign(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "✓";
    case Verdict::partly:
      return "◐";
    case Verdict::fails:
      return "✗";
    case Verdict::noise:
      return "≈";
    case Verdict::unjudged:
      break;
  }
  return "?";
}

}  // namespace

std::string date_text(double seconds) {
  if (!(seconds > 0) || seconds > 1e11) return "";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string duration_text(double seconds) {
  if (!known(seconds) || seconds < 0) return "?";
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 3 * 3600) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string banner_html(const lab::Results& results) {
  size_t done = 0;
  size_t disturbed = 0;
  const lab::RunResult* worst = nullptr;
  for (const lab::RunResult& run : results.runs) {
    if (run.state != lab::RunState::done) continue;
    ++done;
    const lab::Measured& values = run.measured.values;
    if (!lab::is_disturbed(values)) continue;
    ++disturbed;
    if (worst == nullptr || lab::disturbance(values) > lab::disturbance(worst->measured.values)) worst = &run;
  }
  if (disturbed == 0) return "";
  return fmt::format(
      "<p class=\"card banner\" role=\"alert\"><strong>{} of {} {} disturbed.</strong> Something else used the "
      "machine, or they were stopped, so their times are wrong. They are left out of means and verdicts about anything "
      "that depends on time, unless a "
      "variation has no other run. The worst is {}: {}.</p>",
      disturbed, counted(done, "run"), disturbed == 1 ? "was" : "were", escape_html(worst->plan.key),
      escape_html(lab::disturbed_text(worst->measured.values)));
}

std::string tiles_html(const Material& material, const std::vector<Finding>& findings) {
  const Counts counts = count_runs(material.results());
  std::string html = "<div class=\"tiles\">";
  html += tile(fmt::format("{} of {}", counts.done, counts.all),
               "runs done" + (counts.seconds > 0 ? ", " + duration_text(counts.seconds) + " of work" : std::string()));
  if (!findings.empty()) {
    const auto holds =
        std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict == Verdict::holds; });
    const auto some = passing_over(findings, Verdict::holds);
    html += tile(fmt::format("{} of {}", holds, findings.size()), "findings hold here",
                 some > 0 ? fmt::format("{} with undecided cases", some) : "");
  }
  const Observations all = material.observations({});
  const std::vector<Case> cases = variations(all);
  const bool groups = several_groups(all);
  if (const Best best = best_of(cases, "accuracy", true, groups); known(best.value)) {
    html += tile(best.figure, "best test accuracy: " + best.name, spread_of(best.text));
  }
  if (const Best best = best_of(cases, "speed_up", true, groups); known(best.value) && best.value > 1.02) {
    html += tile(best.figure, "largest speed-up: " + best.name, spread_of(best.text));
  }
  if (const Best best = best_of(cases, "examples_per_second", true, groups); known(best.value)) {
    html += tile(best.figure, "most examples per second: " + best.name, spread_of(best.text));
  }
  return html + "</div>";
}

std::string summary_html(const Material& material, const std::vector<Finding>& findings) {
  const lab::Results& results = material.results();
  const Counts counts = count_runs(results);
  int repeats = 1;
  for (const lab::RunResult& run : results.runs) repeats = std::max(repeats, run.plan.repeat);
  std::string text = counts.all == 0
                         ? std::string("This experiment has no runs")
                         : fmt::format("{} {} planned", counted(counts.all, "run"), counts.all == 1 ? "is" : "are");
  if (repeats > 1) text += fmt::format(", up to {} repeats of each variation", repeats);
  text += fmt::format("; {} done", counts.done);
  if (counts.failed > 0) text += fmt::format(", {} failed", counts.failed);
  if (counts.running > 0) text += fmt::format(", {} running", counts.running);
  if (const size_t left = counts.all - counts.done - counts.failed - counts.running; left > 0)
    text += fmt::format(", {} not started", left);
  std::string html = "<p>" + escape_html(text) + ".";
  if (!findings.empty())
    html += fmt::format(" Of its {}, {}.", counted(findings.size(), "finding"), verdict_counts(findings));
  html += "</p>" + scale_html(results.experiment) + cut_html(results.experiment);
  std::string groups;
  std::set<std::string> seen;
  for (const lab::RunResult& run : results.runs) {
    if (!seen.insert(run.plan.group).second) continue;
    const std::vector<Case> cases = variations(material.observations({{run.plan.group}, {}}));
    if (!cases.empty()) groups += group_sentence(material.group_title(run.plan.group), cases);
  }
  return groups.empty() ? html : html + "<ul>" + groups + "</ul>";
}

std::string findings_html(const std::vector<Finding>& findings) {
  std::string html = fmt::format("<p class=\"small soft\">{}</p>", kDecision);
  for (const Finding& finding : findings) {
    html += fmt::format(
        "<article class=\"card finding {0}\"><header><h3>{1}</h3><span class=\"badge {0}\">{2} {3}</span></header>",
        badge_class(finding.verdict), escape_html(finding.spec->says), badge_sign(finding.verdict),
        verdict_text(finding));
    if (finding.spec->ours)
      html += "<p class=\"small soft ours\">Not a claim of the study: this experiment adds it.</p>";
    html += "<ul>";
    for (const std::string& sentence : finding.sentences) html += "<li>" + escape_html(sentence) + "</li>";
    html += "</ul>";
    if (!finding.reasons.empty()) {
      html += "<div class=\"why\"><h4>Why</h4><ul>";
      for (const std::string& reason : finding.reasons) html += "<li>" + text_html(reason) + "</li>";
      html += "</ul></div>";
    }
    html += "</article>";
  }
  return html;
}

}  // namespace lockstep::report
