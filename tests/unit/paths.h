// Where the files are that unit tests read and the programs that they run. sonde_test_paths() in
// tests/unit/CMakeLists.txt defines those of a test in a file of its own: a path among the
// compiler's words would have every checkout compile the test anew.
#pragma once

namespace sonde {

extern const char kClientProcess[];
extern const char kEventsDir[];
extern const char kFrames[];
extern const char kFunctionsAllocator[];
extern const char kFunctionsFrugal[];
extern const char kFunctionsKeys[];
extern const char kFunctionsLarge[];
extern const char kFunctionsLinked[];
extern const char kFunctionsTool[];
extern const char kFunctionsWithin[];
extern const char kLibsonde[];
extern const char kLibsondeFunctions[];
extern const char kLibsondeIo[];
extern const char kLibsondeMpi[];
extern const char kPackagedConf[];
extern const char kSondeCommand[];
extern const char kSourceDir[];
extern const char kStandInLevelZero[];
extern const char kStandInLevelZeroOld[];
extern const char kStandInNvml[];
extern const char kStandInNvmlOld[];
extern const char kStandInRocmSmi[];
extern const char kStandInRocmSmiOld[];

}  // namespace sonde
