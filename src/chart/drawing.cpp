#include "chart/drawing.h"

#include <fmt/format.h>

#include <algorithm>

#include "chart/plot_view.h"
#include "lockstep/error.h"

namespace lockstep::chart {
namespace {

void draw_title(const PlotView& view, Canvas& canvas) {
  double y = kTitleSize;
  for (const std::string& line : view.title) {
    canvas.text({.at = {0, y}, .text = line, .color = page_color("text"), .size = kTitleSize, .bold = true});
    y += kTitleSize + 3;
  }
}

void draw_legend(const PlotView& view, Canvas& canvas) {
  for (const LegendEntry& entry : view.legend) {
    const DrawnSeries& one = view.series[entry.series];
    const auto [x, y] = entry.at;
    const double middle = y - 2.7;
    if (view.chart->kind == Kind::line) {
      const std::vector<double> dash = one.data->dashed || one.twin ? std::vector<double>{4, 3} : std::vector<double>{};
      canvas.line({{x, middle}, {x + 16, middle}}, {.color = one.color, .width = 1.3, .dash = dash});
      canvas.area(marker(one.shape, {x + 8, middle}, 2.3), {.color = one.color});
    } else {
      const std::vector<Point> corners{
          {x + 3, middle - 3.5}, {x + 13, middle - 3.5}, {x + 13, middle + 3.5}, {x + 3, middle + 3.5}};
      canvas.area(corners, {.color = one.color, .opacity = one.data->dashed ? 0.14 : 1});
    }
    canvas.text({.at = {x + 19, y}, .text = one.name, .color = page_color("text")});
  }
}

void draw_grid(const PlotView& view, Canvas& canvas) {
  const Paint paint{.color = page_color("line"), .width = 0.5};
  const double right = view.left + view.w;
  for (const Tick& tick : view.y_ticks)
    canvas.line({{view.left, view.y(tick.value)}, {right, view.y(tick.value)}}, paint);
  if (view.chart->kind != Kind::timeline) return;
  for (size_t row = 0; row < view.chart->rows.size(); ++row) {
    canvas.line({{view.left, view.row_place(row)}, {right, view.row_place(row)}}, paint);
  }
}

void draw_x_axis(const PlotView& view, Canvas& canvas) {
  const std::string soft = page_color("soft");
  const double bottom = view.top + view.h;
  canvas.line({{view.left, bottom}, {view.left + view.w, bottom}}, {.color = page_color("faint"), .width = 0.6});
  for (const Tick& tick : view.x_ticks) {
    const double x = view.x(tick.value);
    const double half = text_width(view.font, tick.text, kTextSize) / 2;
    // The last number may reach beyond the plot; it must not leave the page.
    const double inside = view.turned > 0 ? x + 3 : std::clamp(x, half, std::max(half, view.width - half));
    canvas.text({.at = {inside, bottom + kTextHeight},
                 .text = tick.text,
                 .color = soft,
                 .anchor = view.turned > 0 ? Anchor::end : Anchor::middle,
                 .turned = view.turned});
  }
  canvas.text({.at = {view.left + view.w / 2, view.height - 4},
               .text = view.chart->x.label,
               .color = soft,
               .anchor = Anchor::middle,
               .bold = true});
}

void draw_y_axes(const PlotView& view, Canvas& canvas) {
  const std::string soft = page_color("soft");
  const Chart& chart = *view.chart;
  const double above = view.top - 8 - static_cast<double>(view.mark_levels) * kTextHeight;
  const auto tick_at = [&](double x, double y, const std::string& text, Anchor anchor) {
    canvas.text({.at = {x, y + 2.8}, .text = text, .color = soft, .anchor = anchor});
  };
  for (const Tick& tick : view.y_ticks) tick_at(view.left - 5, view.y(tick.value), tick.text, Anchor::end);
  for (const Tick& tick : view.y2_ticks) tick_at(view.left + view.w + 5, view.y2(tick.value), tick.text, Anchor::start);
  if (chart.kind == Kind::timeline) {
    for (size_t row = 0; row < chart.rows.size(); ++row) {
      tick_at(view.left - 5, view.row_place(row), chart.rows[row], Anchor::end);
    }
    return;
  }
  canvas.text({.at = {0, above}, .text = chart.y.label, .color = soft, .bold = true});
  if (!view.second) return;
  canvas.text({.at = {view.width, above}, .text = chart.y2.label, .color = soft, .anchor = Anchor::end, .bold = true});
}

/// Draws the moments of faults, their names on levels above the plot.
void draw_marks(const PlotView& view, Canvas& canvas) {
  const std::string bad = page_color("bad");
  for (const DrawnMark& mark : view.marks) {
    const double y = view.top - 4 - static_cast<double>(mark.level) * kTextHeight;
    canvas.line({{mark.x, y}, {mark.x, view.top + view.h}}, {.color = bad, .width = 0.8, .dash = {2, 2}});
    if (mark.text.empty()) continue;
    canvas.text({.at = {mark.x + (mark.leftwards ? -3 : 3), y},
                 .text = mark.text,
                 .color = bad,
                 .anchor = mark.leftwards ? Anchor::end : Anchor::start,
                 .size = kMarkSize});
  }
}

PlotView checked_view(const Chart& chart, const Look& look, const Font& font) {
  if (!(look.width_mm >= kNarrowest && look.width_mm <= kWidest)) {
    throw UsageError(fmt::format("width {} mm: a drawing has {} to {} mm", look.width_mm, kNarrowest, kWidest));
  }
  return view_of(chart, look, font);
}

std::string drawn(const PlotView& view, Canvas& canvas) {
  draw_title(view, canvas);
  draw_legend(view, canvas);
  draw_grid(view, canvas);
  draw_x_axis(view, canvas);
  draw_y_axes(view, canvas);
  canvas.clip({view.left, view.top - 3}, {view.left + view.w, view.top + view.h});
  draw_inside(view, canvas);
  canvas.unclip();
  draw_marks(view, canvas);
  return canvas.finished();
}

}  // namespace

std::string drawn_as_svg(const Chart& chart, const Look& look) {
  const PlotView view = checked_view(chart, look, font_called(look.font));
  return drawn(view, *svg_canvas({view.width, view.height, view.font, chart.title}));
}

std::string drawn_as_pdf(const Chart& chart, const Look& look) {
  const Font font = font_called(look.font);
  if (!font.standard) {
    throw UsageError(fmt::format("font '{}': PDF takes sans, serif or mono; SVG takes any", look.font));
  }
  const PlotView view = checked_view(chart, look, font);
  return drawn(view, *pdf_canvas({view.width, view.height, view.font, chart.title}));
}

}  // namespace lockstep::chart
