// The panels of the methods whose guesses grow from pass to pass: Jacobi's trajectory, Lookahead's window and pool.

const GRID_CELLS = 6, GRAM_CELLS = 10, MAX_ADDED = 4;
const CAME_SIGNS = { fixed: "\u2713", early: "\u25cb", wrong: "\u2717", unknown: "?" };

// A table whose columns are places in the text: pieces at [line, column], both from 0.
function placeGrid(pieces) {
  for (const [piece, line, column, span] of pieces) {
    piece.style.gridRow = String(line + 1);
    piece.style.gridColumn = column + 1 + " / span " + (span || 1);
  }
  return el("div", { class: "dtx-grid dtx-scroll" }, ...pieces.map(([piece]) => piece));
}

function drawJacobi(panel, kit) {
  const first = Math.min(...panel.iterations.map((each) => each.start));
  const last = Math.max(...panel.iterations.map((each) => each.start + each.guess_tokens.length - 1));
  const fate = (each, k) => k < each.num_fixed ? "fixed" : each.came[k] === null ? "unknown" : each.came[k] ? "early" : "wrong";
  const pieces = [[el("small", { class: "dtx-gridhead is-corner" }, "place"), 0, 0]];
  for (let place = first; place <= last; place += 1) pieces.push([el("small", { class: "dtx-gridhead" }, String(place + 1)), 0, place - first + 1]);
  panel.iterations.forEach((each, line) => {
    const isNow = line === panel.iterations.length - 1;
    pieces.push([el("button", { type: "button", class: "dtx-button dtx-pass", "data-leap": each.step, title: "Go to this pass",
      "aria-pressed": isNow }, "pass " + (each.step + 1)), line + 1, 0]);
    each.guess_tokens.forEach((id, k) => {
      const isFresh = each.num_carried !== null && k >= each.num_carried;
      pieces.push([kit.entry(isNow ? [each.rows[k]] : [], "is-" + fate(each, k) + (isFresh ? " is-fresh" : ""),
        el("i", { class: "dtx-sign" }, CAME_SIGNS[fate(each, k)]), kit.token(id, GRID_CELLS)), line + 1, each.start - first + k + 1]);
    });
  });
  return { atEnd: true, parts: [placeGrid(pieces), el("p", { class: "dtx-key" },
    "columns: places in the output; \u2713 fixed, \u25cb right but behind a wrong one, \u2717 wrong, dotted: a first guess, not the target's"),
  kit.texts(panel.sentences)] };
}

function drawLookahead(panel, kit) {
  const pieces = [[kit.entry([0], "is-root", kit.token(kit.model.token[0], GRID_CELLS)), 1, 0]];
  const width = Math.max(1, ...panel.window.map((row) => row.offset + row.window_tokens.length - 1));
  for (let place = 0; place <= width; place += 1) pieces.push([el("small", { class: "dtx-gridhead" }, place ? "+" + place : "root"), 0, place]);
  panel.window.forEach((row, line) => row.window_tokens.forEach((id, k) => {
    const node = row.rows.length ? row.rows[k] : null, number = panel.diagonals.findIndex((each) => each.includes(node));
    const cell = kit.entry(node === null ? [] : [node], "is-window", kit.token(id, GRID_CELLS));
    if (number >= 0) cell.dataset.group = panel.diagonals[number].join(" ");
    cell.classList.toggle("is-odd", number % 2 === 1);
    pieces.push([cell, line + 1, row.offset + k]);
  }));
  const gram = (guess) => el("li", {}, ...guess.guess_tokens.map((id, k) =>
    k < guess.rows.length ? kit.chip(id, [guess.rows[k]], GRAM_CELLS) : kit.entry([], "is-absent", kit.token(id, GRAM_CELLS))));
  const added = (tokens) => el("li", {}, ...tokens.map((id) => kit.entry([], "is-absent", kit.token(id, GRAM_CELLS))));
  const more = panel.added_tokens.length - MAX_ADDED;
  return { parts: [
    kit.texts(panel.sentences.slice(0, 1)),
    el("h4", {}, "n-grams tried", panel.pool_size === null ? null : el("small", {}, "pool of " + panel.pool_size)),
    panel.guesses.length ? el("ol", { class: "dtx-grams" }, ...panel.guesses.map(gram)) : el("p", { class: "dtx-key" }, "none"),
    el("h4", {}, "window", el("small", {}, "each diagonal may become an n-gram")), placeGrid(pieces),
    panel.added_tokens.length ? el("h4", {}, "new in the pool", more > 0 ? el("small", {}, "and " + more + " more") : null) : null,
    el("ol", { class: "dtx-grams" }, ...panel.added_tokens.slice(0, MAX_ADDED).map(added)),
    kit.texts(panel.sentences.slice(1))] };
}
