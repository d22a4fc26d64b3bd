// A part of a step's tree in little: the branches below one row, with a mark at what only this side drafted.

const SMALL_MIN_ROW = 15, SMALL_MAX_ROW = 24, SMALL_FONT = 11.5, SMALL_GAP = 16, SMALL_HEAD = 4;

// nodes: the rows to draw, base first. marks: node -> "alone" or "pruned" (the other side thought of it and cut it).
function drawSmallTree(store, step, { nodes, marks, names, width, height }) {
  const model = modelOf(step), base = nodes[0], shown = [...nodes, model.own];
  const lines = [...new Set(shown.map((node) => model.row[node]))].sort((a, b) => a - b);
  const rowHeight = clamp((height - 2 * SMALL_HEAD) / lines.length, SMALL_MIN_ROW, SMALL_MAX_ROW);
  const pillHeight = rowHeight - 3, cell = SMALL_FONT * MONO_RATIO;
  const places = new Map(lines.map((row, i) => [row, SMALL_HEAD + (i + 0.5) * rowHeight]));
  const { lefts, pills } = columns();

  function start(node) { return GLYPHS[stateOf(node)] ? 5 + SMALL_FONT : 7; }
  function stateOf(node) { return node === base ? "root" : model.state[node]; }
  function level(node) { return model.col[node] - model.col[base]; }
  function x(node) { return lefts[level(node)]; }
  function y(node) { return places.get(model.row[node]); }
  function pill(node) { return pills[level(node)]; }

  // Columns as wide as their labels; where that is too much, the widest give way.
  function columns() {
    const wanted = [];
    for (const node of shown) {
      const cells = Math.min(16, store.label(model.token[node]).length);
      wanted[level(node)] = Math.max(wanted[level(node)] || 46, start(node) + cells * cell + 9);
    }
    let cap = 130;
    const total = () => wanted.reduce((sum, each) => sum + Math.min(each, cap) + SMALL_GAP, 0);
    while (cap > 50 && total() > width) cap -= 2;
    const widths = wanted.map((each) => Math.min(each, cap));
    return { pills: widths, lefts: widths.map((_, i) => 4 + widths.slice(0, i).reduce((sum, each) => sum + each + SMALL_GAP, 0)) };
  }

  function edge(node) {
    const parent = model.parent[node], from = x(parent) + pill(parent), to = x(node), bend = (to - from) * 0.55;
    return svg("path", { class: "dtx-edge is-" + model.state[node], "stroke-width": ["accepted", "own"].includes(model.state[node]) ? 2.5 : 1.2,
      d: `M${from} ${y(parent)}C${from + bend} ${y(parent)} ${to - bend} ${y(node)} ${to} ${y(node)}` });
  }

  function draw(node) {
    const state = stateOf(node), glyph = GLYPH_PATHS[state], size = 0.72 * SMALL_FONT, mark = marks.get(node);
    const label = shorten(store.label(model.token[node]), Math.max(3, Math.floor((pill(node) - start(node) - 4) / cell)));
    const name = `${store.label(model.token[node])}, ${STATE_NAMES[state]}, draft ${percent(model.q[node])}, target ${percent(model.p[node])}`
      + (mark ? ", " + names[mark] : "");
    return svg("g", { class: "dtx-node is-" + state + (mark ? " is-" + mark : ""), "data-small": node, role: "img", "aria-label": name,
      transform: `translate(${x(node)} ${y(node)})` },
    svg("title", {}, name),
    mark ? svg("rect", { class: "dtx-ring", x: -2, y: -pillHeight / 2 - 1, width: pill(node) + 4, height: pillHeight + 2, rx: 4 }) : null,
    svg("rect", { class: "dtx-pill", x: 0.5, y: -pillHeight / 2 + 1, width: pill(node) - 1, height: pillHeight - 2, rx: state === "rejected" ? 2 : pillHeight / 2 }),
    glyph ? svg("path", { class: "dtx-glyph", d: glyph, transform: `translate(5 ${-size / 2}) scale(${size / 10})` }) : null,
    svg("text", { class: "dtx-label", x: start(node), y: 0 }, ...tspanParts(label)));
  }

  const drawn = shown.filter((node) => node !== base);
  return svg("svg", { class: "dtx-smalltree", role: "group", "aria-label": "Draft tree", height: 2 * SMALL_HEAD + lines.length * rowHeight,
    width: lefts[lefts.length - 1] + pills[pills.length - 1] + 6, "font-size": SMALL_FONT },
  svg("g", {}, ...drawn.map(edge)), svg("g", {}, ...shown.map(draw)));
}
