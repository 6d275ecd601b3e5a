# Writes OUT, a source file that holds the event sets FILES (separated by commas).
string(REPLACE "," ";" files "${FILES}")
string(CONCAT code "// Made from events/*.events.\n#include \"daemon/collect/counters/event_set.h\"\n\n"
         "namespace sonde::collect {\n\n"
         "const std::vector<EventSetFile>& BuiltInEventSets() {\n"
         "  static const std::vector<EventSetFile> sets = {\n")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND code "      {\"${name}\", R\"events(${text})events\"},\n")
endforeach()
string(APPEND code "  };\n  return sets;\n}\n\n}  // namespace sonde::collect\n")
file(WRITE "${OUT}" "${code}")
