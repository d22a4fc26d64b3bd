// The tree mask of the verify pass: row i may see column j. The prefix, which all rows see, is one collapsed column.

const MASK_HEAD = 24, TICK_TOP = 13, TICK_HEIGHT = 6, PREFIX_WIDTH = 20, PREFIX_GAP = 3, MAX_CELL = 22, LABELLED_CELL = 10, HEAD_WIDTH = 210;
const LABEL_WIDTH = 86, MAX_LABEL_WIDTH = 210, LABEL_SHARE = 0.27, POSITION_WIDTH = 26, MAX_INDENT = 12, INDENT_SHARE = 0.06;

function rows(count) { return count === 1 ? "1 row" : count + " rows"; }

function createMask(store, moments, onOrder) {
  const canvas = svg("svg", { class: "dtx-mask", role: "img" });
  const box = el("div", { class: "dtx-maskarea" }, canvas);
  const note = el("p", { class: "dtx-note" });
  const orderButton = button("dtx-tool dtx-order", "Order of the rows: depth-first, or as the engine sends them (m)", onOrder);
  const section = el("section", { class: "dtx-maskbox", "aria-label": "Tree mask" }, box, note);
  // A row's cells are one path: they share their colour, and the browser styles sixty elements in place of hundreds.
  const overlay = svg("path", { class: "dtx-cell is-linked is-overlay" });
  let lines = [], bands = [], ticks = [], place = [], shape = null, isLinked = false, size = { width: 320, height: 320 };

  function draw() {
    const step = store.step();
    nameOrder();
    if (!step) { fill(canvas); note.textContent = ""; return; }
    const model = modelOf(step), n = model.n, board = moments.board();
    shape = geometry(n);
    canvas.classList.toggle("is-passing-through", board !== null && board.kind === "verify");
    lines = []; bands = []; ticks = [];
    isLinked = false;
    const count = board && !board.isFlat ? "no rows yet" : rows(n) + " of this pass";
    const parts = [svg("text", { class: "dtx-maskhead", x: 0, y: 10 }, "prefix \u00d7 " + step.prefix + "  |  " + count)];
    for (let row = 0; row < n; row += 1) {
      if (board && !board.isFlat) continue; // there are no rows yet
      ticks[row] = drawTick(model, row, board);
      parts.push(ticks[row]);
      bands[row] = drawBand(step, model, row, board);
      parts.push(bands[row]);
      if (board && !board.built.has(row)) continue;
      const columns = chainOf(model, row);
      const cells = svg("path", { class: "dtx-cell is-" + stateOf(model, board, row) + lightOf(board, row), "data-row": row,
        "data-columns": columns.join(" ") });
      lines[row] = { columns, cells };
      parts.push(cells);
    }
    const frame = svg("rect", { class: "dtx-frame", x: shape.left + PREFIX_WIDTH + PREFIX_GAP - 1, y: MASK_HEAD - 1,
      width: n * shape.cell + 1.5, height: n * shape.cell + 1.5 });
    overlay.removeAttribute("d");
    fill(canvas, ...parts, overlay, frame);
    canvas.setAttribute("width", Math.max(shape.width, HEAD_WIDTH));
    canvas.setAttribute("height", MASK_HEAD + n * shape.cell + 2);
    const set = lines.reduce((sum, line) => sum + line.columns.length, 0);
    canvas.setAttribute("aria-label", `Tree mask, ${rows(n)}, ${set} of ${n * n} cells set`);
    note.textContent = step.mask;
    note.style.visibility = board && !board.isFlat ? "hidden" : ""; // no rows yet, nothing to count: its place stays
    note.title = step.mask;
    arrange();
    link();
  }

  function geometry(n) {
    const width = size.width - 2, height = size.height - MASK_HEAD - 2;
    const fit = (labels) => Math.min((width - labels - PREFIX_WIDTH - PREFIX_GAP) / n, height / n, MAX_CELL);
    const labels = clamp(size.width * LABEL_SHARE, LABEL_WIDTH, MAX_LABEL_WIDTH);
    const hasLabels = fit(labels) >= LABELLED_CELL;
    const left = hasLabels ? labels : 0, cell = Math.max(2, fit(left));
    return { cell, hasLabels, left, inset: cell > 5 ? 1 : 0.5, width: left + PREFIX_WIDTH + PREFIX_GAP + n * cell + 2 };
  }

  function stateOf(model, board, row) { return board ? board.states[row] : model.state[row]; }

  // A row that the mask moment has just built, or that the cache drops.
  function lightOf(board, row) {
    if (board && board.kind === "mask" && board.lit.has(row)) return " is-fresh";
    return board && board.kind === "commit" && !board.kept.has(row) ? " is-dropped" : "";
  }

  // The head of a column: with the pointer above or on it, it shows which rows may see that one.
  function drawTick(model, row, board) {
    return svg("rect", { class: "dtx-tick dtx-column is-" + stateOf(model, board, row), "data-column": row, y: TICK_TOP,
      width: shape.cell - shape.inset, height: TICK_HEIGHT });
  }

  // What lies behind a row of cells: its label where there is room, the prefix cell, the highlight.
  function drawBand(step, model, row, board) {
    const h = shape.cell, mid = h / 2, place = { x: shape.left, y: 0, width: PREFIX_WIDTH, height: h - shape.inset };
    const light = (board && !board.built.has(row) ? " is-unbuilt" : "") + lightOf(board, row)
      + (board && board.lit.has(row) && ["test", "choose", "commit"].includes(board.kind) ? " is-lit" : "");
    if (!shape.hasLabels) return svg("rect", { class: "dtx-band dtx-prefix" + light, "data-row": row, ...place }); // small and many
    const indent = Math.min(model.col[row] * Math.min(MAX_INDENT, shape.left * INDENT_SHARE), shape.left / 3), font = clamp(h * 0.72, 7, 11);
    const cells = Math.max(3, Math.floor((shape.left - POSITION_WIDTH - indent) / (font * MONO_RATIO)));
    const label = svg("text", { class: "dtx-masklabel is-" + stateOf(model, board, row), x: indent, y: mid, style: "font-size:" + font + "px" },
      ...tspanParts(shorten(store.label(model.token[row]), cells)));
    const position = svg("text", { class: "dtx-maskpos", x: shape.left - 5, y: mid,
      style: "font-size:" + clamp(h * 0.66, 7, 10) + "px" }, String(step.prefix + model.col[row]));
    return svg("g", { class: "dtx-band" + light, "data-row": row },
      svg("rect", { class: "dtx-rowwash", x: 0, y: 0, width: shape.width, height: h }), label, position,
      svg("rect", { class: "dtx-prefix", ...place }));
  }

  // Rows and columns to their places in the chosen order.
  function arrange() {
    const step = store.step();
    if (!step || !shape) return;
    const order = store.order === "tree" ? step.order : step.tok.map((_, row) => row);
    place = new Array(order.length);
    order.forEach((row, at) => { place[row] = at; });
    const left = shape.left + PREFIX_WIDTH + PREFIX_GAP;
    bands.forEach((band, row) => band.setAttribute("transform", `translate(0 ${MASK_HEAD + place[row] * shape.cell})`));
    ticks.forEach((tick, row) => tick.setAttribute("x", left + place[row] * shape.cell));
    lines.forEach((line, row) => line.cells.setAttribute("d", outline(line.columns.map((column) => [row, column]), place)));
  }

  // Cells at [row, column] as one outline, in the order of `at`.
  function outline(cells, at) {
    const left = shape.left + PREFIX_WIDTH + PREFIX_GAP, side = (shape.cell - shape.inset).toFixed(2);
    return cells.map(([row, column]) => `M${(left + at[column] * shape.cell).toFixed(2)} ${(MASK_HEAD + at[row] * shape.cell).toFixed(2)}`
      + `h${side}v${side}h-${side}z`).join("");
  }

  function link() {
    const step = store.step(), active = store.active();
    if (!step) return;
    const row = active !== null && active < modelOf(step).n ? active : null;
    const column = store.column, isLinking = row !== null || column !== null;
    canvas.classList.toggle("is-linking", isLinking);
    if (!isLinking && !isLinked) return; // nothing is lit, nothing was
    isLinked = isLinking;
    bands.forEach((band, each) => band.classList.toggle("is-linked", each === row));
    ticks.forEach((tick, each) => tick.classList.toggle("is-linked", each === column));
    lines.forEach((line, each) => line.cells.classList.toggle("is-linked", column === null && each === row));
    const seers = column === null ? [] : [...lines.keys()].filter((each) => lines[each] && lines[each].columns.includes(column));
    overlay.dataset.cells = seers.map((each) => each + "," + column).join(" ");
    overlay.setAttribute("d", outline(seers.map((each) => [each, column]), place));
  }

  // Over the heads a column, below them a row.
  function point(event) {
    const column = columnAt(event);
    if (column === null) { store.set({ hover: rowAt(event), column: null, lit: null }); return; }
    if (column !== store.column) store.set({ hover: null, column, lit: descendantsOf(modelOf(store.step()), column) });
  }

  function columnAt(event) {
    if (!shape || !store.step()) return null;
    const { left, top } = canvas.getBoundingClientRect();
    const at = Math.floor((event.clientX - left - shape.left - PREFIX_WIDTH - PREFIX_GAP) / shape.cell);
    const column = event.clientY - top < MASK_HEAD ? place.indexOf(at) : -1;
    return column < 0 || !ticks[column] ? null : column;
  }

  function rowAt(event) {
    if (!shape || !store.step()) return null;
    const top = canvas.getBoundingClientRect().top + MASK_HEAD;
    const at = Math.floor((event.clientY - top) / shape.cell);
    const row = place.indexOf(at);
    return row < 0 || !bands[row] ? null : row;
  }

  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => store.set({ hover: null, column: null, lit: null }));
  canvas.addEventListener("click", (event) => { const row = rowAt(event); store.set({ pin: row === store.pin ? null : row }); });

  // The same elements travel to their new places, so that the permutation can be seen.
  function reorder() {
    const before = place;
    nameOrder();
    arrange();
    if (!shape || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const from = (each, at) => `path("${outline(lines[each].columns.map((column) => [each, column]), at)}")`;
    lines.forEach((line, row) => line.cells.animate([{ d: from(row, before) }, { d: from(row, place) }],
      { duration: 200, easing: "ease-in-out" }));
  }

  function nameOrder() {
    orderButton.textContent = store.order === "tree" ? "depth-first" : "engine order";
    orderButton.setAttribute("aria-pressed", String(store.order !== "tree"));
  }

  watchSize(box, (now) => {
    if (now.width === size.width && now.height === size.height) return;
    size = now;
    draw();
  });

  return { name: "mask", label: "Tree mask", help: "Which rows of the pass see which", element: section, tools: orderButton, draw, link, reorder };
}
