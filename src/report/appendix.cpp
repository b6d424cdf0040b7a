#include "report/appendix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "chart/chart.h"
#include "lab/noise.h"
#include "records/format.h"
#include "records/statistics.h"
#include "report/figures.h"
#include "report/observations.h"
#include "report/summary.h"

namespace lockstep::report {
namespace {

using chart::escape_html;

/// Makes paragraphs of the text; blank lines separate them.
std::string paragraphs(std::string_view text) {
  std::string html;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("\n\n", begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.find_first_not_of(" \n\t") != std::string_view::npos) html += "<p>" + text_html(part) + "</p>";
    begin = end + 2;
  }
  return html;
}

std::string_view state_class(lab::RunState state) {
  switch (state) {
    case lab::RunState::done:
      return "good";
    case lab::RunState::failed:
      return "bad";
    case lab::RunState::running:
      return "live";
    case lab::RunState::planned:
      break;
  }
  return "mute";
}

std::string settings_text(const lab::Values& values) {
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : "\n") + name + ": " + value;
  return text;
}

lab::Values all_settings(const lab::RunResult& run) {
  lab::Values values = run.plan.settings;
  if (!run.plan.cluster.emulate.empty()) values.emplace_back("emulate", run.plan.cluster.emulate);
  if (!run.plan.cluster.faults.empty()) values.emplace_back("faults", run.plan.cluster.faults);
  if (!run.plan.cluster.hosts.empty()) values.emplace_back("hosts", run.plan.cluster.hosts);
  return values;
}

/// Lists the incidents of a run: failures, the log, restarts.
std::string incidents_html(const lab::Results& results, const lab::RunResult& run) {
  std::string html;
  if (!run.reason.empty()) html += "<span class=\"reason\">" + escape_html(run.reason) + "</span><br>";
  if (const std::string log = log_of(results, run); run.state == lab::RunState::failed && !log.empty())
    html += "What it printed: <code>" + escape_html(log) + "</code><br>";
  if (const std::string text = lab::disturbed_text(run.measured.values); !text.empty())
    html += "<span class=\"reason\">Disturbed: " + escape_html(text) + "</span><br>";
  if (const int count = lab::restarts(run); count > 0)
    html += fmt::format("Roles were restarted {}.<br>", count == 1 ? "once" : fmt::format("{} times", count));
  return html;
}

std::string run_row(const lab::Results& results, const lab::RunResult& run) {
  std::string html = fmt::format("<tr><td class=\"text\">{}</td><td class=\"text wrap\">{}</td><td>{}</td>",
                                 escape_html(run.plan.group), escape_html(title_of(run)), run.plan.repeat);
  html += fmt::format("<td class=\"text\"><span class=\"badge {}\">{}</span>{}</td>", state_class(run.state),
                      lab::name(run.state),
                      lab::is_disturbed(run.measured.values) ? " <span class=\"badge warn\">disturbed</span>" : "");
  for (const char* field : {"accuracy", "loss", "seconds"}) {
    const double value = run.number(field);
    html += fmt::format("<td>{}</td>", records::known(value) ? figure_text(value, unit_of(field)) : "–");
  }
  html += "<td class=\"text wrap\">" + incidents_html(results, run);
  html += fmt::format(
      "<code>{}</code><details><summary class=\"small soft\">Settings</summary><pre>{}</pre></details></td></tr>",
      escape_html(run.folder.empty() ? run.plan.key : run.folder), escape_html(settings_text(all_settings(run))));
  return html;
}

/// Reports repeats that failed for the same reason together.
std::string failures_html(const lab::Results& results) {
  struct Failure {
    std::string name;
    std::string reason;
    std::vector<int> repeats;
  };
  const bool groups = std::any_of(results.runs.begin(), results.runs.end(), [&](const lab::RunResult& run) {
    return run.plan.group != results.runs.front().plan.group;
  });
  std::vector<Failure> failures;
  for (const lab::RunResult& run : results.runs) {
    if (run.state != lab::RunState::failed) continue;
    const std::string name = title_of(run, groups);
    const auto same = std::find_if(failures.begin(), failures.end(),
                                   [&](const Failure& f) { return f.name == name && f.reason == run.reason; });
    if (same == failures.end()) {
      failures.push_back({name, run.reason, {run.plan.repeat}});
    } else {
      same->repeats.push_back(run.plan.repeat);
    }
  }
  if (failures.empty()) return "";
  std::string html;
  for (const Failure& failure : failures) {
    html += fmt::format("<li>{}, repeat{} {}: <span class=\"reason\">{}</span></li>", escape_html(failure.name),
                        failure.repeats.size() == 1 ? "" : "s", fmt::join(failure.repeats, ", "),
                        escape_html(failure.reason));
  }
  return "<h3>Failed</h3><ul class=\"failed\">" + html +
         "</ul><p class=\"small soft\">The list below names the log of each run. The command under \"To run it "
         "again\" repeats them; finished runs stay.</p>";
}

void add_fact(std::string& html, const char* name, const std::string& value) {
  if (!value.empty()) html += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape_html(value));
}

void add_fields(std::set<std::string>& used, const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    if (lab::find_field(field) != nullptr) used.insert(field);
  }
}

}  // namespace

std::string header_html(const lab::Results& results) {
  const lab::Experiment& experiment = results.experiment;
  std::string facts;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) facts += "<span>" + escape_html(text) + "</span>";
  };
  add(experiment.name + (experiment.scale.empty() ? "" : ", scale " + experiment.scale));
  add(date_text(results.started));
  add(results.environment.host.empty() ? "" : "on " + results.environment.host);
  add(results.environment.cores > 0 ? counted(static_cast<size_t>(results.environment.cores), "core") : "");
  add(results.environment.program);
  return fmt::format(
      "<header class=\"top\"><div class=\"toolbar no-print\"><span class=\"brand\">Lockstep report</span><button "
      "id=\"theme\" type=\"button\" "
      "class=\"small\">Light or dark</button></div><h1>{}</h1><div class=\"about\">{}</div><p "
      "class=\"meta\">{}</p></header>\n",
      escape_html(experiment.title.empty() ? experiment.name : experiment.title), paragraphs(experiment.about), facts);
}

std::string runs_html(const lab::Results& results) {
  constexpr size_t kMany = 40;
  if (results.runs.empty()) return "<p class=\"soft\">The experiment has no runs.</p>";
  std::string table =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table class=\"data runs\" "
      "aria-label=\"Runs\"><thead><tr><th class=\"text\">group</th><th "
      "class=\"text\">run</th>"
      "<th>repeat</th><th class=\"text\">state</th><th>test accuracy</th><th>test loss</th><th>time</th><th "
      "class=\"text\">folder</th></tr></thead><tbody>";
  for (const lab::RunResult& run : results.runs) table += run_row(results, run);
  table += "</tbody></table></div>";
  if (results.runs.size() > kMany)
    table = fmt::format("<details><summary>All {} runs</summary>{}</details>", results.runs.size(), table);
  return "<div class=\"card\">" + failures_html(results) + table + "</div>";
}

std::string environment_html(const lab::Results& results) {
  const lab::Environment& where = results.environment;
  std::string html = "<div class=\"card\"><dl class=\"facts\">";
  add_fact(html, "Program", where.program);
  add_fact(html, "Host", where.host);
  add_fact(html, "System", where.system);
  add_fact(html, "Processor", where.processor);
  add_fact(html, "Cores", where.cores > 0 ? std::to_string(where.cores) : "");
  add_fact(html, "Memory", where.memory_bytes > 0 ? records::amount_text(where.memory_bytes) : "");
  add_fact(html, "Compiler", where.compiler);
  add_fact(html, "Started", date_text(results.started));
  add_fact(html, "Last run ended", date_text(results.ended));
  std::set<std::string> clusters;
  for (const lab::RunResult& run : results.runs) clusters.insert(run.plan.cluster.emulate);
  for (const std::string& cluster : clusters) add_fact(html, "Emulated nodes", cluster);
  std::map<std::string, std::set<std::string>> hosts;  // hosts of the runs, by cluster file
  for (const lab::RunResult& run : results.runs) {
    if (run.plan.cluster.hosts.empty()) continue;
    for (const lab::RoleMeasured& role : run.measured.roles) hosts[run.plan.cluster.hosts].insert(role.node);
  }
  for (const auto& [file, names] : hosts) {
    add_fact(html, "Hosts", fmt::format("{} ({})", fmt::join(names, ", "), file));
  }
  return html + "</dl></div>";
}

std::string again_html(const lab::Results& results) {
  std::string html = "<div class=\"card\">";
  html += results.command.empty() ? std::string("<p class=\"soft\">The command was not recorded.</p>")
                                  : "<pre>" + escape_html(results.command) + "</pre>";
  html +=
      "<p>Finished runs are not repeated; failed and interrupted ones are. Each run has all its "
      "settings in its folder (<code>config.yaml</code>).</p>";
  if (!results.experiment.text.empty()) {
    html += "<details><summary>The experiment file as it was run</summary><pre>" +
            escape_html(results.experiment.text) + "</pre></details>";
  }
  return html + "</div>";
}

std::string method_html(const lab::ReportSpec& spec) {
  std::set<std::string> used;
  for (const lab::TableSpec& table : spec.tables) add_fields(used, table.columns);
  for (const lab::PlotSpec& plot : spec.plots) {
    if (plot.kind == lab::PlotKind::speed_up) add_fields(used, {"speed_up", "efficiency"});
    if (plot.kind != lab::PlotKind::curves && plot.kind != lab::PlotKind::usage) add_fields(used, plot.y);
    add_fields(used, plot.y2);
  }
  for (const lab::FindingSpec& finding : spec.findings) {
    for (const lab::FindingTest& test : finding.tests) add_fields(used, {test.field});
    add_fields(used, finding.explain);
  }
  std::string html =
      "<div class=\"card\"><p>Each figure is the mean over the repeats of a variation, which differ only in their "
      "seed, or over the values named below a table or plot. The number after ± is half the interval that contains "
      "the true mean with 95 % probability, by Student's t over the repeats; for speed-up and efficiency it is "
      "Fieller's and contains the noise of the baseline. Bands and error bars are these intervals. The last column of "
      "a table is the number of runs. Outliers (more than 3.5 robust standard deviations from the median of five or "
      "more repeats) are named and count like all others. A difference smaller than the limit that a finding names "
      "counts as none. Reported figures are those of the study, from other machines: the shapes of curves can be "
      "compared, absolute figures cannot.</p><dl class=\"facts\">";
  for (const lab::FieldDef& def : lab::fields()) {
    if (!used.contains(std::string(def.name))) continue;
    html += fmt::format("<dt>{}</dt><dd>{}</dd>", escape_html(def.title), escape_html(def.help));
  }
  return html + "</dl></div>";
}

}  // namespace lockstep::report
