// metric-proxy's endpoints of FTIO: periods of a step's metrics in its shape, how they are asked
// for, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/unit/web_proxy_fixture.h"

namespace sonde::web::web_proxy_ftio_test {
namespace {

using testing::HasSubstr;

// A burst a minute; a wave of a minute; what is constant.
constexpr const char* kDisk = "node_disk_read_bytes_total%7Bdevice%3D%22nvme0n1%22%7D";
constexpr const char* kNetwork = "node_network_receive_bytes_total%7Bdevice%3D%22ib0%22%7D";
constexpr const char* kMemory = "node_memory_MemTotal_bytes";

std::string Of(const char* metric, const char* more = "", const char* path = "/trace/ftio") {
  return std::string(path) + "?jobid=4711.0&metricid=" + metric + more;
}

// As encodeURIComponent writes it.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr const char* kHex = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    (out += '%') += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string Modified(const char* metric, std::string_view args) {
  return Of(metric, "", "/ftio/modified_args") + "&args=" + Escaped(args);
}

double Number(const json::value& value) { return value.to_number<double>(); }

TEST_F(Proxy, APeriodHasTheShapeOfFtios) {
  const json::value found = Json(Get(Of(kDisk)));
  EXPECT_EQ(found.at("metric"), "node_disk_read_bytes_total{device=\"nvme0n1\"}");
  ASSERT_EQ(found.at("dominant_freq").as_array().size(), 1u);
  EXPECT_NEAR(1 / Number(found.at("dominant_freq").at(0)), 60, 1);
  for (const char* member : {"conf", "amp", "phi"}) {
    EXPECT_EQ(found.at(member).as_array().size(), 1u) << member;
  }
  EXPECT_GT(Number(found.at("conf").at(0)), 0.1);
  EXPECT_LE(Number(found.at("conf").at(0)), 1);
  EXPECT_EQ(Number(found.at("t_start")), 1);
  EXPECT_EQ(Number(found.at("t_end")), 599);
  EXPECT_EQ(found.at("n_samples"), 599);
  EXPECT_EQ(found.at("ranks"), 8);
  EXPECT_EQ(found.at("total_bytes"), 0);
  EXPECT_EQ(Number(found.at("freq")), 1);
  for (const char* member : {"freq", "conf", "amp", "phi"}) {
    EXPECT_EQ(found.at("top_freq").at(member).as_array().size(), 10u) << member;
  }
  ASSERT_EQ(found.at("wave_names").as_array().size(), 10u);
  EXPECT_THAT(json::serialize(found.at("wave_names").at(0)), HasSubstr("*cos(2\u03c0*"));
  EXPECT_NEAR(Number(found.at("period")), 60, 0.2);
  EXPECT_GT(Number(found.at("correlation")), 0.8);
  EXPECT_EQ(found.as_object().if_contains("why_not"), nullptr);
}

// Their page draws amp * 2 / n_samples * cos(2 pi freq t + phi), t since the first point.
TEST_F(Proxy, AWaveLiesWhereTheMetricHasIt) {
  const json::value found = Json(Get(Of(kNetwork)));
  ASSERT_EQ(found.at("dominant_freq").as_array().size(), 1u) << json::serialize(found);
  const double frequency = Number(found.at("dominant_freq").at(0));
  const double amplitude = Number(found.at("amp").at(0)) * 2 / Number(found.at("n_samples"));
  const double phase = Number(found.at("phi").at(0));
  const json::value rates =
      Json(Get(std::string("/trace/plot?derivate=true&jobid=4711.0&filter=") + kNetwork));
  double mean = 0, product = 0, squares = 0;
  const double first = Number(rates.at(0).at(0));
  for (const json::value& rate : rates.as_array()) mean += Number(rate.at(1));
  mean /= static_cast<double>(rates.as_array().size());
  for (const json::value& rate : rates.as_array()) {
    const double t = Number(rate.at(0)) - first;
    if (t == 0 || (t >= 200 && t < 241)) continue;  // there n3 was away
    const double wave = amplitude * std::cos(2 * std::numbers::pi * frequency * t + phase);
    product += wave * (Number(rate.at(1)) - mean);
    squares += wave * wave;
  }
  EXPECT_NEAR(product / squares, 1, 0.2);
}

TEST_F(Proxy, WhatHasNoPeriodSaysSo) {
  const json::value found = Json(Get(Of(kMemory)));
  for (const char* member : {"dominant_freq", "conf", "amp", "phi"}) {
    EXPECT_TRUE(found.at(member).as_array().empty()) << member;
  }
  // There are frequencies, as their page shows them, of no height.
  EXPECT_EQ(found.at("wave_names").as_array().size(), 10u);
  for (const char* member : {"conf", "amp"}) {
    ASSERT_EQ(found.at("top_freq").at(member).as_array().size(), 10u) << member;
    for (const json::value& one : found.at("top_freq").at(member).as_array()) EXPECT_EQ(one, 0);
  }
  EXPECT_EQ(found.at("n_samples"), 600);
  EXPECT_EQ(found.at("why_not"), "it is constant, or changes at one rate");
  EXPECT_EQ(found.as_object().if_contains("period"), nullptr);
  // Once up, and no more.
  EXPECT_TRUE(Json(Get(Of("solver.residual"))).at("dominant_freq").as_array().empty());
}

TEST_F(Proxy, PeriodsOfChangesAndOfMain) {
  const json::value rates = Json(Get(Of(kDisk)));
  // A counter's changes are looked at anyhow; only the name differs.
  for (const char* more : {"&derivate=deriv__", "&derivate=true"}) {
    json::value derived = Json(Get(Of(kDisk, more)));
    EXPECT_EQ(derived.at("metric"), "deriv__node_disk_read_bytes_total{device=\"nvme0n1\"}");
    derived.as_object()["metric"] = rates.at("metric");
    EXPECT_EQ(derived, rates);
  }
  EXPECT_EQ(Json(Get(Of((std::string("deriv__") + kDisk).c_str()))),
            Json(Get(Of(kDisk, "&derivate=deriv__"))));
  // One step runs. The size of main is 0, as in its description.
  json::value main = Json(Get(std::string("/trace/ftio?jobid=main&metricid=") + kNetwork));
  EXPECT_EQ(main.at("ranks"), 0);
  main.as_object()["ranks"] = 4;
  EXPECT_EQ(main, Json(Get(std::string("/trace/ftio?jobid=4712.0&metricid=") + kNetwork)));
}

TEST_F(Proxy, APeriodOfAPartOfTheTime) {
  const json::value part = Json(Get(Modified(kNetwork, R"({"ts": 250, "te": 550, "n_freq": 3})")));
  EXPECT_EQ(Number(part.at("t_start")), 250);
  EXPECT_EQ(Number(part.at("t_end")), 550);
  EXPECT_EQ(part.at("n_samples"), 301);
  EXPECT_EQ(part.at("top_freq").at("freq").as_array().size(), 3u);
  EXPECT_NEAR(Number(part.at("period")), 60, 0.5);
  // Its time is that of the whole trace, so the wave lies as it does there.
  const auto at = [&](const json::value& found, double t) {
    return std::cos(2 * std::numbers::pi * t / 60 + Number(found.at("phi").at(0)) +
                    2 * std::numbers::pi * 400 *
                        (Number(found.at("dominant_freq").at(0)) - 1.0 / 60));
  };
  EXPECT_NEAR(at(part, 400), at(Json(Get(Of(kNetwork))), 400), 0.3);
  const json::value none = Json(Get(Modified(kNetwork, R"({"ts": 5000})")));
  EXPECT_EQ(none.at("n_samples"), 0);
  EXPECT_TRUE(none.at("dominant_freq").as_array().empty());
}

TEST_F(Proxy, FewPointsAreAPointEachInterval) {
  const json::value found = Json(Get(Of(kNetwork, "&points=100")));
  EXPECT_LE(Number(found.at("n_samples")), 101);
  EXPECT_NEAR(Number(found.at("freq")) * 7, 1, 0.2);
  EXPECT_NEAR(Number(found.at("period")), 60, 2);
}

// What the page of the fork sends, with nothing changed in its form.
constexpr std::string_view kForm =
    R"({"freq":-1,"memory_limit":0.5,"ts":null,"te":null,"transformation":"dft","level":null,)"
    R"("wavelet":null,"outlier":"z-score","periodicity_detection":null,"tol":0.7,"dtw":false,)"
    R"("no_psd":true,"n_freq":4,"fourier_fit":false,"autocorrelation":false,)"
    R"("window_adaptation":null,"hits":null,"filter_type":null,"filter_cutoff":null,)"
    R"("filter_cutoff2":null,"filter_order":null,"custom_args":null})";

TEST_F(Proxy, ArgumentsAreSavedAndFollowed) {
  const json::value before = Json(Get("/ftio/args"));
  const json::value form = json::parse(json::string_view(kForm.data(), kForm.size()));
  EXPECT_EQ(before.as_object().size(), form.as_object().size());
  for (const auto& [name, value] : form.as_object()) {
    EXPECT_TRUE(before.as_object().contains(name)) << name;
  }
  EXPECT_EQ(Number(before.at("tol")), 0.8);
  EXPECT_EQ(before.at("no_psd"), false);
  const json::value found = Json(Get(Of(kDisk)));
  EXPECT_EQ(Json(Get(Modified(kDisk, json::serialize(before)))), found);

  EXPECT_EQ(Post("/ftio/args", std::string(kForm)).body,
            R"({"operation":"FTIO args updated","success":true})");
  const json::value after = Json(Get("/ftio/args"));
  EXPECT_EQ(Number(after.at("tol")), 0.7);
  EXPECT_EQ(after.at("n_freq"), 4);
  EXPECT_EQ(after.at("no_psd"), true);
  const json::value otherwise = Json(Get(Of(kDisk)));
  EXPECT_EQ(otherwise.at("top_freq").at("freq").as_array().size(), 4u);
  EXPECT_EQ(Json(Get(Modified(kDisk, kForm))), otherwise);
  // What is refused changes nothing.
  EXPECT_EQ(Post("/ftio/args", R"({"tol": 2})").status, 400);
  EXPECT_EQ(Json(Get("/ftio/args")), after);
}

TEST_F(Proxy, NoServerOfFtioIsAsked) {
  EXPECT_EQ(Get("/ftio/port").body, R"({"operation":"","success":true})");
  EXPECT_EQ(Post("/ftio/port", R"({"port": ""})").status, 200);
  const json::value refused = Json(Post("/ftio/port", R"({"port": "5555"})"), 400);
  EXPECT_EQ(refused.at("success"), false);
  EXPECT_THAT(json::serialize(refused.at("operation")), HasSubstr("/trace/json"));
  EXPECT_EQ(Json(Get("/ftio/logs")).as_array().size(), 1u);
}

TEST_F(Proxy, WhatFtioCannotBeAskedIsRefused) {
  const std::pair<std::string, int> cases[] = {
      {"/trace/ftio", 400},
      {"/trace/ftio?jobid=4711.0", 400},
      {"/trace/ftio?metricid=node_load1", 400},
      {"/trace/ftio?jobid=9.0&metricid=node_load1", 404},
      {"/trace/ftio?jobid=4711.0&metricid=no_such", 404},
      {"/trace/ftio?jobid=4711.0&metricid=deriv__", 400},
      {Of(kDisk, "&derivate=perhaps"), 400},
      {Of(kDisk, "&points=1"), 400},
      {Of(kDisk, "", "/ftio/modified_args"), 400},
      {Modified(kDisk, "no JSON"), 400},
      {Modified(kDisk, "[]"), 400},
      {Modified(kDisk, R"({"tol": 0})"), 400},
      {Modified(kDisk, R"({"tol": "much"})"), 400},
      {Modified(kDisk, R"({"n_freq": -1})"), 400},
      {Modified(kDisk, R"({"n_freq": 1001})"), 400},
      {Modified(kDisk, R"({"ts": -5})"), 400},
      {Modified(kDisk, R"({"ts": 50, "te": 40})"), 400},
      {Modified(kDisk, R"({"transformation": "wave_disc"})"), 400},
      {Modified(kDisk, R"({"outlier": "dbscan"})"), 400},
      {Modified(kDisk, R"({"periodicity_detection": "corr"})"), 400},
      {Modified(kDisk, R"({"filter_type": "lowpass"})"), 400},
      {Modified(kDisk, R"({"dtw": true})"), 400},
      {Modified(kDisk, R"({"fourier_fit": true})"), 400},
      {Modified(kDisk, R"({"tolerance": 0.5})"), 400},
  };
  for (const auto& [target, status] : cases) {
    const json::value error = Json(Get(target), status);
    EXPECT_EQ(error.at("success"), false) << target;
    EXPECT_EQ(error.at("operation"), error.at("error").at("message")) << target;
  }
  for (const char* body : {"", "[]", R"({"dtw": 1})"}) {
    EXPECT_EQ(Post("/ftio/args", body).status, 400) << body;
    EXPECT_EQ(Post("/ftio/port", body).status, 400) << body;
  }
}

}  // namespace
}  // namespace sonde::web::web_proxy_ftio_test
