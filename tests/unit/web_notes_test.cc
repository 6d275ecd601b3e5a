#include <gtest/gtest.h>

#include "web/source/notes.h"

namespace sonde::web::web_notes_test {
namespace {

constexpr Nanos kStart = 1'700'000'000 * kSecond;

JobDescription Job() {
  JobDescription job;
  job.id = JobStep::Parse("4711.0");
  job.start = kStart;
  job.end = kStart + 100 * kSecond;
  job.notes = {"n3: no samples for 40 s: link lost",
               "alarm hog (critical), task 2 on n3: 80 MiB; raised 2023-11-14T22:13:30Z"};
  return job;
}

TEST(Notes, WhatAReaderOfTheStepMustKnowLastsAsLongAsTheStep) {
  const std::vector<Note> notes = NotesOf(Job(), {}, kStart, kStart + 1000 * kSecond);
  ASSERT_EQ(notes.size(), 1u) << "an alarm has a remark at its time";
  EXPECT_EQ(notes[0].job, "4711.0");
  EXPECT_EQ(notes[0].start, kStart);
  EXPECT_EQ(notes[0].end, kStart + 100 * kSecond);
  EXPECT_EQ(notes[0].description, "n3: no samples for 40 s: link lost");
  EXPECT_EQ(notes[0].custom.at("kind"), "note");
}

TEST(Notes, OnlyThoseThatTouchTheRangeInOrder) {
  StepMoments moments;
  Remark& late = moments.remarks.emplace_back();
  late.text = "late";
  late.first = late.last = kStart + 50 * kSecond;
  Phase& phase = moments.phases.emplace_back();
  phase.name = "solve";
  phase.begin = kStart + 10 * kSecond;
  phase.end = kStart + 20 * kSecond;
  const auto texts = [&](Nanos first, Nanos last) {
    std::vector<std::string> all;
    for (const Note& note : NotesOf(Job(), moments, kStart + first, kStart + last)) {
      all.push_back(note.description);
    }
    return all;
  };
  const std::string step = Job().notes[0];
  EXPECT_EQ(texts(0, 60 * kSecond), (std::vector<std::string>{step, "solve", "late"}));
  EXPECT_EQ(texts(15 * kSecond, 16 * kSecond), (std::vector<std::string>{step, "solve"}));
  EXPECT_EQ(texts(30 * kSecond, 40 * kSecond), std::vector<std::string>{step});
  EXPECT_TRUE(texts(101 * kSecond, 200 * kSecond).empty());
}

TEST(Notes, MoreThanAreShownAreCounted) {
  std::vector<Note> notes(kMaxNotes + 7);
  Bound(2, kStart, notes);
  ASSERT_EQ(notes.size(), kMaxNotes);
  EXPECT_TRUE(IsAboutNotes(notes[0]));
  EXPECT_EQ(notes[0].notes,
            "8 more and those of 2 older steps are left out: ask for a shorter range");
}

}  // namespace
}  // namespace sonde::web::web_notes_test
