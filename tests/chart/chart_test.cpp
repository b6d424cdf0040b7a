#include "chart/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/error.h"

namespace lockstep::chart {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Chart small_chart() {
  return {.id = "a",
          .title = "Accuracy",
          .text = "",
          .x = {"batch", "", true},
          .y = {"accuracy", "share"},
          .y2 = {"time", "s"},
          .series = {{"sync", {32, 64}, {0.9, NAN}, {0.8, NAN}, {0.95, INFINITY}},
                     {.name = "time", .x = {32}, .y = {1.5}, .second_axis = true, .dashed = true, .color = 0}},
          .marks = {{3.5, "kill worker:1"}},
          .rows = {"worker:0"},
          .spans = {{0, 1, 2, "trains"}}};
}

TEST(ChartJson, HasEveryKeyThatTheScriptReads) {
  const auto json = nlohmann::json::parse(to_json(small_chart()));
  EXPECT_EQ(json["kind"], "line");
  EXPECT_EQ(json["x"]["label"], "batch");
  EXPECT_EQ(json["x"]["log"], true);
  EXPECT_EQ(json["y2"]["unit"], "s");
  EXPECT_EQ(json["series"][0]["low"][0], 0.8);
  EXPECT_EQ(json["series"][1]["second_axis"], true);
  EXPECT_EQ(json["series"][1]["dashed"], true);
  EXPECT_EQ(json["series"][1]["color"], 0);
  EXPECT_EQ(json["marks"][0]["label"], "kill worker:1");
  EXPECT_EQ(json["spans"][0]["to"], 2);
  EXPECT_EQ(json["rows"][0], "worker:0");
}

TEST(ChartJson, WritesWhatIsNotKnownAsNull) {
  const auto json = nlohmann::json::parse(to_json(small_chart()));
  EXPECT_TRUE(json["series"][0]["y"][1].is_null());
  EXPECT_TRUE(json["series"][0]["high"][1].is_null());
}

TEST(ChartJson, KeepsLargeStepsApart) {
  Chart chart = small_chart();
  chart.series = {{"a", {12345678, 12345679}, {1, 2}}};
  const auto json = nlohmann::json::parse(to_json(chart));
  EXPECT_EQ(json["series"][0]["x"][1].get<double>() - json["series"][0]["x"][0].get<double>(), 1);
}

TEST(ChartJson, SurvivesNamesThatAreNoText) {
  Chart chart = small_chart();
  chart.title = std::string("a\"\\\n\x01\xff</script>") + '\0';
  const auto json = nlohmann::json::parse(to_json(chart));
  EXPECT_THAT(json["title"].get<std::string>(), HasSubstr("a\"\\\n"));
}

TEST(Escaping, LetsNoTextEndItsPlace) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  Chart chart = small_chart();
  chart.title = "</script><script>alert(1)</script>\xe2\x80\xa8";
  const std::string escaped = escape_script(to_json(chart));
  EXPECT_THAT(escaped, Not(HasSubstr("</script>")));
  EXPECT_THAT(escaped, Not(HasSubstr("\xe2\x80\xa8")));
  EXPECT_EQ(nlohmann::json::parse(escaped)["title"], chart.title);
}

TEST(Assets, AreCompiledIn) {
  EXPECT_THAT(std::string(asset("chart.js")), HasSubstr("const lockstepChart"));
  EXPECT_THAT(std::string(asset("page.css")), HasSubstr("figure.chart"));
  EXPECT_THAT(std::string(asset("page.js")), HasSubstr("#theme"));
  EXPECT_THROW(asset("other.js"), Error);
}

TEST(Assets, FetchNothing) {
  for (const std::string_view name : {"chart.js", "page.css", "page.js"}) {
    std::string text(asset(name));
    for (size_t at = text.find("http"); at != std::string::npos; at = text.find("http", at + 1)) {
      EXPECT_EQ(text.substr(at, 26), "http://www.w3.org/2000/svg") << name;
    }
    EXPECT_THAT(text, Not(HasSubstr("fetch(")));
    EXPECT_THAT(text, Not(HasSubstr("@import")));
  }
}

}  // namespace
}  // namespace lockstep::chart
