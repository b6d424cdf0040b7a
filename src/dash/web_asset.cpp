#include "chart/chart.h"
#include "dash/site.h"

namespace lockstep::dash {

const char* embedded(std::string_view name);  // made by CMake from web/

std::string_view web_asset(std::string_view name) {
  for (const std::string_view shared : {"chart.js", "page.js", "page.css"}) {
    if (name == shared) return chart::asset(name);
  }
  const char* text = embedded(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

}  // namespace lockstep::dash
