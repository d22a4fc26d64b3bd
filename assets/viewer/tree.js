// The draft tree: left to right, a pill per node, states told by shape, outline, glyph and colour.

const MIN_ROW = 12, MAX_ROW = 26, FOLD_BELOW_ROW = 14.5;
const MIN_COL = 74, MAX_COL = 136, GAP = 20, MARGIN = 8;
const MONO_RATIO = 0.605; // width of a monospace cell over its font size

function createTree(store) {
  const edges = svg("g", { class: "dtx-edges" });
  const nodes = svg("g", { class: "dtx-nodes" });
  const canvas = svg("svg", { class: "dtx-tree", role: "tree", "aria-label": "Draft tree of this step" }, edges, nodes);
  const empty = el("p", { class: "dtx-empty" });
  const box = el("div", { class: "dtx-canvas" }, canvas, empty);
  let groups = [], wires = [], focusable = 0, shape = null;

  function geometry(step) {
    const width = box.clientWidth, height = box.clientHeight || 420;
    const cols = 1 + store.steps.reduce((most, each) => Math.max(most, each.own.col, ...each.col), 1);
    const whole = visibleOf(step, store.ghosts, false, store.unfolded);
    const isTight = (height - 2 * MARGIN) / whole.numRows < FOLD_BELOW_ROW;
    const isFolding = store.fold === null ? isTight : store.fold;
    const view = isFolding ? visibleOf(step, store.ghosts, true, store.unfolded) : whole;
    const rowHeight = clamp((height - 2 * MARGIN) / view.numRows, MIN_ROW, MAX_ROW);
    const colWidth = clamp((width - 2 * MARGIN + GAP) / cols, MIN_COL, MAX_COL);
    return { view, isFolding, rowHeight, colWidth, pillWidth: colWidth - GAP, pillHeight: Math.min(rowHeight - 2, 20), cols };
  }

  function draw() {
    const step = store.step();
    empty.textContent = step ? "" : store.message || "Waiting for the first step \u2026";
    canvas.classList.toggle("is-empty", !step);
    groups = []; wires = []; focusable = 0;
    if (!step) { fill(edges); fill(nodes); return; }
    const model = modelOf(step);
    shape = geometry(step);
    const width = 2 * MARGIN + shape.cols * shape.colWidth - GAP, height = 2 * MARGIN + shape.view.numRows * shape.rowHeight;
    for (const [name, value] of [["width", width], ["height", height]]) canvas.setAttribute(name, value);
    canvas.style.fontSize = clamp(shape.pillHeight * 0.66, 8, 12.5) + "px";
    const shown = [];
    for (let node = 0; node < model.count; node += 1) if (shape.view.isShown[node]) shown.push(node);
    for (const node of shown) if (node) wires[node] = drawEdge(step, model, node);
    for (const node of shown) groups[node] = drawNode(step, model, node);
    const isStrong = (node) => model.state[node] === "accepted" || node === model.own;
    const drawn = shown.filter((node) => node);
    fill(edges, ...drawn.filter((n) => !isStrong(n)).map((n) => wires[n]), ...drawn.filter(isStrong).map((n) => wires[n]));
    fill(nodes, ...shown.map((node) => groups[node]));
    groups[0].setAttribute("tabindex", "0");
    link();
  }

  function x(model, node) { return MARGIN + model.col[node] * shape.colWidth; }
  function y(node) { return MARGIN + (shape.view.row[node] + 0.5) * shape.rowHeight; }

  function drawEdge(step, model, node) {
    const parent = model.parent[node], state = model.state[node];
    const from = x(model, parent) + shape.pillWidth, to = x(model, node), y0 = y(parent), y1 = y(node), bend = (to - from) * 0.55;
    const d = y0 === y1 ? `M${from} ${y0}H${to}` : `M${from} ${y0}C${from + bend} ${y0} ${to - bend} ${y1} ${to} ${y1}`;
    const q = model.q[node];
    const isStrong = state === "accepted" || state === "own";
    const width = isStrong ? 3 : q === null ? 1.3 : 1 + 3 * q;
    return svg("path", { class: "dtx-edge is-" + state, d, "stroke-width": width.toFixed(2), "data-edge": node });
  }

  function drawNode(step, model, node) {
    const state = model.state[node], h = shape.pillHeight, w = shape.pillWidth;
    const glyph = GLYPHS[state] || "", size = parseFloat(canvas.style.fontSize);
    const start = glyph ? 6 + size * 1.05 : 7;
    const cells = Math.max(3, Math.floor((w - start - 4) / (size * MONO_RATIO)));
    const text = shorten(store.label(model.token[node]), cells);
    const isRound = state !== "rejected";
    const group = svg("g", {
      class: "dtx-node is-" + state, "data-node": node, transform: `translate(${x(model, node)} ${y(node)})`,
      role: "treeitem", "aria-level": model.col[node] + 1, tabindex: -1, "aria-label": describe(model, node),
    },
    svg("rect", { class: "dtx-hit", x: -GAP / 2, y: -shape.rowHeight / 2, width: w + GAP, height: shape.rowHeight }),
    svg("rect", { class: "dtx-pill", x: 0, y: -h / 2, width: w, height: h, rx: isRound ? h / 2 : 2 }),
    glyph ? svg("text", { class: "dtx-glyph", x: 6, y: 0 }, glyph) : null,
    svg("text", { class: "dtx-label", x: start, y: 0 }, ...tspanParts(text)));
    if (shape.view.folds.has(node)) group.append(drawFold(node, shape.view.folds.get(node)));
    return group;
  }

  function drawFold(node, count) {
    return svg("g", { class: "dtx-fold", "data-fold": node, transform: `translate(${shape.pillWidth + 5} 0)` },
      svg("rect", { class: "dtx-hit", x: -4, y: -shape.rowHeight / 2, width: 60, height: shape.rowHeight }),
      svg("text", { class: "dtx-more", x: 0, y: 0 }, "+" + count + " not reached"));
  }

  function describe(model, node) {
    return `${store.label(model.token[node])}, ${STATE_NAMES[model.state[node]]}, ` +
      `draft ${percent(model.q[node])}, target ${percent(model.p[node])}`;
  }

  // Hover, focus or selection: the node, its ancestors, the edges between them.
  function link() {
    const step = store.step(), active = store.active();
    canvas.classList.toggle("is-linking", step !== null && active !== null);
    if (!step) return;
    const chain = active === null ? new Set() : new Set(chainOf(modelOf(step), active));
    groups.forEach((group, node) => {
      group.classList.toggle("is-linked", chain.has(node));
      group.classList.toggle("is-active", node === active);
      group.setAttribute("aria-selected", String(node === store.pin));
      if (wires[node]) wires[node].classList.toggle("is-linked", chain.has(node));
    });
  }

  function moveFocus(direction) {
    const shown = groups.map((_, node) => node).filter((node) => groups[node]);
    shown.sort((a, b) => shape.view.row[a] - shape.view.row[b] || modelOf(store.step()).col[a] - modelOf(store.step()).col[b]);
    const next = shown[clamp(shown.indexOf(focusable) + direction, 0, shown.length - 1)];
    groups[focusable].setAttribute("tabindex", "-1");
    focusable = next;
    groups[next].setAttribute("tabindex", "0");
    groups[next].focus();
  }

  const nodeAt = (event) => { const group = event.target.closest("[data-node]"); return group ? Number(group.dataset.node) : null; };
  canvas.addEventListener("pointerover", (event) => store.set({ hover: nodeAt(event) }));
  canvas.addEventListener("pointerleave", () => store.set({ hover: null }));
  canvas.addEventListener("focusin", (event) => {
    const node = nodeAt(event);
    if (node !== null) { focusable = node; store.set({ hover: node, announce: node }); }
  });
  canvas.addEventListener("focusout", () => store.set({ hover: null }));
  canvas.addEventListener("click", (event) => {
    const fold = event.target.closest("[data-fold]"), node = nodeAt(event);
    if (fold) store.set({ unfolded: new Set([...store.unfolded, Number(fold.dataset.fold)]) });
    else store.set({ pin: node === store.pin ? null : node });
  });

  return {
    element: box, draw, link, moveFocus,
    hasFocus: () => canvas.contains(document.activeElement),
    isFolding: () => Boolean(shape && shape.isFolding),
  };
}
