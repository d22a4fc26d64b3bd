// What the viewer knows and where it stands. Parts read the store and are told which fields changed.

const STATE_NAMES = {
  root: "last token", accepted: "accepted", rejected: "rejected", untried: "not tried",
  unreachable: "not reached", window: "window", ghost: "pruned", own: "target's own token",
  drafted: "drafted", passing: "plausible", // only in the moments of a step
};
const GLYPHS = { accepted: "\u2713", rejected: "\u2717", own: "\u2605", drafted: "\u25cb", passing: "\u25b3" };
// The same signs drawn in a box of 10: text is what costs most in a tree of 60 pills, and fonts may lack them.
const GLYPH_PATHS = { accepted: "M1 5.5 4 8.5 9 1.5", rejected: "M2 1.5 8 8.5M8 1.5 2 8.5",
  drafted: "M5 2.2a2.8 2.8 0 1 0 .01 0z", passing: "M5 1.2 9.3 9H.7z",
  own: "M5 .3 6.3 3.7 9.9 3.9 7.1 6.2 8 9.7 5 7.7 2 9.7 2.9 6.2 .1 3.9 3.7 3.7z" };
const METHOD_NAMES = {
  autoregressive: "Autoregressive", medusa: "Medusa", eagle1: "EAGLE-1", eagle2: "EAGLE-2", eagle3: "EAGLE-3",
  draft_model: "Draft model", jacobi: "Jacobi", lookahead: "Lookahead", prompt_lookup: "Prompt lookup",
};
const MODELS = new WeakMap();

function createStore() {
  const listeners = [];
  const store = {
    id: null, header: null, facts: [], vocab: new Map(), steps: [], done: false, ended: false, message: "",
    at: 0, hover: null, pin: null, follow: true, playing: false, speed: 1,
    ghosts: false, fold: null, unfolded: new Set(), order: "tree", view: "step", pane: "mask", insights: 0,
    column: null, lit: null, wide: false, cut: { rows: null, depth: null }, others: [], own: [],
    lesson: null, demo: null, moment: null, slow: false, present: false, quiz: null,
    onChange(listener) { listeners.push(listener); },
    set(patch) {
      const changed = new Set(Object.keys(patch).filter((key) => patch[key] !== store[key]));
      if (!changed.size) return;
      Object.assign(store, patch);
      for (const listener of listeners) listener(changed);
    },
    step() { return store.steps[store.at] || null; },
    active() { return store.hover !== null ? store.hover : store.pin; },
    label(token) { const entry = store.vocab.get(String(token)); return entry ? entry[0] : "#" + token; },
    // A token's bytes as pairs of digits, empty where the run was recorded without them.
    bytes(token) {
      const entry = store.vocab.get(String(token));
      return entry && entry[2] ? entry[2].toUpperCase().match(/../g).join(" ") : "";
    },
    kind(token) { const entry = store.vocab.get(String(token)); return entry ? entry[1] : "special"; },
    // A visitor's own move: stops following a live run, unless it leads to its newest step.
    go(target) {
      if (!store.steps.length) return;
      const at = clamp(target, 0, store.steps.length - 1);
      store.set({ at, hover: null, lit: null, column: null, pin: null, unfolded: new Set(),
        follow: at === store.steps.length - 1, moment: store.slow && store.playing ? 0 : null });
    },
  };
  return store;
}

// One numbering for all that is drawn: rows 0..n-1 in engine order, then ghosts, then the target's own token.
function modelOf(step) {
  if (MODELS.has(step)) return MODELS.get(step);
  const n = step.tok.length, g = step.ghosts.tok.length;
  const blank = new Array(g + 1).fill(null);
  const model = {
    n, own: n + g, count: n + g + 1,
    token: [...step.tok, ...step.ghosts.tok, step.next[0]],
    parent: [...step.par, ...step.ghosts.par, step.path[step.path.length - 1]],
    state: [...step.state, ...step.ghosts.tok.map(() => "ghost"), "own"],
    row: [...step.row, ...step.ghosts.row, step.own.row],
    col: [...step.col, ...step.ghosts.col, step.own.col],
    q: [...step.q, ...step.ghosts.q, null],
    p: [...step.p, ...step.ghosts.p, step.next[2]],
    score: [...step.score, ...step.ghosts.score, null],
    rank: [...step.rank, ...blank],
    children: Array.from({ length: n + g + 1 }, () => []),
  };
  for (let node = 1; node < model.count; node += 1) model.children[model.parent[node]].push(node);
  MODELS.set(step, model);
  return model;
}

// The node, then its ancestors up to the root.
function chainOf(model, node) {
  const chain = [];
  for (let at = node; at >= 0; at = model.parent[at]) chain.push(at);
  return chain;
}

// Why a node has its state, and what it attends to: sentences from the record, only picked here.
function reasonOf(step, node) {
  const model = modelOf(step);
  if (node === model.own) return step.own.why;
  return node < model.n ? step.reasons[step.why[node]] : step.ghosts.why;
}

function attentionOf(step, node) {
  return node < modelOf(step).n ? step.attends[step.col[node]] : "";
}

// Which rows may see a row: a column of the mask, as a sentence.
function visibilityOf(step, row) {
  return step.seen[0][step.seen[1][row]];
}

function descendantsOf(model, node) {
  return [node, ...model.children[node].filter((child) => child < model.n).flatMap((child) => descendantsOf(model, child))];
}

// Which nodes are on screen, and their rows once empty rows are closed: the layout's order of children makes closing
// rows enough. `folded` holds the nodes whose branches are hidden.
function visibleOf(step, showGhosts, folded) {
  const model = modelOf(step);
  const isShown = new Array(model.count).fill(true);
  for (let node = 1; node < model.count; node += 1) {
    const parent = model.parent[node];
    isShown[node] = isShown[parent] && !folded.has(parent) && (showGhosts || model.state[node] !== "ghost");
  }
  const used = [...new Set(model.row.filter((_, node) => isShown[node]))].sort((a, b) => a - b);
  const place = new Map(used.map((row, i) => [row, i]));
  return { isShown, folded, hidden: [], numRows: used.length, row: model.row.map((row) => place.get(row)) };
}

// The view for a pane that holds `maxRows` rows. fold true: every branch below a rejected or untried node is hidden;
// false: none; null: the worst-scored ones that free a row, until the rest fits.
function foldedView(step, { ghosts, fold, unfolded }, maxRows) {
  const model = modelOf(step);
  const isDead = (node) => model.state[node] === "rejected" || model.state[node] === "untried";
  const dead = model.score.map((_, node) => node).filter((node) => isDead(node) && !unfolded.has(node) && countBelow(model, node));
  if (fold !== null) return visibleOf(step, ghosts, new Set(fold ? dead : []));
  let view = visibleOf(step, ghosts, new Set());
  for (const node of dead.sort((a, b) => model.score[a] - model.score[b])) {
    if (view.numRows <= maxRows) break;
    const next = visibleOf(step, ghosts, new Set([...view.folded, node]));
    if (next.numRows < view.numRows) view = next;
  }
  return view;
}

// The view that fits into `maxRows` rows without a word on the outcome: the accepted path, then the drafted rows by
// score, a quarter of the room left to ghosts. `hidden`: the nodes for which neither place nor fold is left.
function fittedView(step, { ghosts, unfolded, fold }, maxRows) {
  const model = modelOf(step), isShown = new Array(model.count).fill(false), used = new Set();
  const isDead = (node) => fold && ["rejected", "untried", "unreachable"].includes(model.state[node]);
  const add = (node, limit) => {
    const parent = model.parent[node], isOpen = unfolded.has(parent);
    if (node && (!isShown[parent] || (isDead(parent) && !isOpen))) return;
    if (!used.has(model.row[node]) && used.size >= limit && !isOpen) return;
    isShown[node] = true;
    used.add(model.row[node]);
  };
  const best = model.score.map((_, node) => node).sort((a, b) => model.score[b] - model.score[a] || a - b);
  const rows = best.filter((node) => node < model.n), pruned = best.filter((node) => ghosts && model.state[node] === "ghost");
  const wanted = pruned.filter((node) => model.parent[node] === model.parent[model.own] && model.token[node] === model.token[model.own]);
  for (const node of [...chainOf(model, model.own).reverse(), ...wanted]) add(node, Infinity);
  for (const node of rows) add(node, pruned.length ? Math.ceil(0.75 * maxRows) : maxRows);
  for (const node of [...pruned, ...rows]) add(node, maxRows);
  const drafted = (node) => model.children[node].filter((child) => child < model.n);
  const folded = new Set(rows.filter((node) => isShown[node] && drafted(node).length && !drafted(node).some((child) => isShown[child])));
  const hidden = [...rows, ...pruned].filter((node) => !isShown[node] && !(node < model.n && chainOf(model, node).some((each) => folded.has(each))));
  const place = new Map([...used].sort((a, b) => a - b).map((row, i) => [row, i]));
  return { isShown, folded, hidden, numRows: used.size, row: model.row.map((row) => place.get(row)) };
}

function countBelow(model, node) {
  return model.children[node].reduce((sum, child) => sum + (child < model.n ? 1 + countBelow(model, child) : 0), 0);
}
