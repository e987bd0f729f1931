#pragma once
// How a report looks: on light and on dark displays, wide and narrow.

#include <string_view>

namespace taut::train::detail {

inline constexpr std::string_view report_style = R"css(
:root {
  color-scheme: light dark;
  --page: #fff; --panel: #f6f8fa; --ink: #1f2328; --faint: #59636e; --rule: #d8dee4;
  --s0: #2563eb; --s1: #d9480f; --s2: #2b8a3e; --hit: 37 99 235; --miss: 217 72 15;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1c2128; --ink: #e6e8eb; --faint: #9aa4af; --rule: #343b44;
    --s0: #6ea8fe; --s1: #ff922b; --s2: #69db7c; --hit: 66 133 244; --miss: 240 100 30;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem; max-width: 75rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.6rem; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; }
figure { margin: 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--faint); padding-bottom: .4rem; }
pre { margin: 0; font: 13px/1.45 ui-monospace, monospace; }
.tiles, .confusion { display: flex; flex-wrap: wrap; gap: 1rem; align-items: stretch; }
.confusion { column-gap: 2.5rem; align-items: flex-start; }
.tile { flex: 1 1 9rem; padding: .6rem .9rem; background: var(--panel); border-radius: 8px; }
.tile b { display: block; font-size: 1.35rem; font-weight: 600; }
.tile span, .note { color: var(--faint); }
.charts, .images { display: grid; gap: 1rem; }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
.chart { padding: .75rem; background: var(--panel); border-radius: 8px; }
.chart figcaption { font-weight: 600; padding-left: .4rem; }
.chart svg { display: block; width: 100%; }
.chart text { fill: var(--faint); font-size: 12px; }
.chart path { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.chart .grid { color: var(--rule); stroke-width: 1; stroke-linecap: butt; }
.chart circle { fill: currentColor; stroke: transparent; stroke-width: 14; }
.key { margin-left: .9rem; font-weight: 400; white-space: nowrap; }
.key::before {
  content: ""; display: inline-block; width: 1.1em; height: 3px; border-radius: 2px;
  margin-right: .35em; vertical-align: .25em; background: currentColor;
}
.s0 { color: var(--s0); } .s1 { color: var(--s1); } .s2 { color: var(--s2); }
.scroll { overflow-x: auto; max-width: 100%; }
.pane { max-height: 28rem; overflow: auto; padding: .75rem; background: var(--panel); border-radius: 8px; }
.list th, .list td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--rule); text-align: left; }
.list th { font-weight: 600; } .list th, .matrix th { color: var(--faint); }
.list .n { text-align: right; padding-left: .8rem; }
.list td.text { white-space: pre-wrap; overflow-wrap: anywhere; }
.matrix th { font-weight: 400; white-space: nowrap; padding-right: .5rem; text-align: right; }
.matrix th[scope=col] { vertical-align: bottom; padding: 0 0 .4rem; text-align: center; }
.matrix th[scope=col] span { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; }
.matrix td { min-width: 2.9rem; height: 2.1rem; padding: 0 .3rem; text-align: center; }
.matrix tr > td + td, .matrix tr > th + td { border: 1px solid var(--page); }
.matrix td.hit { background: rgb(var(--hit) / var(--a)); }
.matrix td.miss { background: rgb(var(--miss) / var(--a)); }
.matrix td.deep { color: #fff; }
.matrix td.sum { color: var(--faint); text-align: right; padding-left: .6rem; }
.matrix.dense { background: var(--panel); }
.matrix.dense td { min-width: 0; width: 6px; height: 6px; padding: 0; border: 0; }
.images { grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); }
.image { font-size: 13px; line-height: 1.35; overflow-wrap: anywhere; }
.image img {
  display: block; width: 100%; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated;
  margin-bottom: .3rem; background: var(--panel);
}
.wrong { color: var(--s1); } .right { color: var(--s0); }
)css";

}  // namespace taut::train::detail
