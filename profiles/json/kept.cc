#include "profiles/json/kept.h"

#include <string>

#include "profiles/json/fields.h"

namespace sonde {

namespace json = boost::json;

void WriteJson(JsonWriter& w, const json::value& value) {
  switch (value.kind()) {
    case json::kind::object:
      w.BeginObject();
      for (const auto& [name, member] : value.get_object()) {
        WriteJson(w.Key({name.data(), name.size()}), member);
      }
      w.EndObject();
      break;
    case json::kind::array:
      w.BeginArray();
      for (const json::value& element : value.get_array()) WriteJson(w, element);
      w.EndArray();
      break;
    case json::kind::string:
      w.Value(std::string_view(value.get_string().data(), value.get_string().size()));
      break;
    case json::kind::double_:
      w.Value(value.get_double());
      break;
    case json::kind::int64:
      w.Value(value.get_int64());
      break;
    case json::kind::uint64:
      w.Value(value.get_uint64());
      break;
    case json::kind::bool_:
      w.Value(value.get_bool());
      break;
    case json::kind::null:
      w.Null();
      break;
  }
}

void WriteKept(JsonWriter& w, const KeptMembers& kept, std::string_view within) {
  if (kept.empty()) return;
  const std::string prefix = within.empty() ? "" : KeptName(within, "");
  for (const KeptMembers::Member& member : kept.list()) {
    const std::string_view name = member.name;
    if (!name.starts_with(prefix)) continue;
    const std::string_view own = name.substr(prefix.size());
    if (own.empty() || own.find(KeptName("", "")) != std::string_view::npos) continue;
    w.Key(own).Raw(member.json);
  }
}

void WriteWord(JsonWriter& w, std::string_view name, std::string_view word, bool known,
               const KeptMembers& kept) {
  const std::string* written = known ? nullptr : kept.Find(KeptName(name, ""));
  w.Key(name);
  if (written == nullptr) {
    w.Value(word);
  } else {
    w.Raw(*written);
  }
}

// The names that were asked for are marked; most objects have no others.
void JsonFields::Keep(KeptMembers& kept, std::string_view within) const {
  if (object_ == nullptr || known_ == object_->size()) return;
  size_t index = 0;
  for (const auto& [name, member] : *object_) {
    const size_t i = index++;
    if (i < kMarked ? (marks_ >> i & 1) != 0 : far_.contains(i)) continue;
    const std::string_view own(name.data(), name.size());
    std::string text;
    JsonWriter w(text);
    WriteJson(w, member);
    kept.Add(within.empty() ? std::string(own) : KeptName(within, own), std::move(text));
  }
}

void JsonFields::KeepWord(KeptMembers& kept, std::string_view name) const {
  const json::value* value = object_ == nullptr ? nullptr : object_->if_contains(name);
  if (value == nullptr) return;
  std::string text;
  JsonWriter w(text);
  WriteJson(w, *value);
  kept.Add(KeptName(name, ""), std::move(text));
}

}  // namespace sonde
