// The details of one node; with none chosen, of the target's own token where the walk ended.

const TOP_LABEL_CELLS = 16, BYTE_CELLS = 23;

function createCard(store, moments) {
  const body = el("div", { class: "dtx-cardbody" });
  const section = el("section", { class: "dtx-card", "aria-label": "Node details" }, body);

  function draw() {
    const step = store.step();
    if (!step) { fill(body); return; }
    const model = modelOf(step), active = store.active(), board = moments.board();
    const isThere = active !== null && active < model.count && (!board || board.states[active]);
    const node = isThere ? active : board ? moments.subject(board) : model.own;
    const state = board ? board.states[node] : model.state[node], text = store.label(model.token[node]);
    const isTold = moments.isTold(board, node);
    const chip = el("p", { class: "dtx-chip is-" + state }, (GLYPHS[state] ? GLYPHS[state] + " " : "") + STATE_NAMES[state]);
    const title = el("h3", { class: "dtx-cardtitle", title: shorten(text, 300) }, el("bdi", {}, ...spanParts(shorten(text, 24))));
    fill(body, el("div", { class: "dtx-cardhead" }, title, chip),
      el("p", { class: "dtx-reason" }, isTold ? reasonOf(step, node) : "", el("span", {}, !board || board.isFlat ? attentionOf(step, node) : "")),
      drawNumbers(step, model, node, isTold), isTold ? drawTop(step, model, node) : null,
      isTold ? drawResidual(step, model, node) : null, drawLong(text));
  }

  // Before its verdict a node shows only what the drafter knew.
  function drawNumbers(step, model, node, isTold) {
    const list = el("dl", { class: "dtx-numbers" });
    const add = (name, ...value) => list.append(el("div", {}, el("dt", {}, name), el("dd", {}, ...value)));
    if (model.q[node] !== null) add("draft prob", bar(model.q[node], "draft"), percent(model.q[node]));
    if (model.p[node] !== null && isTold) {
      const rank = model.rank[node] === null ? "" : ", rank " + (model.rank[node] + 1);
      add("target prob", bar(model.p[node], "target"), percent(model.p[node]) + rank);
    }
    if (step.draws[node] && isTold) drawTest(add, step.draws[node]);
    if (model.score[node] !== null && node && model.q[node] !== null) {
      add("path score", percent(Math.exp(model.score[node])), fine("ln " + model.score[node].toFixed(2)));
    }
    add("position", String(step.prefix + model.col[node]), fine((node < model.n ? "row " + node + ", " : "") + "depth " + model.col[node]));
    const bytes = store.bytes(model.token[node]);
    add("token id", String(model.token[node]), bytes ? el("span", { class: "dtx-bytes", title: "bytes " + bytes }, shorten(bytes, BYTE_CELLS)) : null);
    return list;
  }

  // How a test with a number ended: a draw against its probability, or a probability against its threshold.
  function drawTest(add, [prob, uniform, threshold, isAccepted, mass]) {
    const word = isAccepted ? "accepted" : "rejected";
    if (uniform === null) {
      add("threshold", bar(threshold, "draft"), percent(threshold), fine(percent(prob) + ", " + word));
      return;
    }
    add("acceptance", bar(prob, "target"), percent(prob));
    add("draw", String(Number(uniform.toPrecision(3))), fine(word + (mass === null ? "" : ", leaves " + percent(mass))));
  }

  // Left out where the details are a narrow band.
  function fine(text) { return el("span", { class: "dtx-fine" }, text); }

  function bar(value, kind) {
    return svg("svg", { class: "dtx-probbar is-" + kind, width: 38, height: 8, viewBox: "0 0 38 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "dtx-barback", x: 0.5, y: 0.5, width: 37, height: 7 }),
      svg("rect", { class: "dtx-barfill", x: 0.5, y: 0.5, width: (37 * clamp(value, 0, 1)).toFixed(1), height: 7 }));
  }

  // What the target wanted in this node's place: known where the parent lies on the accepted path.
  function drawTop(step, model, node) {
    const parent = model.parent[node];
    const top = parent >= 0 && parent < model.n ? step.top[parent] : null;
    if (!top || !top.length) return null;
    return favourites("The target wanted here", top, model.token[node], "");
  }

  // What a rejection left of the target's distribution: for the next sibling, and at last for the target's own token.
  function drawResidual(step, model, node) {
    const failed = Object.keys(step.draws).map(Number).filter((row) => step.draws[row][5].length);
    const last = failed.filter((row) => model.parent[row] === model.parent[node]).pop();
    const test = step.draws[node === model.own ? last : node];
    if (!test || !test[5].length) return null;
    return favourites(node === model.own ? "It was drawn from what was left" : "The rejection left", test[5], model.token[node], " is-residual");
  }

  function favourites(title, top, marked, kind) {
    const rows = top.map(([token, probability]) => el("li", { class: token === marked ? "is-this" : null },
      el("bdi", {}, ...spanParts(shorten(store.label(token), TOP_LABEL_CELLS))), bar(probability, "target"),
      el("span", {}, percent(probability))));
    return el("div", { class: "dtx-top" + kind }, el("h4", {}, title), el("ol", {}, ...rows));
  }

  function drawLong(text) {
    return graphemes(text.slice(0, 200)).length > 24 ? el("pre", { class: "dtx-long", dir: "auto" }, text) : null;
  }

  return { element: section, draw };
}
