#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chart/chart.h"
#include "plan/output.h"
#include "records/format.h"

namespace lockstep::plan {
namespace {

using chart::escape_html;

constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";
constexpr std::string_view kStyle =
    ".page { max-width: 1560px; }\n"
    "header.top { display: flex; flex-wrap: wrap; gap: 12px; align-items: center; justify-content: space-between; "
    "padding-top: 28px; }\n";
constexpr std::string_view kDraw =
    "for (const spec of JSON.parse(document.getElementById(\"charts\").textContent)) {\n"
    "  lockstepChart(document.querySelector(`[data-chart=\"${spec.id}\"]`), spec);\n}\n";

std::string series_name(const Plan& plan, const Row& row) {
  std::string name = way_text(row);
  if (plan.choices.rates.size() > 1) name += ", " + rate_text(row.rate);
  if (plan.choices.delays.size() > 1) name += ", delay " + records::time_text(row.delay);
  if (plan.choices.batches.size() > 1) name += fmt::format(", batch {:.0f}", row.batch);
  return name;
}

/// Returns a chart of a value over the nodes, a line for each way.
template <typename Value>
chart::Chart over_nodes(const Plan& plan, const std::string& id, const std::string& title, const chart::Axis& y,
                        Value value) {
  chart::Chart chart;
  chart.id = id;
  chart.title = title;
  chart.x.label = "nodes";
  chart.x.at_values = true;
  chart.y = y;
  std::set<std::string> names;
  for (const Row& first : plan.rows) {
    const std::string name = series_name(plan, first);
    if (first.nodes == 1 || !names.insert(name).second) continue;
    chart::Series series{.name = name, .x = {}, .y = {}};
    for (const Row& row : plan.rows) {
      if (series_name(plan, row) != name) continue;
      const Interval interval = value(row);
      series.x.push_back(static_cast<double>(row.nodes));
      series.y.push_back(interval.value);
      series.low.push_back(interval.low);
      series.high.push_back(interval.high);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string cell(const std::string& text) { return "<td>" + escape_html(text) + "</td>"; }
std::string word_cell(const std::string& text) { return "<td class=\"text\">" + escape_html(text) + "</td>"; }

std::string table_html(const Plan& plan) {
  std::string html =
      "<div class=\"card wide\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Plan\"><table "
      "class=\"data\"><thead><tr><th>nodes</th><th class=\"text\">way</th><th>batch</th><th>network</th>"
      "<th>time of a step</th><th>examples/s</th><th>interval</th><th>speed-up</th><th>efficiency per node</th>"
      "<th>use of the link</th><th>use of the server</th><th>memory</th><th>time</th><th>cost</th>"
      "<th class=\"text\">limited by</th></tr></thead><tbody>";
  for (const Row& row : plan.rows) {
    html += "<tr>" + cell(fmt::format("{}", row.nodes)) + word_cell(way_text(row)) +
            cell(fmt::format("{:.0f}", row.batch)) + cell(row.nodes > 1 ? rate_text(row.rate) : "") +
            cell(records::time_text(row.step.value)) + cell(records::count_text(row.examples.value)) +
            cell(records::count_text(row.examples.low) + "–" + records::count_text(row.examples.high)) +
            cell(fmt::format("{:.2f}", row.speed_up)) + cell(records::share_text(row.efficiency)) +
            cell(records::share_text(row.network)) + cell(row.servers > 0 ? records::share_text(row.server) : "") +
            cell(std::isfinite(row.memory) ? records::amount_text(row.memory) + (row.fits ? "" : " (too much)") : "") +
            cell(std::isfinite(row.seconds.value) ? records::time_text(row.seconds.value) : "") +
            cell(std::isfinite(row.money) ? fmt::format("{:.4g}", row.money) : "") + word_cell(row.limit) + "</tr>";
  }
  return html + "</tbody></table></div></div>";
}

/// Escapes a sentence whose percentages do not end a line before their sign.
std::string sentence_html(const std::string& text) {
  std::string html = escape_html(text);
  for (size_t at = html.find(" %"); at != std::string::npos; at = html.find(" %", at)) html.replace(at, 1, "\u00A0");
  return html;
}

std::string words_html(const Plan& plan) {
  std::string html = "<div class=\"card words\">";
  const auto line = [&](const char* what, const std::optional<size_t>& place) {
    if (!place) return;
    const Row& row = plan.rows[*place];
    html += fmt::format("<p><b>{}</b>: {} node{}, {}, batch {:.0f}: {} examples/s, limited by {}.</p>", what, row.nodes,
                        row.nodes == 1 ? "" : "s", escape_html(way_text(row)), row.batch,
                        records::count_text(row.examples.value), sentence_html(row.limit));
  };
  line("Fastest", plan.fastest);
  line("Cheapest", plan.cheapest);
  line("Knee", plan.knee);
  for (const std::string& note : plan.notes) html += "<p class=\"small soft\">" + sentence_html(note) + "</p>";
  return html + "</div>";
}

}  // namespace

std::string rate_text(double bytes_per_second) {
  const double bits = bytes_per_second * 8;
  if (!(bits < 1e12)) return "unlimited";
  if (bits >= 1e9) return fmt::format("{:.3g} Gbit/s", bits / 1e9);
  return bits >= 1e6 ? fmt::format("{:.3g} Mbit/s", bits / 1e6) : fmt::format("{:.3g} kbit/s", bits / 1e3);
}

std::string html(const Plan& plan) {
  const std::vector<chart::Chart> charts{
      over_nodes(plan, "speed", "Examples per second", {.label = "examples/s", .unit = "", .shows = {0}},
                 [](const Row& row) { return row.examples; }),
      over_nodes(plan, "step", "Time of a step", {.label = "time of a step", .unit = "s", .shows = {0}},
                 [](const Row& row) { return row.step; }),
      over_nodes(plan, "efficiency", "Efficiency per node",
                 {.label = "efficiency per node", .unit = "share", .shows = {0, 1}}, [](const Row& row) {
                   const double each = row.efficiency / row.examples.value;
                   return Interval{each * row.examples.low, row.efficiency, each * row.examples.high};
                 })};
  std::string holders;
  std::string json;
  for (const chart::Chart& each : charts) {
    holders += fmt::format("<div class=\"card\"><div data-chart=\"{}\"></div></div>", each.id);
    json += (json.empty() ? "" : ",\n") + chart::to_json(each);
  }
  const std::string title = escape_html("Plan for " + plan.basis.name);
  std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<div class=\"page\">\n", title,
                      chart::asset("page.css"), kStyle);
  page += fmt::format(
      "<header class=\"top\"><h1>{}</h1><button type=\"button\" id=\"theme\" class=\"small no-print\">Light or "
      "dark</button></header>\n<main class=\"main\">{}<div "
      "class=\"cards\">{}</div>{}</main>\n</div>\n",
      title, words_html(plan), holders, table_html(plan));
  page += "<script type=\"application/json\" id=\"charts\">[" + chart::escape_script(json) + "]</script>\n";
  page += fmt::format("<script>\n{}{}{}</script>\n</body>\n</html>\n", chart::asset("page.js"),
                      chart::asset("chart.js"), kDraw);
  return page;
}

}  // namespace lockstep::plan
