// A lesson's experiment: one recorded place, written many times under two acceptance rules, beside the target's own
// distribution. The numbers and what must come out are from explorer/lessons/demo.py; the draws are made here, seeded.

const FRAME_MS = 60, PLAY_MS = 7000; // draws come one by one at first, then ever faster; a slow browser makes fewer frames
const CHART_WIDTH = 300, CHART_HEIGHT = 40;

// A small seeded generator (mulberry32): uniform numbers in [0, 1).
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// The rejection rule for deterministic children: each is accepted with its share of what is left, else taken out;
// where all fail, a draw from the rest. Returns the place of the token that is written.
function writeByRejection(demo, random) {
  const taken = new Set();
  let left = 1;
  for (const { index } of demo.siblings) {
    if (random() < demo.probs[index] / left) return index;
    taken.add(index);
    left -= demo.probs[index];
  }
  const rest = demo.probs.map((_, index) => index).filter((index) => !taken.has(index));
  let draw = random() * rest.reduce((sum, index) => sum + demo.probs[index], 0);
  return rest.find((index) => (draw -= demo.probs[index]) < 0) ?? rest[rest.length - 1];
}

// Typical acceptance: of the siblings above the threshold the one that leads furthest, of equals the likelier; where
// none passes, the target's favourite. Nothing is drawn.
function writeByTypical(demo) {
  const passing = demo.siblings.filter(({ index }) => demo.probs[index] > demo.threshold);
  passing.sort((a, b) => b.reach - a.reach || demo.probs[b.index] - demo.probs[a.index]);
  return passing.length ? passing[0].index : 0;
}

// Total variation distance of counts from a distribution.
function distanceOf(counts, total, probs) {
  return probs.reduce((sum, p, i) => sum + Math.abs(counts[i] / total - p), 0) / 2;
}

function createHistogram(store) {
  const start = button("dtx-demo-start", "Write this place again and again, or stop", toggle, "Draw");
  const count = el("output", { class: "dtx-demo-count" });
  const table = el("table", { class: "dtx-demo-table" });
  const chart = svg("svg", { class: "dtx-demo-chart", viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`, role: "img", preserveAspectRatio: "none" });
  const words = el("p", { class: "dtx-demo-words" });
  const distance = el("p", { class: "dtx-demo-distance" });
  const spoken = el("p", { class: "dtx-demo-spoken", "aria-live": "polite" });
  const section = el("section", { class: "dtx-demo", "aria-label": "Histogram of acceptance rules" },
    el("div", { class: "dtx-demo-bar" }, start, count, chart), distance, table, words, spoken);
  let demo = null, run = null, cells = [], timer = null;

  function reset(seed) {
    run = { total: 0, rejection: demo.probs.map(() => 0), typical: demo.probs.map(() => 0), random: createRandom(seed), curve: [], seed, elapsed: 0 };
  }

  function draw() {
    if (store.demo === demo) return;
    stop();
    demo = store.demo;
    if (!demo) { fill(table); return; }
    reset(demo.seed);
    cells = demo.probs.map((p, i) => drawRow(p, i));
    words.textContent = demo.sentences.join(" ");
    fill(table, el("thead", {}, el("tr", {}, ...["token", "", "target", "rejection", "typical"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...cells.map((cell) => cell.row)));
    show();
  }

  function drawRow(p, i) {
    const isDrafted = demo.siblings.some(({ index }) => index === i), label = i < demo.tokens.length ? store.label(demo.tokens[i]) : "all others";
    const bars = ["target", "rejection", "typical"].map((kind) => el("i", { class: "dtx-demo-fill is-" + kind }));
    const numbers = ["rejection", "typical"].map((kind) => el("td", { "data-rule": kind }));
    bars[0].style.width = widthOf(p);
    const name = i < demo.tokens.length ? el("bdi", {}, ...spanParts(shorten(label, 11))) : label;
    return { bars, numbers, row: el("tr", { "data-place": i, class: isDrafted ? "is-drafted" : null },
      el("th", { scope: "row", title: isDrafted ? "drafted here" : null }, name),
      el("td", { class: "dtx-demo-track" }, ...bars), el("td", {}, percent(p)), ...numbers) };
  }

  // Bars are drawn up to twice the target's largest share, so that the target fills half; a longer one is cut there.
  function widthOf(share) { return Math.min(100, 50 * share / Math.max(...demo.probs)).toFixed(1) + "%"; }

  function show() {
    const { total } = run;
    cells.forEach(({ bars, numbers }, i) => {
      ["rejection", "typical"].forEach((kind, k) => {
        const share = total ? run[kind][i] / total : 0;
        bars[k + 1].style.width = widthOf(share);
        numbers[k].textContent = total ? percent(share) : "";
      });
    });
    count.textContent = total + (total === 1 ? " draw" : " draws");
    start.textContent = timer !== null ? "Stop" : total >= demo.num_draws ? "Draw again" : "Draw";
    start.setAttribute("aria-pressed", String(timer !== null));
    const distances = total ? [distanceOf(run.rejection, total, demo.probs), distanceOf(run.typical, total, demo.probs)] : null;
    section.dataset.total = total;
    section.dataset.rejection = distances ? distances[0] : "";
    section.dataset.typical = distances ? distances[1] : "";
    drawChart();
    const [rejection, typical] = distances ? distances.map((value) => value.toFixed(3)) : ["\u2013", "\u2013"];
    fill(distance, "distance to the target: rejection ", el("b", { class: "is-rejection" }, rejection), ", typical ", el("b", { class: "is-typical" }, typical));
    if (timer === null) spoken.textContent = distances ? total + " draws, " + distance.textContent : "";
  }

  // Distance against the number of draws, which grows by powers of ten.
  function drawChart() {
    const x = (n) => CHART_WIDTH * Math.log(n) / Math.log(demo.num_draws), y = (d) => 2 + (CHART_HEIGHT - 4) * (1 - d);
    const line = (kind, k) => svg("polyline", { class: "dtx-demo-line is-" + kind, points: run.curve.map((at) => `${x(at[0]).toFixed(1)},${y(at[k]).toFixed(1)}`).join(" ") });
    fill(chart, svg("path", { class: "dtx-demo-axis", d: `M0 1V${y(0)}H${CHART_WIDTH}` }), line("rejection", 1), line("typical", 2));
    chart.setAttribute("aria-label", "Distance to the target against the number of draws");
  }

  function write(times) {
    const favourite = writeByTypical(demo);
    for (let i = 0; i < times; i += 1) {
      run.rejection[writeByRejection(demo, run.random)] += 1;
      run.typical[favourite] += 1;
      run.total += 1;
    }
    run.curve.push([run.total, distanceOf(run.rejection, run.total, demo.probs), distanceOf(run.typical, run.total, demo.probs)]);
  }

  function toggle() {
    if (!demo) return;
    if (timer !== null) { stop(); show(); return; }
    if (run.total >= demo.num_draws) reset(run.seed + 1);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      write(demo.num_draws - run.total);
      show();
      return;
    }
    beat(performance.now());
  }

  function beat(before) {
    const now = performance.now();
    run.elapsed += now - before;
    const wanted = Math.floor(demo.num_draws ** Math.min(1, run.elapsed / PLAY_MS));
    write(Math.max(1, wanted - run.total));
    timer = run.total < demo.num_draws && section.isConnected ? setTimeout(() => beat(now), FRAME_MS) : null;
    show();
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
  }

  return { name: "histogram", label: "Histogram", help: "What two acceptance rules write at this place", element: section, draw,
    isOffered: () => store.demo !== null };
}
