// Reads the report part of an experiment file: tables, plots and findings. Checks each field against the known ones.
// Internal to the room; any thread.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "lab/experiment.h"
#include "lab/reader.h"

namespace lockstep::lab {

/// The names that entries of the report may use.
struct Vocabulary {
  Names tags;
  Names groups;  ///< also groups that a scale leaves out
};

/// The CSV files with reported figures: read once, from beside the experiment or from stored texts.
class ReportedFiles {
 public:
  ReportedFiles(const Reader& reader, const Values* kept) : reader_(reader), kept_(kept) {}

  /// Returns the names in its first line. Fails at the place if the file is missing or not a table.
  Names columns(const YamlNode& at);
  [[nodiscard]] const Values& texts() const { return texts_; }

 private:
  [[nodiscard]] std::string load(const YamlNode& at) const;

  const Reader& reader_;
  const Values* kept_;
  Values texts_;
};

class ReportReader {
 public:
  ReportReader(const Reader& reader, const Vocabulary& vocabulary, ReportedFiles& reported)
      : reader_(reader), vocabulary_(vocabulary), reported_(reported) {}

  /// nullptr stands for an empty report.
  ReportSpec read(const YamlNode* report);

 private:
  enum class Wanted : uint8_t { set, measured, any };
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  TableSpec table(const YamlNode& node);
  PlotSpec plot(const YamlNode& node);
  void plot_values(const YamlNode& node, PlotSpec& plot);
  FindingSpec finding(const YamlNode& node);
  FindingTest test(const YamlNode& node);
  void test_values(const YamlNode& node, FindingTest& test);
  void curve_fields(const YamlNode& node, FindingTest& test);

  std::string unique_name(const YamlNode& node, const char* what, std::set<std::string>& taken);
  /// Returns the field's name as used in results: settings with underscores.
  [[nodiscard]] std::string field(const YamlNode& node, Wanted wanted, bool per_worker = false) const;
  [[nodiscard]] Names fields(const YamlNode& map, const char* key, Wanted wanted, bool per_worker = false) const;
  [[nodiscard]] bool is_set_field(const std::string& name, bool per_worker) const;
  [[nodiscard]] std::string hint(const std::string& name, Wanted wanted, bool per_worker) const;
  [[nodiscard]] Per per(const YamlNode& node) const;
  /// Fails if the filter tells workers or machines apart, but the entry is about runs.
  void check_parts(const YamlNode& node, const Filter& filter, Per per) const;
  [[nodiscard]] Filter filter(const YamlNode& node) const;
  void add_where(const YamlNode& map, const char* key, Filter& filter) const;
  /// `used` are fields that columns of the same name stand for.
  void reported(const YamlNode& node, std::string& file, Pairs& columns, Pairs& where, const Names& used,
                bool per_worker);

  const Reader& reader_;
  const Vocabulary& vocabulary_;
  ReportedFiles& reported_;
};

}  // namespace lockstep::lab
