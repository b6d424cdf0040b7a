#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "chart/chart.h"
#include "report/appendix.h"
#include "report/checks.h"
#include "report/defaults.h"
#include "report/figures.h"
#include "report/plots.h"
#include "report/summary.h"
#include "report/tables.h"

namespace lockstep::report {

const char* embedded(std::string_view name);  // made by cmake/EmbedFiles.cmake

namespace {

using chart::escape_html;

/// Lets the page fetch nothing, and show only pictures that it makes from its own charts.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";

/// A chart with more letters or bars than these takes the whole width.
constexpr size_t kManyLetters = 100;
constexpr size_t kManyBars = 24;

class Page {
 public:
  explicit Page(const lab::Results& results) : results_(results), material_(results), spec_(spec_of(results)) {}

  std::string html() {
    findings_ = check_findings(material_, folders_);
    add_section("summary", "Summary",
                banner_html(results_) + tiles_html(material_, findings_) + "<div class=\"card words\">" +
                    summary_html(material_, findings_) + "</div>");
    if (!findings_.empty()) add_section("findings", "Findings", findings_html(findings_));
    add_tables();
    add_plots();
    add_section("runs", "Runs", runs_html(results_));
    add_section("environment", "Environment", environment_html(results_));
    add_section("again", "To run it again", again_html(results_));
    add_section("method", "What the figures are", method_html(spec_));
    return whole();
  }

 private:
  void add_section(const std::string& id, const std::string& title, const std::string& body) {
    contents_ += fmt::format("<a href=\"#{}\">{}</a>", id, escape_html(title)) + below_;
    below_.clear();
    body_ += fmt::format("<section id=\"{}\"><h2>{}</h2>{}</section>", id, escape_html(title), body);
  }

  /// Adds a line to the contents, below the section that is added next.
  void add_below(const std::string& id, const std::string& title) {
    below_ += fmt::format("<a class=\"below\" href=\"#{}\">{}</a>", escape_html(id), escape_html(title));
  }

  void add_tables() {
    std::string body;
    const std::vector<std::string> ids = part_ids("table", names_of(spec_.tables));
    for (size_t i = 0; i < ids.size(); ++i) {
      const Table table = table_of(material_, spec_.tables[i], ids[i]);
      body += table_html(table);
      add_below(table.id, table.title);
      if (table.rows.empty()) continue;
      if (!tables_.empty()) tables_ += ",\n";
      tables_ += fmt::format("{}:{{\"csv\":{},\"md\":{},\"tex\":{}}}", chart::json_text(table.id),
                             chart::json_text(table_csv(table)), chart::json_text(table_markdown(table)),
                             chart::json_text(table_latex(table)));
    }
    if (!body.empty()) add_section("tables", "Tables", body);
  }

  void add_plots() {
    std::string body;
    std::string singles;
    const auto flush = [&] {
      if (!singles.empty()) body += "<div class=\"cards\">" + singles + "</div>";
      singles.clear();
    };
    const std::vector<std::string> ids = part_ids("plot", names_of(spec_.plots));
    for (size_t i = 0; i < ids.size(); ++i) {
      const lab::PlotSpec& spec = spec_.plots[i];
      const std::string& id = ids[i];
      const std::string title = plot_title(material_, spec);
      const Plot plot = plot_of(material_, folders_, spec, id);
      add_below(id, title);
      if (plot.charts.size() == 1 || plot.charts.empty()) {
        singles += plot_html(plot, id, title);
        continue;
      }
      flush();
      body += fmt::format("<div id=\"{}\" class=\"facets\"><h3>{}</h3><div class=\"cards\">{}</div>{}</div>", id,
                          escape_html(title), cards_html(plot), notes_html(plot));
    }
    flush();
    if (!body.empty()) add_section("plots", "Plots", body);
  }

  std::string plot_html(const Plot& plot, const std::string& id, const std::string& title) {
    if (plot.charts.empty()) {
      return fmt::format("<div class=\"card\" id=\"{}\"><h3>{}</h3>{}</div>", id, escape_html(title), notes_html(plot));
    }
    return fmt::format("<div class=\"card{}\" id=\"{}\">{}{}</div>", wide(plot.charts[0]), id, holder(plot.charts[0]),
                       notes_html(plot));
  }

  std::string cards_html(const Plot& plot) {
    std::string html;
    for (const chart::Chart& chart : plot.charts)
      html += fmt::format("<div class=\"card{}\">{}</div>", wide(chart), holder(chart));
    return html;
  }

  static std::string_view wide(const chart::Chart& chart) {
    const size_t bars = chart.kind == chart::Kind::bar ? chart.x.categories.size() * chart.series.size() : 0;
    size_t letters = 0;
    for (const std::string& name : chart.x.categories) letters += name.size();
    return letters > kManyLetters || bars > kManyBars ? " wide" : "";
  }

  /// Returns the element in which the script draws a chart.
  std::string holder(const chart::Chart& chart) {
    if (!charts_.empty()) charts_ += ",\n";
    charts_ += chart::to_json(chart);
    return fmt::format("<div data-chart=\"{}\"></div>", escape_html(chart.id));
  }

  static std::string notes_html(const Plot& plot) {
    constexpr size_t kMostNotes = 4;
    std::string html;
    for (size_t i = 0; i < std::min(plot.notes.size(), kMostNotes); ++i)
      html += "<p class=\"small soft\">" + escape_html(plot.notes[i]) + "</p>";
    if (plot.notes.size() > kMostNotes)
      html += fmt::format("<p class=\"small soft\">And {} more such notes.</p>", plot.notes.size() - kMostNotes);
    return html;
  }

  [[nodiscard]] std::string whole() const {
    const std::string title =
        escape_html(results_.experiment.title.empty() ? results_.experiment.name : results_.experiment.title);
    std::string page = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
    page +=
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "
        "content=\"no-referrer\">\n";
    page += fmt::format("<title>{}</title>\n<style>\n{}{}</style>\n</head>\n", title, chart::asset("page.css"),
                        embedded("report.css"));
    page += "<body>\n<div class=\"page with-side\">\n" + header_html(results_);
    page += "<aside class=\"side no-print\"><details open><summary>Contents</summary><nav aria-label=\"Contents\">" +
            contents_ + "</nav></details></aside>\n";
    page +=
        "<main class=\"main\"><noscript><p class=\"card\">A script in this page draws the plots; scripts are "
        "turned off.</p></noscript>\n";
    page += body_ + "</main>\n</div>\n";
    page += "<script type=\"application/json\" id=\"charts\">[" + chart::escape_script(charts_) + "]</script>\n";
    page +=
        "<script type=\"application/json\" id=\"tables-as-text\">{" + chart::escape_script(tables_) + "}</script>\n";
    page += fmt::format("<script>\n{}{}{}</script>\n</body>\n</html>\n", chart::asset("page.js"),
                        chart::asset("chart.js"), embedded("report.js"));
    return page;
  }

  const lab::Results& results_;
  Material material_;
  lab::ReportSpec spec_;
  RunFolders folders_;
  std::vector<Finding> findings_;
  std::string contents_;
  std::string below_;
  std::string body_;
  std::string charts_;  ///< JSON, one chart after another
  std::string tables_;  ///< JSON: the tables in the formats that the page saves
};

}  // namespace

std::string html(const lab::Results& results) { return Page(results).html(); }

}  // namespace lockstep::report
