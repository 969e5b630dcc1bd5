#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "agent/json.h"
#include "verbatim/agent.h"

namespace verbatim {

namespace {

constexpr double kWidth = 760;  // of the timeline, in pixels
constexpr double kLeft = 130;
constexpr double kRow = 22;
constexpr size_t kShownText = 400;

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string shortened(const std::string& text) {
  const std::string_view first = agent::first_bytes(text, kShownText);
  return escaped(first) + (first.size() < text.size() ? "..." : "");
}

constexpr size_t kNone = SIZE_MAX;

/// A task of the run, or a request to the model.
struct Bar {
  std::string name;
  std::string kind;  // "model", or the task's state
  std::string line;
  std::string outcome;
  double begin = -1;
  double end = 0;
  int64_t task = 0;
  int64_t round = 0;
  std::vector<int64_t> inputs;
  double planned = 0;     // of a task: when its line was written
  size_t writer = kNone;  // of a task: the request in whose reply that was
  bool critical = false;  // whether the run would have ended sooner without it
};

struct Picture {
  std::vector<Bar> bars;
  std::string end_text;
  bool answered = false;
  double seconds = 0;
  int64_t prompt_tokens = 0;
  int64_t reply_tokens = 0;
  int64_t requests = 0;

  /// The bar of a task, or kNone.
  size_t task(int64_t id) const {
    for (size_t i = 0; i < bars.size(); ++i) {
      if (bars[i].task == id && id != 0) return i;
    }
    return kNone;
  }
};

Picture picture_of(const std::vector<AgentEvent>& events) {
  Picture picture;
  size_t request = kNone;  // the last
  for (const AgentEvent& event : events) {
    picture.seconds = std::max(picture.seconds, event.seconds);
    const size_t found = picture.task(event.task);
    Bar* const bar = found == kNone ? nullptr : &picture.bars[found];
    if (event.kind == "asked") {
      Bar made;
      made.name = event.text;
      made.kind = "model";
      made.begin = event.seconds;
      made.end = -1;
      made.round = event.round;
      request = picture.bars.size();
      picture.bars.push_back(made);
      ++picture.requests;
    } else if (event.kind == "replied") {
      picture.prompt_tokens += event.prompt_tokens;
      picture.reply_tokens += event.reply_tokens;
      for (Bar& one : picture.bars) {
        if (one.kind != "model" || one.end >= 0) continue;
        one.end = event.seconds;
        one.line = event.text;
      }
    } else if (event.kind == "task") {
      Bar made;
      made.name = fmt::format("{}. {}", event.task, event.tool);
      made.line = event.text;
      made.task = event.task;
      made.round = event.round;
      made.inputs = event.inputs;
      made.planned = event.seconds;
      made.writer = request;
      picture.bars.push_back(made);
    } else if (event.kind == "started" && bar) {
      if (bar->begin < 0) bar->begin = event.seconds;
    } else if (event.kind == "settled" && bar) {
      bar->end = event.seconds;
      bar->kind = event.state;
      bar->outcome = event.text;
    } else if (event.kind == "answer" || event.kind == "failed") {
      picture.end_text = event.text;
      picture.answered = event.kind == "answer";
    }
  }
  for (Bar& bar : picture.bars) {
    if (bar.end < 0) bar.end = picture.seconds;
  }
  return picture;
}

/// Seconds of the critical path by who took them; the rest of a run was spent waiting for people and for
/// turns.
struct CriticalPath {
  std::vector<size_t> bars;
  double model = 0;
  double calls = 0;
};

/// Finds what decided when the run was over: from what ended last, a request or a call, back to what it
/// waited for. A call waited for the input that ended last or, if its line came later than that, for the
/// model; a request waited for whatever ended last before it began. Marks all of it.
CriticalPath critical_path(Picture& picture) {
  std::vector<Bar>& bars = picture.bars;
  size_t last = kNone;
  for (size_t i = 0; i < bars.size(); ++i) {
    if (bars[i].begin >= 0 && (last == kNone || bars[i].end >= bars[last].end)) last = i;
  }
  CriticalPath path;
  double until = last == kNone ? 0 : bars[last].end;
  while (last != kNone) {
    Bar& bar = bars[last];
    bar.critical = true;
    path.bars.insert(path.bars.begin(), last);
    (bar.task == 0 ? path.model : path.calls) += bar.begin < 0 ? 0 : std::max(until - bar.begin, 0.0);
    size_t next = kNone;
    const auto take_later = [&](size_t i) {
      if (next == kNone || bars[i].end > bars[next].end) next = i;
    };
    if (bar.task == 0) {  // all bars before a request's began before it
      for (size_t i = 0; i < last; ++i) {
        if (bars[i].end <= bar.begin) take_later(i);
      }
    } else {
      for (const int64_t input : bar.inputs) {
        const size_t i = picture.task(input);
        if (i != kNone) take_later(i);
      }
      if (next == kNone || bars[next].end < bar.planned) next = bar.writer;
    }
    if (next == kNone || next >= last) break;
    const bool streamed = bar.task != 0 && bars[next].task == 0;  // it did not wait for the rest of the reply
    until = streamed ? std::min(bars[next].end, bar.planned) : bars[next].end;
    last = next;
  }
  return path;
}

std::string timeline(const Picture& picture) {
  const double scale = (kWidth - kLeft - 70) / std::max(picture.seconds, 1e-6);
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" role=\"img\" aria-label=\"timeline\">\n",
      kWidth, kRow * static_cast<double>(picture.bars.size()) + 8);
  double y = 4;
  for (const Bar& bar : picture.bars) {
    svg += fmt::format("<text x=\"0\" y=\"{:.0f}\">{}</text>", y + 14,
                       escaped(agent::first_bytes(bar.name, 18)));
    if (bar.begin >= 0) {
      const double x = kLeft + bar.begin * scale;
      svg += fmt::format(
          "<rect class=\"{}{}\" x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" "
          "rx=\"3\"><title>{}</title></rect>",
          escaped(bar.kind), bar.critical ? " critical" : "", x, y,
          std::max((bar.end - bar.begin) * scale, 1.5), shortened(bar.line));
      svg += fmt::format("<text class=\"time\" x=\"{:.1f}\" y=\"{:.0f}\">{:.3f} s</text>",
                         x + std::max((bar.end - bar.begin) * scale, 1.5) + 5, y + 13, bar.end - bar.begin);
    }
    svg += "\n";
    y += kRow;
  }
  return svg + "</svg>\n";
}

/// The graph: tasks in columns, each right of all that it uses.
std::string graph(const Picture& picture) {
  constexpr double kBoxWidth = 120;
  constexpr double kColumn = 170;
  constexpr double kStep = 42;
  std::map<int64_t, std::pair<double, double>> places;
  std::map<int64_t, int> columns;
  std::map<int, int> filled;
  for (const Bar& bar : picture.bars) {
    if (bar.task == 0) continue;
    int column = 0;
    for (const int64_t input : bar.inputs) column = std::max(column, columns[input] + 1);
    columns[bar.task] = column;
    places[bar.task] = {column * kColumn + 4, filled[column]++ * kStep + 4};
  }
  double width = 0;
  double height = 0;
  for (const auto& [id, place] : places) {
    width = std::max(width, place.first + kBoxWidth + 8);
    height = std::max(height, place.second + 36);
  }
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" role=\"img\" aria-label=\"graph of calls\">\n",
      width, height);
  for (const Bar& bar : picture.bars) {
    for (const int64_t input : bar.inputs) {
      if (places.count(input) == 0) continue;
      const size_t used = picture.task(input);
      const auto [x, y] = places[input];
      const auto [to_x, to_y] = places[bar.task];
      const bool critical = picture.bars[used].critical && bar.critical;
      svg += fmt::format(
          "<path class=\"edge{}\" d=\"M{:.0f} {:.0f} C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\"/>\n",
          critical ? " critical" : "", x + kBoxWidth, y + 14, x + kBoxWidth + 25, y + 14, to_x - 25,
          to_y + 14, to_x, to_y + 14);
    }
  }
  for (const Bar& bar : picture.bars) {
    if (bar.task == 0) continue;
    const auto [x, y] = places[bar.task];
    svg += fmt::format(
        "<g><title>{}</title><rect class=\"{}{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"28\" "
        "rx=\"5\"/>"
        "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>\n",
        shortened(bar.line), escaped(bar.kind), bar.critical ? " critical" : "", x, y, kBoxWidth, x + 8,
        y + 19, escaped(agent::first_bytes(bar.name, 16)));
  }
  return svg + "</svg>\n";
}

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 "
    "1rem;color:#222;background:#fff}"
    "h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.6rem}svg{max-width:100%;height:auto;overflow:"
    "visible}svg "
    "text{font-size:12px;fill:#222}"
    "svg "
    ".time{fill:#666}rect{fill:#bbb}rect.model{fill:#c9b3e6}rect.done{fill:#a9d5b0}rect.failed,rect.late{"
    "fill:#eea9a2}"
    "rect.skipped,rect.cancelled{fill:#ddd}rect.critical{stroke:#1f5f2a;stroke-width:2}.edge{fill:none;"
    "stroke:#999;stroke-width:1.4}"
    ".edge.critical{stroke:#1f5f2a;stroke-width:2.4}table{border-collapse:collapse;width:100%}"
    "td,th{border-bottom:1px solid #ddd;padding:.3rem "
    ".5rem;text-align:left;vertical-align:top}td{overflow-wrap:anywhere}td:first-child{overflow-wrap:normal}"
    ".calls td{overflow-wrap:normal}.calls td:first-child{min-width:14rem}.calls "
    "td:first-child,.calls td:last-child{overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;margin:0;font-size:12px}.answer{font-size:1.1rem;background:#f2f7f3;padding:."
    "6rem .8rem;border-radius:6px}"
    ".bad{background:#fbeeee}"
    // On a narrow screen the cells of a call stand below each other.
    "@media(max-width:40rem){.calls tr:first-child{display:none}.calls tr{display:block;padding:.4rem "
    "0;border-bottom:1px solid #ddd}.calls td{display:inline-block;border:0;padding:0 .6rem 0 0}"
    ".calls td:first-child,.calls td:last-child{display:block;min-width:0}}"
    ":root{color-scheme:light dark}@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#17191b}"
    "svg text{fill:#e6e6e6}svg .time{fill:#aaa}rect{fill:#555}rect.model{fill:#5d4787}rect.done{fill:#2f6b3f}"
    "rect.failed,rect.late{fill:#8a3b34}rect.skipped,rect.cancelled{fill:#444}"
    "rect.critical,.edge.critical{stroke:#8fdda0}.edge{stroke:#888}td,th,.calls tr{border-color:#3c3f42}"
    ".answer{background:#1f2b23}.bad{background:#3b2323}}";

}  // namespace

std::string agent_report(const std::string& question, const std::vector<AgentEvent>& events,
                         const AgentPrices& prices) {
  Picture picture = picture_of(events);
  const CriticalPath path = critical_path(picture);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><meta "
      "name=\"viewport\" "
      "content=\"width=device-width\"><style>{1}</style></head><body>\n<h1>{0}</h1>\n<p "
      "class=\"answer{2}\">{3}</p>\n",
      escaped(question), kStyle, picture.answered ? "" : " bad", escaped(picture.end_text));
  constexpr double kMillion = 1e6;
  const double money = (static_cast<double>(picture.prompt_tokens) * prices.prompt +
                        static_cast<double>(picture.reply_tokens) * prices.reply) /
                       kMillion;
  html += fmt::format("<p>{:.3f} seconds, {} requests to the model, {} tokens read and {} written",
                      picture.seconds, picture.requests, picture.prompt_tokens, picture.reply_tokens);
  if (prices.prompt > 0 || prices.reply > 0) html += fmt::format(", which cost {:.6f}", money);
  html += ".</p>\n<h2>When</h2>\n" + timeline(picture);
  html += "<h2>What used what</h2>\n" + graph(picture);
  std::string chain;
  for (const size_t i : path.bars) chain += (chain.empty() ? "" : " → ") + escaped(picture.bars[i].name);
  if (!chain.empty()) {
    html += fmt::format(
        "<p>The critical path, which decided when the answer was there: {} ({:.3f} s of the model, {:.3f} s "
        "of "
        "calls).</p>\n",
        chain, path.model, path.calls);
  }
  html +=
      "<h2>Calls</h2>\n<table "
      "class=\"calls\"><tr><th>Call</th><th>State</th><th>Seconds</th><th>Result</th></tr>\n";
  for (const Bar& bar : picture.bars) {
    if (bar.task == 0) continue;
    html +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td><pre>{}</pre></td></tr>\n", escaped(bar.line),
                    escaped(bar.kind), bar.begin >= 0 ? fmt::format("{:.3f}", bar.end - bar.begin) : "",
                    shortened(bar.outcome));
  }
  html += "</table>\n<h2>What the model wrote</h2>\n<table>";
  for (const Bar& bar : picture.bars) {
    if (bar.task != 0) continue;
    html += fmt::format("<tr><td>{} {}</td><td><pre>{}</pre></td></tr>\n", escaped(bar.name), bar.round,
                        escaped(bar.line));
  }
  return html + "</table>\n</body></html>\n";
}

}  // namespace verbatim
