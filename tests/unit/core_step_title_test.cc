// What a step is called.
#include <gtest/gtest.h>

#include "core/text/step_title.h"

namespace sonde::core_step_title_test {
namespace {

struct Named {
  const char* command;
  const char* script;  // "": it stays as it is
};

class ScriptOfCommand : public testing::TestWithParam<Named> {};

TEST_P(ScriptOfCommand, IsItsScript) {
  EXPECT_EQ(ScriptOf(GetParam().command), GetParam().script) << GetParam().command;
}

INSTANTIATE_TEST_SUITE_P(
    Python, ScriptOfCommand,
    testing::Values(
        Named{"python3 train.py", "train.py"},
        Named{"python3 -u -X dev train.py --epochs 3", "train.py"},
        Named{"/usr/bin/python3.11 /home/ada/src/train.py", "train.py"},
        Named{"python2.7 old.py -c x", "old.py"}, Named{"pypy3 fast.py", "fast.py"},
        Named{"python  -uB   a.py", "a.py"}, Named{"python -uXdev a.py", "a.py"},
        Named{"python -uX dev a.py", "a.py"}, Named{"python -W error::UserWarning a.py", "a.py"},
        Named{"python --check-hash-based-pycs never a.py", "a.py"},
        Named{"python -m torch.distributed.run --nproc 4 train.py", "torch.distributed.run"},
        Named{"python -mpytest tests", "pytest"}, Named{"python -um pytest", "pytest"},
        Named{"python3 -- -odd.py", "-odd.py"}, Named{"python3 -c import numpy; print(1)", ""},
        Named{"python3 -uc print(1) a.py", ""}, Named{"python3 -", ""}, Named{"python3", ""},
        Named{"python3 -u", ""}, Named{"python3 -m", ""}, Named{"python3 -Y a.py", ""},
        Named{"pythonic a.py", ""}, Named{"python3-config --libs", ""}, Named{"", ""}));
INSTANTIATE_TEST_SUITE_P(Shells, ScriptOfCommand,
                         testing::Values(Named{"bash job.sh", "job.sh"},
                                         Named{"/bin/sh ./run.sh a b", "run.sh"},
                                         Named{"bash -eu -o pipefail scripts/job.sh", "job.sh"},
                                         Named{"bash -euo pipefail job.sh", "job.sh"},
                                         Named{"bash +o posix job.sh", "job.sh"},
                                         Named{"bash --norc --rcfile my.rc job.sh", "job.sh"},
                                         Named{"zsh -f job.zsh", "job.zsh"},
                                         Named{"bash -c ./app 1", ""}, Named{"bash -lc ./app", ""},
                                         Named{"bash -s", ""}, Named{"bash -l", ""}));
INSTANTIATE_TEST_SUITE_P(
    Others, ScriptOfCommand,
    testing::Values(Named{"perl -w -I lib tools/fold.pl x", "fold.pl"},
                    Named{"perl -Ilib -MData::Dumper fold.pl", "fold.pl"},
                    Named{"perl5.36 -T fold.pl", "fold.pl"}, Named{"perl -ne print x.txt", ""},
                    Named{"Rscript --vanilla fit.R data.csv", "fit.R"},
                    Named{"Rscript --default-packages=stats fit.R", "fit.R"},
                    Named{"Rscript -e 1+1", ""}, Named{"julia -t 4 --project=. heat.jl", "heat.jl"},
                    Named{"julia -O3 -p4 heat.jl", "heat.jl"},
                    Named{"julia --threads 8 heat.jl", "heat.jl"},
                    Named{"julia --eval 1+1 heat.jl", ""}, Named{"julia -e 1+1", ""},
                    Named{"java -Xmx8g -jar /opt/solver.jar -n 3", "solver.jar"},
                    Named{"java -jar -Xmx8g solver.jar", "solver.jar"},
                    Named{"java -cp lib/a.jar:lib/b.jar org.lab.Main 3", "org.lab.Main"},
                    Named{"java -m lab/org.lab.Main", "lab/org.lab.Main"},
                    Named{"java -version", ""}, Named{"./mpi_heat -t 8", ""},
                    Named{"env python3 train.py", ""}, Named{"node server.js", ""}));

TEST(StepTitleTest, NamesThatPeopleGaveStay) {
  EXPECT_EQ(StepTitle("python3", "python3 -u train.py"), "train.py");
  EXPECT_EQ(StepTitle("/usr/bin/python3", "/usr/bin/python3 train.py"), "train.py");
  EXPECT_EQ(StepTitle("python3", "/usr/bin/python3 train.py"), "train.py");
  EXPECT_EQ(StepTitle("", "python3 train.py"), "train.py");
  EXPECT_EQ(StepTitle("resnet", "python3 train.py"), "resnet");
  EXPECT_EQ(StepTitle("job.sh", "python3 train.py"), "job.sh");
  EXPECT_EQ(StepTitle("mpi_heat", "./mpi_heat -t 8"), "mpi_heat");
  EXPECT_EQ(StepTitle("python3", "python3 -c print(1)"), "python3");
  EXPECT_EQ(StepTitle("heat", ""), "heat");
  EXPECT_EQ(StepTitle("", ""), "");
}

}  // namespace
}  // namespace sonde::core_step_title_test
