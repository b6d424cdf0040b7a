// Draws the plots of a report as charts. Free functions; one thread.
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
  std::vector<std::string> notes;    ///< why something could not be drawn
  bool panels = false;               ///< its charts are panels of one quantity, with the same y axis
};

/// Returns the plot's title; of an untitled one, what it shows: "Test accuracy by batch size".
std::string plot_title(const Material& material, const lab::PlotSpec& spec);

/// `id` begins the ids of its charts.
Plot plot_of(const Material& material, RunFolders& folders, const lab::PlotSpec& spec, const std::string& id);

// One function per kind of plot; each draws the observations of one facet.

/// Draws lines, bars and speed_up: fields of runs (plots_fields.cpp).
void add_field_charts(const lab::PlotSpec& spec, const Observations& observations, const Reported& reported,
                      const lab::Filter& facet, Plot& plot);
/// Draws curves, usage, phases and timeline: data from the folders of runs (plots_runs.cpp).
void add_run_charts(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);
// Kinds that show one repeat, which the reader chooses (plots_repeats.cpp).
void add_usage(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);
void add_timelines(const lab::PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot);

struct ReadRun {
  const lab::RunResult* run = nullptr;
  const records::RunRecord* record = nullptr;
};
/// Reads the runs whose folder still exists; adds a note for the others.
std::vector<ReadRun> read_runs(const Observations& members, RunFolders& folders, Plot& plot);
/// Joins two texts with a comma; leaves out an empty one.
std::string joined(const std::string& a, const std::string& b);

/// Names a series by these fields; without fields, by what tells the runs apart.
std::string series_name(const Fields& fields, const Case& each, bool with_group);
/// Groups observations into series by these fields; without fields, by variation.
std::vector<Case> series_cases(const Fields& fields, const Observations& observations);

}  // namespace lockstep::report
