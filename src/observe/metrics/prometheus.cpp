#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>

#include "observe/metrics/metrics_server.h"

namespace lockstep::observe {
namespace {

constexpr std::string_view kPrefix = "lockstep_";

/// Returns a valid name: characters not allowed become underscores.
std::string name_of(std::string_view text, std::string_view prefix) {
  std::string name(prefix);
  for (const char c : text) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name.insert(0, "_");
  return name;
}

std::string escaped(std::string_view text, bool quotes) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\\\";
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '"' && quotes) {
      result += "\\\"";
    } else {
      result += c;
    }
  }
  return result;
}

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

void append_sample(std::string& text, const std::string& name, const Metric& metric) {
  text += name;
  for (size_t i = 0; i < metric.labels.size(); ++i) {
    const auto& [label, value] = metric.labels[i];
    fmt::format_to(std::back_inserter(text), "{}{}=\"{}\"", i == 0 ? "{" : ",", name_of(label, ""),
                   escaped(value, true));
  }
  if (!metric.labels.empty()) text += '}';
  text += ' ' + value_text(metric.value) + '\n';
}

}  // namespace

std::string prometheus_text(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;  // in the order of their first metrics
  for (const Metric& metric : metrics) {
    const std::string name = name_of(metric.name, kPrefix);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) {
    bool first = true;
    for (const Metric& metric : metrics) {
      if (name_of(metric.name, kPrefix) != name) continue;
      if (first) {
        fmt::format_to(std::back_inserter(text), "# HELP {} {}\n# TYPE {} {}\n", name, escaped(metric.help, false),
                       name, metric.kind == Metric::Kind::counter ? "counter" : "gauge");
      }
      first = false;
      append_sample(text, name, metric);
    }
  }
  return text;
}

}  // namespace lockstep::observe
