// Requests to the endpoints over an empty store, as the server makes them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <future>
#include <memory>
#include <string>
#include <string_view>

#include "tests/unit/web_fake_source.h"
#include "web/opentsdb/put_store.h"
#include "web/router.h"

namespace sonde::web {

class OpenTsdbTest : public testing::Test {
 protected:
  static constexpr Nanos kNow = 1'800'000'000 * kSecond;

  Response Call(const Request& request) {
    std::promise<Response> promise;
    std::future<Response> future = promise.get_future();
    Dispatch(Context(*source_, &clock_, nullptr, nan_null_), request,
             [&](Response response) { promise.set_value(std::move(response)); });
    Response answer = future.get();
    while (answer.next && answer.next(answer.body)) {
    }
    return answer;
  }
  Response Get(std::string_view target) {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok()) << target;
    return Call(request);
  }
  Response Post(std::string_view target, std::string body, std::string encoding = "") {
    return Send(Method::kPost, target, std::move(body), std::move(encoding));
  }
  Response Send(Method method, std::string_view target, std::string body = "",
                std::string encoding = "") {
    Request request;
    EXPECT_TRUE(ParseTarget(target, request).ok()) << target;
    request.method = method;
    request.content_type = "application/json";
    request.content_encoding = std::move(encoding);
    request.body = std::move(body);
    return Call(request);
  }
  static boost::json::value Json(const Response& response, int status = 200) {
    EXPECT_EQ(response.status, status) << response.body;
    return boost::json::parse(response.body);
  }
  // The message of an error.
  static std::string Message(const Response& response, int status = 400) {
    const boost::json::value json = Json(response, status);
    EXPECT_EQ(json.at("error").at("code"), status);
    return std::string(json.at("error").at("message").as_string());
  }

  FixedClock clock_{kNow};
  bool nan_null_ = false;
  std::shared_ptr<const DataSource> source_ = std::make_shared<PutStore>();
};

}  // namespace sonde::web
