// What if the tree had been smaller: two sliders pick one of the cuts that Python has computed, the tree shows it.

const CUT_HEIGHT = 44;

function createCutsPane(store, insights, tree) {
  const area = el("div", { class: "dtx-panel" });
  const section = el("section", { class: "dtx-panebox dtx-cuts", "aria-label": "What a smaller tree would have given" }, area);
  const painter = createStepPainter(store, insights, area, paint);
  const rowsRange = slider("rows", "Rows, the last token included", (value, cuts) => ({ rows: value === maxRows(cuts) ? null : value }));
  const depthRange = slider("levels", "Levels below the root", (value, cuts) => ({ depth: value === cuts.depths.length ? null : cuts.depths[value - 1] }));
  const verdict = el("p", { class: "dtx-verdict", "aria-live": "polite" }), curve = el("div", { class: "dtx-cutcurve" });
  const words = el("div", { class: "dtx-texts" });

  function slider(name, label, change) {
    const input = el("input", { type: "range", class: "dtx-range", min: 1, step: 1, "aria-label": label, "data-cut": name,
      input: () => { if (painter.answer()) store.set({ cut: { ...store.cut, ...change(Number(input.value), painter.answer().cuts) } }); } });
    const shown = el("output", {});
    return { input, shown, row: el("label", { class: "dtx-slider", title: label }, el("span", {}, name), input, shown) };
  }

  function maxRows(cuts) { return cuts.order.rows.length + 1; }

  // The wished cut, as far as this step has it: place in the depths, rows, the nodes that are left, the outcome.
  function cutOf(cuts, step) {
    const level = modelOf(step).col, top = cuts.depths.length - 1;
    const wished = store.cut.depth === null ? top : cuts.depths.findLastIndex((depth) => depth <= store.cut.depth);
    const at = Math.max(0, wished), rows = Math.min(store.cut.rows ?? Infinity, maxRows(cuts));
    const kept = cuts.order.rows.filter((row) => level[row] <= cuts.depths[at]).slice(0, rows - 1);
    const outcome = cuts.outcomes[cuts.table[at][rows - 1]];
    return { at, rows, kept: new Set([0, ...kept]), outcome, isWhole: at === top && rows === maxRows(cuts) };
  }

  function paint(step, { cuts }) {
    const cut = cutOf(cuts, step);
    set(rowsRange, cut.rows, maxRows(cuts), cut.kept.size + " of " + maxRows(cuts));
    set(depthRange, cut.at + 1, cuts.depths.length, cuts.depths[cut.at] + " of " + cuts.depths[cuts.depths.length - 1]);
    fill(verdict, el("b", {}, "+" + (cut.outcome.num_accepted + 1)), " ", cut.outcome.sentence);
    drawCurve(cuts, cut);
    fill(words, el("p", {}, cuts.words), ...cuts.limits.map((text) => el("p", {}, text)));
    if (verdict.parentNode !== area) fill(area, rowsRange.row, depthRange.row, verdict, curve, words);
    const model = modelOf(step);
    tree.dim((node) => !cut.isWhole && (node === model.own ? cut.outcome.end !== model.parent[node]
      : model.state[node] !== "window" && !cut.kept.has(node)));
  }

  function set({ input, shown }, value, max, text) {
    input.max = String(max);
    input.value = String(value);
    input.disabled = max < 2;
    shown.textContent = text;
    input.setAttribute("aria-valuetext", text);
  }

  // Tokens the step would have given, for every number of rows at the chosen depth.
  function drawCurve(cuts, cut) {
    const gains = cuts.table[cut.at].map((index) => cuts.outcomes[index].num_accepted + 1), most = Math.max(2, ...gains);
    const unit = CUT_HEIGHT / most, pitch = 300 / gains.length;
    fill(curve, svg("svg", { viewBox: `0 0 300 ${CUT_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...gains.map((gain, i) => svg("rect", { class: "dtx-cutbar" + (i === cut.rows - 1 ? " is-current" : ""), "data-rows": i + 1, x: (i * pitch).toFixed(2),
        y: (CUT_HEIGHT - gain * unit).toFixed(2), width: (pitch * 0.82).toFixed(2), height: (gain * unit).toFixed(2) }))),
    el("small", {}, "tokens of this step, by number of rows"));
  }

  // What is not known yet is not dimmed.
  function draw() {
    leave();
    painter.draw();
  }

  function leave() { tree.dim(NOTHING_CUT); }

  curve.addEventListener("click", (event) => {
    const bar = event.target.closest("[data-rows]"), answer = painter.answer();
    if (!bar || !answer) return;
    const rows = Number(bar.dataset.rows);
    store.set({ cut: { ...store.cut, rows: rows === maxRows(answer.cuts) ? null : rows } });
  });

  return {
    name: "cuts", label: "What if", help: "What a tree of fewer rows or less depth would have accepted", element: section, draw,
    leave,
    isOffered: () => Boolean(store.header) && store.header.method !== "autoregressive",
  };
}
