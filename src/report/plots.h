// The plots of a report as charts. Free functions; one thread.
#pragma once

#include <string>
#include <vector>

#include "chart/chart.h"
#include "report/observations.h"
#include "report/reported.h"
#include "report/run_folders.h"

namespace lockstep::report {

struct Plot {
  std::vector<chart::Chart> charts;  ///< one for each combination of the facets, or for each column
  std::vector<std::string> notes;    ///< what could not be drawn, and why
};

/// `id` begins the ids of its charts.
Plot plot_of(const Material& material, RunFolders& folders, const lab::PlotSpec& spec, const std::string& id);

// By kind. Each draws the observations of one facet.

/// lines, bars and speed_up: fields of runs (plots_fields.cpp).
void add_field_charts(const lab::PlotSpec& spec, const Observations& observations, const Reported& reported,
                      const lab::Filter& facet, Plot& plot);
/// curves, usage, phases and timeline: from the folders of runs (plots_runs.cpp).
void add_run_charts(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);
// Those that show one repeat, of which the reader chooses (plots_repeats.cpp).
void add_usage(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);
void add_timelines(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);

struct ReadRun {
  const lab::RunResult* run = nullptr;
  const records::RunRecord* record = nullptr;
};
/// Those whose folder is still there; of the others a note.
std::vector<ReadRun> read_runs(const Observations& members, RunFolders& folders, Plot& plot);
/// With a comma between them where both say something.
std::string joined(const std::string& a, const std::string& b);

/// What a series of these fields is called; without fields, what tells the runs apart.
std::string series_name(const Fields& fields, const Case& each, bool with_group);
/// By the fields that tell series apart; without any, by variation.
std::vector<Case> series_cases(const Fields& fields, const Observations& observations);

}  // namespace lockstep::report
