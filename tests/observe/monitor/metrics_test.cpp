// Metrics for Prometheus: the text, checked by the format's rules, and its server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/temp_dir.h"
#include "http/client.h"
#include "lockstep/error.h"
#include "observe/metrics/metrics_server.h"

namespace lockstep::observe {
namespace {

using lockstep::testing::ask;
using lockstep::testing::body_of;
using lockstep::testing::get;
using lockstep::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Reads the text as strictly as the format demands: names, escapes, HELP and TYPE once and before their samples,
/// samples of a name together, no sample twice. Returns the values by name and labels.
std::map<std::string, double> parse_strictly(const std::string& text) {
  static const std::regex kHelp(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)*))");
  static const std::regex kType(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge))");
  static const std::regex kSample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\n|\\")*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\n|\\")*")*\})? (NaN|[+-]Inf|[-+0-9.e]+))re");
  EXPECT_TRUE(text.empty() || text.ends_with('\n'));
  std::map<std::string, double> values;
  std::set<std::string> helped;
  std::set<std::string> typed;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      EXPECT_TRUE(helped.insert(match[1]).second) << line;
      current = match[1];
    } else if (std::regex_match(line, match, kType)) {
      EXPECT_TRUE(typed.insert(match[1]).second) << line;
      EXPECT_EQ(match[1], current) << line;
    } else if (std::regex_match(line, match, kSample)) {
      EXPECT_EQ(match[1], current) << line;
      EXPECT_TRUE(typed.contains(match[1])) << line;
      EXPECT_TRUE(values.emplace(match[1].str() + match[2].str(), std::stod(match[3])).second) << line;
    } else {
      ADD_FAILURE() << "not in the format: " << line;
    }
  }
  return values;
}

std::vector<Metric> some_metrics() {
  return {{"steps_total", Metric::Kind::counter, "Steps", {{"role", "worker:0"}}, 1200},
          {"loss", Metric::Kind::gauge, "Loss", {}, 0.125},
          {"steps_total", Metric::Kind::counter, "Steps", {{"role", "worker:1"}}, 1300}};
}

TEST(PrometheusText, MetricsOfANameStandTogetherUnderOneHeading) {
  EXPECT_EQ(prometheus_text(some_metrics()),
            "# HELP lockstep_steps_total Steps\n# TYPE lockstep_steps_total counter\n"
            "lockstep_steps_total{role=\"worker:0\"} 1200\nlockstep_steps_total{role=\"worker:1\"} 1300\n"
            "# HELP lockstep_loss Loss\n# TYPE lockstep_loss gauge\nlockstep_loss 0.125\n");
  EXPECT_EQ(prometheus_text({}), "");
}

TEST(PrometheusText, WhateverNamesAndLabelsHoldTheFormatIsKept) {
  const std::vector<Metric> metrics = {{"eth0.1 received",
                                        Metric::Kind::gauge,
                                        "bytes\nper \\ \"second\"",
                                        {{"if-name", "a\"b\\c\nd"}, {"0", ""}},
                                        1e300},
                                       {"nan", Metric::Kind::gauge, "", {}, std::nan("")},
                                       {"large", Metric::Kind::gauge, "", {}, std::numeric_limits<double>::infinity()},
                                       {"small", Metric::Kind::gauge, "", {}, -std::numeric_limits<double>::infinity()},
                                       {"tiny", Metric::Kind::gauge, "", {}, -1.25e-300}};
  const auto values = parse_strictly(prometheus_text(metrics));
  EXPECT_EQ(values.size(), 5U);
  EXPECT_EQ(values.at(R"(lockstep_eth0_1_received{if_name="a\"b\\c\nd",_0=""})"), 1e300);
  EXPECT_TRUE(std::isnan(values.at("lockstep_nan")));
  EXPECT_EQ(values.at("lockstep_large"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(values.at("lockstep_tiny"), -1.25e-300);
}

TEST(MetricsServer, ServesTheFiguresAsTheyAreWhenSomeoneAsks) {
  std::atomic<int> asked = 0;
  const MetricsServer server("127.0.0.1:0", [&] {
    std::vector<Metric> metrics = some_metrics();
    metrics[1].value = ++asked;
    return metrics;
  });
  for (int i = 1; i <= 3; ++i) {
    const std::string response = get(server.port(), "/metrics");
    EXPECT_THAT(response,
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Type: text/plain; version=0.0.4")));
    EXPECT_EQ(parse_strictly(body_of(response)).at("lockstep_loss"), i);
  }
  EXPECT_THAT(get(server.port(), "/metrics?x=1"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string head = ask(server.port(), "HEAD /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST(MetricsServer, SaysWhereTheFiguresAreAndThatThereIsNothingElse) {
  const MetricsServer server("127.0.0.1:0", some_metrics);
  EXPECT_THAT(get(server.port(), "/"), AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("href=\"/metrics\"")));
  EXPECT_THAT(get(server.port(), "/etc/passwd"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get(server.port(), "/metrics/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(server.port(), "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(server.port(), "GET /metrics\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(server.port(), "GET /" + std::string(9000, 'x')), StartsWith("HTTP/1.1 431 "));
}

TEST(MetricsServer, FiguresThatFailAreAStatusOfTheirOwn) {
  const MetricsServer server("127.0.0.1:0", []() -> std::vector<Metric> { throw Error("not now"); });
  EXPECT_THAT(get(server.port(), "/metrics"), AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("not now")));
}

TEST(MetricsServer, TakesAddressesAndNothingElse) {
  for (const char* bad : {"", "9100", "127.0.0.1", "127.0.0.1:", ":9100", "127.0.0.1:99999", "127.0.0.1:-1", "::1:9100",
                          "127.0.0.1:9100x", "[::1]", "a b:1", "127.0.0.1:+5", "http://127.0.0.1:9100"}) {
    EXPECT_THAT(message_of<UsageError>([&] { const MetricsServer server(bad, some_metrics); }),
                AllOf(StartsWith("metrics: '"), HasSubstr("HOST:PORT")))
        << bad;
  }
  const MetricsServer first("127.0.0.1:0", some_metrics);
  const std::string taken = "127.0.0.1:" + std::to_string(first.port());
  EXPECT_THAT(message_of<IoError>([&] { const MetricsServer second(taken, some_metrics); }),
              AllOf(HasSubstr("cannot listen at " + taken), HasSubstr("in use")));
}

}  // namespace
}  // namespace lockstep::observe
