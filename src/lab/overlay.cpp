#include "lab/overlay.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

bool is_off(const YamlNode& node) { return node.is(Kind::scalar) && node.text == "off"; }

void lay_over(YamlNode& below, const YamlNode& above);

void lay_map_over(YamlNode& below, const YamlNode& above) {
  for (size_t i = 0; i < above.keys.size(); ++i) {
    const auto key = std::find_if(below.keys.begin(), below.keys.end(),
                                  [&](const YamlNode& k) { return k.text == above.keys[i].text; });
    if (key == below.keys.end()) {
      below.keys.push_back(above.keys[i]);
      below.items.push_back(above.items[i]);
    } else {
      lay_over(below.items[static_cast<size_t>(key - below.keys.begin())], above.items[i]);
    }
  }
}

void lay_over(YamlNode& below, const YamlNode& above) {
  if (above.is(Kind::null)) return;
  if (below.is(Kind::map) && above.is(Kind::map)) {
    lay_map_over(below, above);
  } else {
    below = above;
  }
}

/// Lays a map from names to changes over a list of named maps; a list replaces the list.
void lay_over_named(const Reader& reader, std::string_view what, YamlNode& below, const YamlNode& above) {
  if (above.is(Kind::null)) return;
  if (!above.is(Kind::map)) {
    below = above;
    return;
  }
  const auto name_of = [](const YamlNode& item) {
    const YamlNode* name = item.is(Kind::map) ? item.find("name") : nullptr;
    return name == nullptr ? std::string() : name->text;
  };
  Names names;
  for (const YamlNode& item : below.items) names.push_back(name_of(item));
  std::vector<bool> gone(below.items.size(), false);
  for (size_t i = 0; i < above.keys.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), above.keys[i].text);
    if (below.kind != Kind::list || found == names.end() || found->empty()) {
      const std::string shown = base::shown(above.keys[i].text);
      reader.fail(above.keys[i], fmt::format("the file has no '{}' among its {}{}", shown, what,
                                             names.empty() ? "" : base::hint(shown, names)));
    }
    const auto at = static_cast<size_t>(found - names.begin());
    gone[at] = is_off(above.items[i]);
    if (!gone[at]) lay_over(below.items[at], above.items[i]);
  }
  std::vector<YamlNode> left;
  for (size_t i = 0; i < below.items.size(); ++i) {
    if (!gone[i]) left.push_back(std::move(below.items[i]));
  }
  below.items = std::move(left);
}

YamlNode& value_or_new(YamlNode& map, const YamlNode& key) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text == key.text) return map.items[i];
  }
  map.keys.push_back(key);
  map.items.push_back({});
  return map.items.back();
}

void lay_over_report(const Reader& reader, YamlNode& below, const YamlNode& above) {
  if (below.is(Kind::null)) below.kind = Kind::map;
  if (!below.is(Kind::map) || !above.is(Kind::map)) {
    lay_over(below, above);
    return;
  }
  for (size_t i = 0; i < above.keys.size(); ++i) {
    lay_over_named(reader, above.keys[i].text, value_or_new(below, above.keys[i]), above.items[i]);
  }
}

}  // namespace

YamlNode without_scales(const YamlNode& file) {
  YamlNode result = file;
  result.keys.clear();
  result.items.clear();
  for (size_t i = 0; i < file.keys.size(); ++i) {
    if (file.keys[i].text == "scales") continue;
    result.keys.push_back(file.keys[i]);
    result.items.push_back(file.items[i]);
  }
  return result;
}

YamlNode at_scale(const Reader& reader, const YamlNode& file, const YamlNode& scale) {
  YamlNode result = without_scales(file);
  if (scale.is(Kind::null)) return result;
  reader.check_map(scale, "a scale");
  for (size_t i = 0; i < scale.keys.size(); ++i) {
    const std::string& key = scale.keys[i].text;
    if (key == "name" || key == "scales") reader.fail(scale.keys[i], fmt::format("a scale cannot change '{}'", key));
    YamlNode& below = value_or_new(result, scale.keys[i]);
    if (key == "groups") {
      lay_over_named(reader, "groups", below, scale.items[i]);
    } else if (key == "report") {
      lay_over_report(reader, below, scale.items[i]);
    } else {
      lay_over(below, scale.items[i]);
    }
  }
  return result;
}

}  // namespace lockstep::lab
