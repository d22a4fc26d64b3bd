// The difference of two runs: their texts aligned token by token, and what each step of this run gained on the other.

const BARS_HEIGHT = 84, LEAD_HEIGHT = 34, CHART_LEFT = 88;
const ALIGNED_CELLS = 24;

function createDiff(store, insights, chooser) {
  const words = el("div", { class: "dtx-diffwords" });
  const chart = el("div", { class: "dtx-gains" });
  const list = el("ol", { class: "dtx-aligned", "aria-label": "Both texts, token by token" });
  const said = el("p", { class: "dtx-gainline" });
  const box = el("div", { class: "dtx-diff" }, words, chart, said, list);
  let diff = null, width = 0, bars = [], cells = [], scrolling = 0;

  function draw() {
    const rival = chooser.rival();
    const answer = rival ? insights.ask("diff", [store.id, rival]) : null;
    if (answer !== diff || diff === null) {
      diff = answer;
      build(rival);
    }
    mark();
  }

  function build(rival) {
    bars = []; cells = [];
    if (!diff || diff.error) {
      fill(words, el("p", { class: diff ? "is-bad" : "" }, diff ? diff.error : rival ? "Loading \u2026" : ""));
      fill(chart); fill(list); fill(said);
      return;
    }
    fill(words, ...diff.sentences.map((sentence, i) => el("p", { class: i ? "" : "dtx-split" }, sentence)));
    drawChart();
    drawText();
  }

  function extreme(values) { return Math.max(1e-9, ...values.map(Math.abs)); }

  // Above the line: this run was faster over a step's tokens. Below: its lead, added up over the text.
  function drawChart() {
    width = chart.clientWidth || width;
    if (!width || !diff || diff.error || diff.num_common < 2) { fill(chart); return; }
    const pitch = (width - CHART_LEFT - 8) / diff.num_common, x = (index) => CHART_LEFT + index * pitch;
    const most = extreme(diff.gains.map((gain) => gain.gain_ms)), middle = BARS_HEIGHT / 2;
    bars = diff.gains.map((gain) => {
      const high = Math.abs(gain.gain_ms) / most * (middle - 4), left = x(gain.start + 1), wide = gain.num_tokens * pitch;
      return svg("g", { class: "dtx-gain " + (gain.gain_ms < 0 ? "is-loss" : "is-win"), "data-gain": gain.step },
        svg("title", {}, gain.sentence),
        svg("rect", { class: "dtx-gainhit", x: left, width: wide, y: 0, height: BARS_HEIGHT }),
        svg("rect", { class: "dtx-gainbar", x: left + 0.5, width: Math.max(1, wide - 1), y: gain.gain_ms < 0 ? middle : middle - high, height: Math.max(1, high) }));
    });
    const leads = diff.lead_ms, top = extreme(leads), y = (ms) => BARS_HEIGHT + 6 + LEAD_HEIGHT / 2 - ms / top * (LEAD_HEIGHT / 2 - 2);
    const line = leads.map((ms, index) => (index ? `H${x(index + 1).toFixed(1)}V` : `M${x(1).toFixed(1)} `) + y(ms).toFixed(1)).join("");
    const label = (at, text) => svg("text", { class: "dtx-ticklabel", x: CHART_LEFT - 6, y: at, "text-anchor": "end" }, text);
    fill(chart, svg("svg", { class: "dtx-gainchart", width, height: BARS_HEIGHT + LEAD_HEIGHT + 10, role: "img",
      "aria-label": "Time gained or lost by each step, and the lead so far" },
    label(11, `+${most.toFixed(0)} ms`), label(middle + 3, "per step"), label(BARS_HEIGHT - 2, `\u2212${most.toFixed(0)} ms`),
    label(BARS_HEIGHT + LEAD_HEIGHT / 2, "lead so far"), label(BARS_HEIGHT + LEAD_HEIGHT / 2 + 13, `at last ${signed(leads[leads.length - 1])}`),
    ...bars, svg("line", { class: "dtx-racetick", x1: CHART_LEFT, x2: width - 8, y1: middle, y2: middle }),
    svg("line", { class: "dtx-racetick", x1: CHART_LEFT, x2: width - 8, y1: y(0), y2: y(0) }),
    svg("path", { class: "dtx-leadline", d: line })));
  }

  function signed(ms) { return (ms < 0 ? "\u2212" : "+") + (Math.abs(ms) / 1000).toFixed(2) + " s"; }

  // One column a token: once while the texts agree, in two lines after they part. The edges show each run's passes.
  function drawText() {
    const [first, second] = diff.texts, count = Math.max(first.tokens.length, second.tokens.length);
    const cell = (text, index, name) => (index < text.tokens.length ? el("bdi", { class: "dtx-token " + name, title: shorten(store.label(text.tokens[index]), 60) },
      ...spanParts(shorten(store.label(text.tokens[index]), ALIGNED_CELLS))) : el("bdi", { class: "dtx-token " + name }, "\u2013"));
    const edge = (text, index, name) => (index < text.passes.length ? ` ${name}${text.passes[index] % 2 ? "-odd" : "-even"}`
      + (index && text.passes[index] !== text.passes[index - 1] ? ` ${name}-start` : "") : "");
    cells = Array.from({ length: count }, (_, index) => {
      const isCommon = index < diff.num_common;
      return el("li", { class: (isCommon ? "is-common" : "is-parted") + (index === diff.num_common ? " is-first" : "") + edge(first, index, "above") + edge(second, index, "below"),
        "data-index": index, "data-step": index < first.tokens.length ? Math.max(0, first.passes[index] - 1) : null },
      cell(first, index, "is-first"), isCommon ? null : cell(second, index, "is-second"));
    });
    fill(list, el("li", { class: "dtx-alignedkey" }, el("span", {}, "upper edge: " + diff.labels[0]), el("span", {}, "lower edge: " + diff.labels[1])), ...cells);
  }

  // The step on screen: its bar, its tokens, what it gained in words, and ways on from here.
  function mark() {
    if (!diff || diff.error) return;
    for (const bar of bars) bar.classList.toggle("is-current", Number(bar.dataset.gain) === store.at);
    for (const cell of cells) cell.classList.toggle("is-current", Number(cell.dataset.index) > 0 && cell.dataset.step === String(store.at));
    const first = cells.find((cell) => cell.classList.contains("is-current"));
    cancelAnimationFrame(scrolling); // asks where the token is: once, with the frame
    scrolling = requestAnimationFrame(() => { if (first) list.scrollTop = Math.max(0, first.offsetTop - 36); });
    const gain = diff.gains.find((each) => each.step === store.at);
    const ends = [["best", diff.best], ["worst", diff.worst]].filter(([, step]) => step !== null);
    fill(said, el("span", {}, gain ? gain.sentence : `Step ${store.at + 1} writes tokens that the texts do not share.`),
      ...ends.map(([name, step]) => button("dtx-way", `The ${name} step: ${step + 1}`, () => store.go(step), `${name}: step ${step + 1}`)),
      button("dtx-way", "Both drafts of this step (4)", () => store.set({ view: "compare" }), "compare drafts"));
  }

  function jump(event) {
    const target = event.target.closest("[data-gain], [data-step]");
    if (target) store.go(Number(target.dataset.gain || target.dataset.step));
  }

  chart.addEventListener("click", jump);
  list.addEventListener("click", jump);
  watchSize(chart, (size) => {
    if (size.width === width || !diff || diff.error) return;
    drawChart();
    mark();
  });

  return { element: box, draw };
}
