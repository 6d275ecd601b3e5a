// Several answers that become one: what is said of their nodes is the worst of it.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "web/source/answers.h"

namespace sonde::web::web_answers_test {
namespace {

Answer Of(uint32_t answered, uint32_t expected, std::string rows_only) {
  Answer answer;
  answer.nodes_answered = answered;
  answer.nodes_expected = expected;
  answer.rows_only = std::move(rows_only);
  return answer;
}

TEST(Answers, AQuestionByAnotherNameIsOfTheNodesOfThatWhichLacksTheMost) {
  QuerySpec question;
  question.metric = "used_RAM";
  question.end = kSecond;
  const std::optional<AliasQuery> alias = AliasQuery::Of(question);
  ASSERT_TRUE(alias);
  ASSERT_EQ(alias->specs().size(), 2u);
  // Of the first one fewer nodes answered, and of the second more are missing.
  const Result<Answer> whole =
      FoldAnswers(*alias, {Of(3, 4, ""), Of(5, 8, "a node has not answered")});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->nodes_answered, 5u);
  EXPECT_EQ(whole->nodes_expected, 8u);
  EXPECT_EQ(whole->rows_only, "a node has not answered");
}

TEST(Answers, OneThatIsWholeKeepsItsNodes) {
  Answer answer;
  KeepWorst(Of(4, 4, ""), answer);
  EXPECT_EQ(answer.nodes_answered, 4u);
  KeepWorst(Of(7, 7, ""), answer);
  EXPECT_EQ(answer.nodes_expected, 4u);
  EXPECT_EQ(answer.rows_only, "");
}

}  // namespace
}  // namespace sonde::web::web_answers_test
