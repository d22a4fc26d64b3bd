// The draft tree: left to right, a pill per node, states told by shape, outline, glyph and colour.

const MIN_ROW = 12, MAX_ROW = 28, MAX_PILL_HEIGHT = 22, FOLD_BELOW_ROW = 14.5;
const MIN_PILL = 58, PHONE_WIDTH = 480, PHONE_PILL = 84, MAX_PILL = 132, GAP = 18, MAX_GAP = 64, MARGIN = 6, HEAD = 14;
const MAX_FONT = 13.5, READABLE_FONT = 11;
const NOTHING_CUT = () => false;
const MONO_RATIO = 0.605; // width of a monospace cell over its font size

function createTree(store, onResize) {
  const edges = svg("g", { class: "dtx-edges" });
  const nodes = svg("g", { class: "dtx-nodes" });
  const canvas = svg("svg", { class: "dtx-tree", role: "tree", "aria-label": "Draft tree of this step" }, edges, nodes);
  const empty = el("p", { class: "dtx-empty" });
  const box = el("div", { class: "dtx-canvas" }, canvas, empty);
  let isCut = NOTHING_CUT; // of a node that a smaller tree would not have had
  let groups = [], wires = [], focusable = 0, shape = null, size = { width: 640, height: 420 };

  function geometry(step) {
    const width = size.width - 2 * MARGIN, height = size.height - HEAD - MARGIN;
    const view = foldedView(step, store, Math.floor(height / FOLD_BELOW_ROW));
    const rowHeight = clamp(height / view.numRows, MIN_ROW, MAX_ROW);
    const pillHeight = Math.min(rowHeight - 2, MAX_PILL_HEIGHT);
    let fontSize = clamp(pillHeight * 0.66, 8, MAX_FONT), across = columns(step, view, fontSize, width);
    while (across.isTight && fontSize > READABLE_FONT) {
      fontSize -= 0.5;
      across = columns(step, view, fontSize, width);
    }
    return { view, rowHeight, pillHeight, fontSize, cell: fontSize * MONO_RATIO, ...across };
  }

  // A column is as wide as its longest label; where that is too much for the pane, the widest columns give way first.
  function columns(step, view, fontSize, width) {
    const model = modelOf(step), wanted = [];
    for (let node = 0; node < model.count; node += 1) {
      if (!view.isShown[node]) continue;
      const cells = Math.min(18, store.label(model.token[node]).length);
      const pill = textStart(model.state[node], fontSize) + cells * fontSize * MONO_RATIO + 7;
      wanted[model.col[node]] = Math.max(wanted[model.col[node]] || MIN_PILL, pill);
    }
    const total = (cap) => wanted.reduce((sum, each) => sum + Math.min(each, cap), 0);
    let cap = MAX_PILL;
    const least = width < PHONE_WIDTH ? PHONE_PILL : MIN_PILL;
    while (cap > least && total(cap) + GAP * (wanted.length - 1) > width) cap -= 2;
    const pills = wanted.map((each) => Math.min(each, cap));
    const gap = clamp((width - total(cap)) / Math.max(1, wanted.length - 1), GAP, MAX_GAP);
    const lefts = pills.map((_, col) => MARGIN + pills.slice(0, col).reduce((sum, each) => sum + each + gap, 0));
    return { pills, lefts, gap, isTight: wanted.some((each) => each > cap) };
  }

  function textStart(state, fontSize) { return GLYPHS[state] ? 5 + fontSize : 7; }

  function draw() {
    const step = store.step(), hadFocus = canvas.contains(document.activeElement);
    empty.textContent = step ? "" : store.message
      || (store.done ? "This run ended with its first token: there is no step to show." : "Waiting for the first step \u2026");
    canvas.classList.toggle("is-empty", !step);
    groups = []; wires = []; focusable = 0;
    if (!step) { fill(edges); fill(nodes); return; }
    const model = modelOf(step);
    shape = geometry(step);
    const last = shape.pills.length - 1, foldRoom = shape.view.folded.size ? 14 * shape.cell : 0;
    canvas.setAttribute("width", Math.max(shape.lefts[last] + shape.pills[last] + MARGIN, shape.lefts[1] + shape.pills[1] + foldRoom));
    canvas.setAttribute("height", HEAD + MARGIN + shape.view.numRows * shape.rowHeight);
    canvas.style.fontSize = shape.fontSize + "px";
    const shown = [];
    for (let node = 0; node < model.count; node += 1) if (shape.view.isShown[node]) shown.push(node);
    for (const node of shown) if (node) wires[node] = drawEdge(step, model, node);
    for (const node of shown) groups[node] = drawNode(step, model, node);
    const isStrong = (node) => model.state[node] === "accepted" || node === model.own;
    const drawn = shown.filter((node) => node);
    fill(edges, ...drawn.filter((n) => !isStrong(n)).map((n) => wires[n]), ...drawn.filter(isStrong).map((n) => wires[n]));
    fill(nodes, ...shape.lefts.map((left, col) => drawHead(step, left, col)), ...shown.map((node) => groups[node]));
    groups[0].setAttribute("tabindex", "0");
    if (hadFocus) groups[0].focus({ preventScroll: true });
    link();
  }

  function x(model, node) { return shape.lefts[model.col[node]]; }
  function y(node) { return HEAD + (shape.view.row[node] + 0.5) * shape.rowHeight; }

  // A column is one depth, and so one position id: all its nodes would be the same next-but-d token.
  function drawHead(step, left, col) {
    return svg("text", { class: "dtx-colhead", x: left + 2, y: 5 }, (col ? "" : "position ") + (step.prefix + col));
  }

  function drawEdge(step, model, node) {
    const parent = model.parent[node], state = model.state[node];
    const from = x(model, parent) + shape.pills[model.col[parent]], to = x(model, node), y0 = y(parent), y1 = y(node), bend = (to - from) * 0.55;
    const d = y0 === y1 ? `M${from} ${y0}H${to}` : `M${from} ${y0}C${from + bend} ${y0} ${to - bend} ${y1} ${to} ${y1}`;
    const q = model.q[node];
    const isStrong = state === "accepted" || state === "own";
    const width = isStrong ? 3 : (q === null ? 1.2 : 0.8 + 3.2 * q) * (state === "rejected" ? 1 : 0.6);
    return svg("path", { class: "dtx-edge is-" + state, d, "stroke-width": width.toFixed(2), "data-edge": node });
  }

  function drawNode(step, model, node) {
    const state = model.state[node], h = shape.pillHeight, w = shape.pills[model.col[node]];
    const glyph = GLYPH_PATHS[state], start = textStart(state, shape.fontSize), size = 0.72 * shape.fontSize;
    const cells = Math.max(3, Math.floor((w - start - 4) / shape.cell));
    const text = shorten(store.label(model.token[node]), cells);
    const isRound = state !== "rejected";
    const group = svg("g", {
      class: "dtx-node is-" + state, "data-node": node, transform: `translate(${x(model, node)} ${y(node)})`,
      role: "treeitem", "aria-level": model.col[node] + 1, tabindex: -1, "aria-label": describe(model, node),
    },
    svg("rect", { class: "dtx-hit", x: -shape.gap / 2, y: -shape.rowHeight / 2, width: w + shape.gap, height: shape.rowHeight }),
    svg("rect", { class: "dtx-pill", x: 0, y: -h / 2, width: w, height: h, rx: isRound ? h / 2 : 2 }),
    glyph ? svg("path", { class: "dtx-glyph", d: glyph, transform: `translate(5 ${-size / 2}) scale(${size / 10})` }) : null,
    svg("text", { class: "dtx-label", x: start, y: 0 }, ...tspanParts(text)));
    if (shape.view.folded.has(node)) group.append(drawFold(node, w, countBelow(model, node)));
    return group;
  }

  function drawFold(node, left, count) {
    const text = "+" + count + " below";
    return svg("g", { class: "dtx-fold", "data-fold": node, transform: `translate(${left + 5} 0)` },
      svg("rect", { class: "dtx-hit", x: -4, y: -shape.rowHeight / 2, width: (text.length + 1) * shape.cell, height: shape.rowHeight }),
      svg("text", { class: "dtx-more", x: 0, y: 0 }, text));
  }

  function describe(model, node) {
    return `${store.label(model.token[node])}, ${STATE_NAMES[model.state[node]]}, ` +
      `draft ${percent(model.q[node])}, target ${percent(model.p[node])}`;
  }

  // Hover, focus or selection: the node, its ancestors, the edges between them.
  function link() {
    const step = store.step(), active = store.active();
    const lit = new Set(store.lit || []);
    canvas.classList.toggle("is-linking", step !== null && (active !== null || lit.size > 0));
    if (!step) return;
    const chain = active === null ? lit : new Set(chainOf(modelOf(step), active));
    groups.forEach((group, node) => {
      group.classList.toggle("is-linked", chain.has(node));
      group.classList.toggle("is-active", node === active);
      group.classList.toggle("is-lit", lit.has(node));
      group.classList.toggle("is-cut", isCut(node));
      group.setAttribute("aria-selected", String(node === store.pin));
      if (!wires[node]) return;
      wires[node].classList.toggle("is-linked", active !== null && chain.has(node));
      wires[node].classList.toggle("is-cut", isCut(node));
    });
  }

  function dim(test) {
    if (test === isCut) return;
    isCut = test;
    link();
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

  watchSize(box, (now) => {
    if (now.width === size.width && now.height === size.height) return;
    size = now;
    draw();
    onResize();
  });
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
    element: box, draw, link, dim, moveFocus,
    hasFocus: () => canvas.contains(document.activeElement),
    isFolding: () => Boolean(shape && shape.view.folded.size),
  };
}
