// The draft tree: left to right, a pill per node, states told by shape, outline, glyph and colour.

const USUAL = { minRow: 12, maxRow: 28, foldBelow: 14.5, roomyRow: 18, maxPillHeight: 22, minPill: 58, maxPill: 132, maxFont: 13.5, readableFont: 11, head: 14 };
const PRESENTED = { minRow: 24, maxRow: 40, foldBelow: 26, roomyRow: 28, maxPillHeight: 30, minPill: 90, maxPill: 210, maxFont: 19, readableFont: 15, head: 20 };
const PHONE_WIDTH = 480, PHONE_PILL = 84, GAP = 18, MAX_GAP = 64, MARGIN = 6;
const RINGED = ["start", "draft", "mask", "test", "choose", "next", "commit"]; // what they are about is ringed, not only lit
const NOTHING_CUT = () => false;
const MONO_RATIO = 0.605; // width of a monospace cell over its font size

function createTree(store, moments, onResize) {
  const edges = svg("g", { class: "dtx-edges" });
  const nodes = svg("g", { class: "dtx-nodes" });
  const canvas = svg("svg", { class: "dtx-tree", role: "tree", "aria-label": "Draft tree of this step" }, edges, nodes);
  const empty = el("p", { class: "dtx-empty" });
  const more = button("dtx-moreswitch", "Drafted nodes that do not fit here: show all", () => store.set({ fold: false }));
  const box = el("div", { class: "dtx-canvas" }, canvas, empty);
  const frame = el("div", { class: "dtx-treeframe" }, box, more);
  let isCut = NOTHING_CUT; // of a node that a smaller tree would not have had
  let groups = [], wires = [], focusable = 0, isMarked = false, shape = null, board = null, sizes = USUAL, size = { width: 640, height: 420 };

  function geometry(step) {
    sizes = store.present ? PRESENTED : USUAL;
    const width = size.width - 2 * MARGIN, height = size.height - sizes.head - MARGIN;
    const view = viewOf(step, Math.floor(height / sizes.foldBelow), Math.floor(height / sizes.roomyRow));
    const rowHeight = clamp(height / view.numRows, sizes.minRow, sizes.maxRow);
    const pillHeight = Math.min(rowHeight - 2, sizes.maxPillHeight);
    let fontSize = clamp(pillHeight * 0.66, 8, sizes.maxFont), across = columns(step, view, fontSize, width);
    while (across.isTight && fontSize > sizes.readableFont) {
      fontSize -= 0.5;
      across = columns(step, view, fontSize, width);
    }
    return { view, rowHeight, pillHeight, fontSize, cell: fontSize * MONO_RATIO, ...across };
  }

  // All moments of a step share one layout, which holds everything that they show and tells no outcome.
  function viewOf(step, maxRows, roomyRows) {
    if (board && store.fold === false) return visibleOf(step, true, new Set());
    if (board) {
      const options = { ghosts: true, fold: false, unfolded: store.unfolded }, view = fittedView(step, options, roomyRows);
      return step.tok.every((_, row) => view.isShown[row]) ? view : fittedView(step, options, maxRows);
    }
    if (store.present && store.fold !== false) return fittedView(step, { ghosts: store.ghosts, fold: true, unfolded: store.unfolded }, maxRows);
    return foldedView(step, store, maxRows);
  }

  // A column is as wide as its longest label; where that is too much for the pane, the widest columns give way first.
  function columns(step, view, fontSize, width) {
    const model = modelOf(step), wanted = [];
    for (let node = 0; node < model.count; node += 1) {
      if (!view.isShown[node]) continue;
      const cells = Math.min(18, store.label(model.token[node]).length);
      const pill = textStart(model.state[node], fontSize) + cells * fontSize * MONO_RATIO + 7;
      wanted[model.col[node]] = Math.max(wanted[model.col[node]] || sizes.minPill, pill);
    }
    const total = (cap) => wanted.reduce((sum, each) => sum + Math.min(each, cap), 0);
    let cap = sizes.maxPill;
    const least = width < PHONE_WIDTH ? PHONE_PILL : sizes.minPill;
    while (cap > least && total(cap) + GAP * (wanted.length - 1) > width) cap -= 2;
    const pills = wanted.map((each) => Math.min(each, cap));
    const gap = clamp((width - total(cap)) / Math.max(1, wanted.length - 1), GAP, MAX_GAP);
    const lefts = pills.map((_, col) => MARGIN + pills.slice(0, col).reduce((sum, each) => sum + each + gap, 0));
    return { pills, lefts, gap, isTight: wanted.some((each) => each > cap) };
  }

  // Where verdicts are still to come there is room for their sign, so that no text moves.
  function textStart(state, fontSize) { return GLYPHS[state] || (board && state !== "root" && state !== "window") ? 5 + fontSize : 7; }

  function stateOf(model, node) { return board ? board.states[node] : model.state[node]; }

  function draw() {
    const step = store.step(), hadFocus = canvas.contains(document.activeElement);
    empty.textContent = step ? "" : store.message
      || (store.done ? "This run ended with its first token: there is no step to show." : "Waiting for the first step \u2026");
    canvas.classList.toggle("is-empty", !step);
    groups = []; wires = []; focusable = 0; isMarked = false;
    board = moments.board();
    more.hidden = true;
    if (!step) { fill(edges); fill(nodes); return; }
    const model = modelOf(step);
    shape = geometry(step);
    const last = shape.pills.length - 1, foldRoom = shape.view.folded.size ? 14 * shape.cell : 0;
    canvas.setAttribute("width", Math.max(shape.lefts[last] + shape.pills[last] + MARGIN, shape.lefts[1] + shape.pills[1] + foldRoom));
    canvas.setAttribute("height", sizes.head + MARGIN + shape.view.numRows * shape.rowHeight);
    canvas.style.fontSize = shape.fontSize + "px";
    canvas.classList.toggle("is-staged", board !== null);
    canvas.classList.toggle("is-dimming", board !== null && board.kind !== "prune" && !moments.isAsking());
    canvas.classList.toggle("is-ringing", board !== null && RINGED.includes(board.kind) && !moments.isAsking());
    const shown = [];
    for (let node = 0; node < model.count; node += 1) if (shape.view.isShown[node] && stateOf(model, node)) shown.push(node);
    for (const node of shown) if (node) wires[node] = drawEdge(step, model, node);
    for (const node of shown) groups[node] = drawNode(step, model, node);
    const isStrong = (node) => stateOf(model, node) === "accepted" || node === model.own;
    const drawn = shown.filter((node) => node);
    fill(edges, board && board.kind === "verify" ? drawPass(model, shown) : null, ...drawn.filter((n) => !isStrong(n)).map((n) => wires[n]), ...drawn.filter(isStrong).map((n) => wires[n]));
    fill(nodes, ...shape.lefts.map((left, col) => drawHead(step, left, col)), ...shown.map((node) => groups[node]));
    groups[0].setAttribute("tabindex", "0");
    if (hadFocus) groups[0].focus({ preventScroll: true });
    countMore(model);
    link();
  }

  function countMore(model) {
    const count = shape.view.hidden.filter((node) => stateOf(model, node)).length;
    more.hidden = !count;
    more.textContent = "+" + count + " more";
  }

  function x(model, node) { return shape.lefts[model.col[node]]; }
  function y(node) { return sizes.head + (shape.view.row[node] + 0.5) * shape.rowHeight; }

  // A column is one depth, and so one position id: all its nodes would be the same next-but-d token.
  function drawHead(step, left, col) {
    const position = step.prefix + col, row = board && board.kind === "commit" ? step.path[col] : null;
    const isKept = row !== null && board.kept.get(row) === position;
    const text = row === null ? (col ? "" : "position ") + position : position + (isKept ? " \u2190 row " + row : " free");
    return svg("text", { class: "dtx-colhead" + (isKept ? " is-kept" : ""), x: left + 2, y: sizes.head / 2 - 2 }, text);
  }

  // All rows of the pass in one frame, with what it took.
  function drawPass(model, shown) {
    const rows = shown.filter((node) => node < model.n), h = shape.rowHeight / 2;
    const right = Math.max(...rows.map((node) => x(model, node) + shape.pills[model.col[node]])) + 5;
    const top = Math.min(...rows.map(y)) - h, bottom = Math.max(...rows.map(y)) + h;
    const { ms } = board.now, isHigh = bottom - top > 3.5 * shape.rowHeight; // below the root its column is free
    const at = isHigh ? { x: 9, y: y(0) + 1.3 * shape.rowHeight } : { x: right + 10, y: (top + bottom) / 2 };
    const time = { class: "dtx-passtime", ...(isHigh ? { x: 9, dy: "1.25em" } : { dx: 8 }) };
    return svg("g", { class: "dtx-pass" },
      svg("rect", { x: 1, y: top, width: right - 1, height: bottom - top, rx: 8 }),
      svg("text", at, svg("tspan", {}, "one pass"), ms === null ? null : svg("tspan", time, milliseconds(ms))));
  }

  function drawEdge(step, model, node) {
    const parent = model.parent[node], state = stateOf(model, node), { isFresh } = place(node);
    const from = x(model, parent) + shape.pills[model.col[parent]], to = x(model, node), y0 = y(parent), y1 = y(node), bend = (to - from) * 0.55;
    const d = y0 === y1 ? `M${from} ${y0}H${to}` : `M${from} ${y0}C${from + bend} ${y0} ${to - bend} ${y1} ${to} ${y1}`;
    const q = model.q[node];
    const isStrong = state === "accepted" || state === "own";
    const width = isStrong ? 3 : (q === null ? 1.2 : 0.8 + 3.2 * q) * (state === "rejected" ? 1 : 0.6);
    return svg("path", { class: "dtx-edge is-" + state + isFresh, d, "stroke-width": width.toFixed(2), "data-edge": node });
  }

  function drawNode(step, model, node) {
    const state = stateOf(model, node), h = shape.pillHeight, w = shape.pills[model.col[node]], { isFresh, isLit, isGuess } = place(node);
    const glyph = GLYPH_PATHS[state], start = textStart(state, shape.fontSize), size = 0.72 * shape.fontSize;
    const cells = Math.max(3, Math.floor((w - start - 4) / shape.cell));
    const text = shorten(store.label(model.token[node]), cells);
    const isRound = state !== "rejected";
    const group = svg("g", {
      class: "dtx-node is-" + state + isFresh + isLit + isGuess, "data-node": node, transform: `translate(${x(model, node)} ${y(node)})`,
      role: "treeitem", "aria-level": model.col[node] + 1, tabindex: -1, "aria-label": describe(model, node, state), "aria-selected": String(node === store.pin),
    },
    svg("rect", { class: "dtx-hit", x: -shape.gap / 2, y: -shape.rowHeight / 2, width: w + shape.gap, height: shape.rowHeight }),
    svg("rect", { class: "dtx-pill", x: 0, y: -h / 2, width: w, height: h, rx: isRound ? h / 2 : 2 }),
    glyph ? svg("path", { class: "dtx-glyph", d: glyph, transform: `translate(5 ${-size / 2}) scale(${size / 10})` }) : null,
    svg("text", { class: "dtx-label", x: start, y: 0 }, ...tspanParts(text)));
    if (isNumbered(node)) group.append(svg("text", { class: "dtx-rownumber", x: -4, y: 0 }, String(node)));
    if (shape.view.folded.has(node) && hasBelow(model, node)) group.append(drawFold(node, w, countBelow(model, node)));
    return group;
  }

  // What a node is to the moment on screen, as classes.
  function place(node) {
    const told = moments.told();
    return {
      isFresh: board && board.fresh.has(node) ? " is-fresh" : "",
      isLit: board && (board.lit.has(node) || board.fresh.has(node)) ? (board.lit.has(node) ? " is-bright is-focus" : " is-bright") : "",
      isGuess: told && told.guess === node ? " is-guess" : "",
    };
  }

  // The moment that makes rows of the tree shows their numbers.
  function isNumbered(node) { return board !== null && board.kind === "flatten" && node > 0 && board.lit.has(node); }

  function hasBelow(model, node) { return model.children[node].some((child) => child < model.n && stateOf(model, child)); }

  function drawFold(node, left, count) {
    const text = "+" + count + " below";
    return svg("g", { class: "dtx-fold", "data-fold": node, transform: `translate(${left + 5} 0)` },
      svg("rect", { class: "dtx-hit", x: -4, y: -shape.rowHeight / 2, width: (text.length + 1) * shape.cell, height: shape.rowHeight }),
      svg("text", { class: "dtx-more", x: 0, y: 0 }, text));
  }

  function describe(model, node, state) {
    const told = !board || board.isRead ? `, target ${percent(model.p[node])}` : "";
    return `${store.label(model.token[node])}, ${STATE_NAMES[state]}, draft ${percent(model.q[node])}${told}`;
  }

  // Hover, focus or selection: the node, its ancestors, the edges between them.
  function link() {
    const step = store.step(), active = store.active();
    const lit = new Set(store.lit || []);
    canvas.classList.toggle("is-linking", step !== null && (active !== null || lit.size > 0));
    const isMarking = active !== null || lit.size > 0 || store.pin !== null || isCut !== NOTHING_CUT;
    if (!step || (!isMarking && !isMarked)) return; // nothing is marked, nothing was
    isMarked = isMarking;
    const chain = active === null ? lit : groups[active] ? new Set(chainOf(modelOf(step), active)) : new Set();
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
  // Moves only: what is drawn anew under a resting pointer was not chosen by it.
  canvas.addEventListener("pointermove", (event) => store.set({ hover: nodeAt(event) }));
  canvas.addEventListener("pointerleave", () => store.set({ hover: null }));
  canvas.addEventListener("focusin", (event) => {
    const node = nodeAt(event);
    if (node !== null) { focusable = node; store.set({ hover: node, announce: node }); }
  });
  canvas.addEventListener("focusout", () => store.set({ hover: null }));
  // Only the keyboard brings the focus into the tree, where the arrows then go from node to node.
  canvas.addEventListener("mousedown", (event) => {
    event.preventDefault();
    canvas.closest(".dtx").focus({ preventScroll: true });
  });
  canvas.addEventListener("click", (event) => {
    const fold = event.target.closest("[data-fold]"), node = nodeAt(event);
    if (fold) store.set({ unfolded: new Set([...store.unfolded, Number(fold.dataset.fold)]) });
    else store.set({ pin: node === store.pin ? null : node });
  });

  return {
    element: frame, draw, link, dim, moveFocus,
    hasFocus: () => canvas.contains(document.activeElement),
    isFolding: () => Boolean(shape && shape.view.folded.size),
  };
}
