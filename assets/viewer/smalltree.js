// A part of a step's tree in little: the branches below one row, with a mark at what only this side drafted.

const SMALL_MIN_ROW = 15, SMALL_MAX_ROW = 27, SMALL_MAX_FONT = 11.5, SMALL_GAP = 17, SMALL_HEAD = 4;

function linesOf(model, nodes) { return [...new Set(nodes.map((node) => model.row[node]))].sort((a, b) => a - b); }

// What is left of the nodes when branches below rejected and untried ones are folded, the worst-scored first, until
// the rest fits: {nodes, folded: node -> how many are hidden below it}.
function foldSmall(model, nodes, numRows) {
  const isDead = (node) => ["rejected", "untried"].includes(model.state[node]);
  const dead = nodes.filter((node) => isDead(node) && countBelow(model, node)).sort((a, b) => model.score[a] - model.score[b]);
  const folded = new Map();
  let left = nodes;
  for (const node of dead) {
    if (linesOf(model, left).length <= numRows) break;
    const rest = left.filter((each) => each === node || !chainOf(model, each).includes(node));
    folded.set(node, left.length - rest.length);
    left = rest;
  }
  return { nodes: left, folded };
}

// nodes: the rows to draw, base first. marks: node -> "alone" or "pruned" (the other side thought of it and cut it).
function drawSmallTree(store, step, { nodes, marks, names, width, height, isWhole }) {
  const model = modelOf(step), base = nodes[0], all = [...nodes, model.own];
  const { nodes: shown, folded } = foldSmall(model, all, isWhole ? Infinity : Math.floor((height - 2 * SMALL_HEAD) / SMALL_MIN_ROW));
  const lines = linesOf(model, shown);
  const rowHeight = clamp((height - 2 * SMALL_HEAD) / lines.length, SMALL_MIN_ROW, SMALL_MAX_ROW);
  const pillHeight = rowHeight - 2, fontSize = Math.min(SMALL_MAX_FONT, 0.78 * pillHeight), cell = fontSize * MONO_RATIO;
  const places = new Map(lines.map((row, i) => [row, SMALL_HEAD + (i + 0.5) * rowHeight]));
  const { lefts, pills } = columns();

  function start(node) { return GLYPHS[stateOf(node)] ? 5 + fontSize : 7; }
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
    return { pills: widths, lefts: widths.map((_, i) => 6 + widths.slice(0, i).reduce((sum, each) => sum + each + SMALL_GAP, 0)) };
  }

  function edge(node) {
    const parent = model.parent[node], from = x(parent) + pill(parent), to = x(node), bend = (to - from) * 0.55;
    return svg("path", { class: "dtx-edge is-" + model.state[node], "stroke-width": ["accepted", "own"].includes(model.state[node]) ? 2.5 : 1.2,
      d: `M${from} ${y(parent)}C${from + bend} ${y(parent)} ${to - bend} ${y(node)} ${to} ${y(node)}` });
  }

  function draw(node) {
    const state = stateOf(node), glyph = GLYPH_PATHS[state], size = 0.72 * fontSize, mark = marks.get(node);
    const label = shorten(store.label(model.token[node]), Math.max(3, Math.floor((pill(node) - start(node) - 4) / cell)));
    const name = `${store.label(model.token[node])}, ${STATE_NAMES[state]}, draft ${percent(model.q[node])}, target ${percent(model.p[node])}`
      + (mark ? ", " + names[mark] : "");
    return svg("g", { class: "dtx-node is-" + state + (mark ? " is-" + mark : ""), "data-small": node, role: "img", "aria-label": name,
      transform: `translate(${x(node)} ${y(node)})` },
    svg("title", {}, name),
    svg("rect", { class: "dtx-pill", x: 0.5, y: -pillHeight / 2 + 1, width: pill(node) - 1, height: pillHeight - 2, rx: state === "rejected" ? 2 : pillHeight / 2 }),
    mark ? svg("path", { class: "dtx-sidemark", d: `M-3 ${-pillHeight / 2}v${pillHeight}` }) : null,
    glyph ? svg("path", { class: "dtx-glyph", d: glyph, transform: `translate(5 ${-size / 2}) scale(${size / 10})` }) : null,
    svg("text", { class: "dtx-label", x: start(node), y: 0 }, ...tspanParts(label)),
    folded.has(node) ? svg("text", { class: "dtx-more", x: pill(node) + 5, y: 0 }, `+${folded.get(node)} below`) : null);
  }

  const drawn = shown.filter((node) => node !== base);
  return svg("svg", { class: "dtx-smalltree", role: "group", "aria-label": "Draft tree", height: 2 * SMALL_HEAD + lines.length * rowHeight,
    width: lefts[lefts.length - 1] + pills[pills.length - 1] + 6 + (folded.size ? 11 * cell : 0), "font-size": fontSize },
  svg("g", {}, ...drawn.map(edge)), svg("g", {}, ...shown.map(draw)));
}
