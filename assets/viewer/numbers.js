// The bar of headline numbers, and the legend with this step's counts.

const LEGEND = ["root", "drafted", "passing", "accepted", "rejected", "untried", "unreachable", "window", "own"];

function createNumbers(store, tabs) {
  const title = el("p", { class: "dtx-title" });
  const settings = el("p", { class: "dtx-settings" });
  const list = el("ul", { class: "dtx-facts" });
  const header = el("header", { class: "dtx-header" }, el("div", { class: "dtx-topline" }, title, tabs, settings), list);

  function draw() {
    const head = store.header;
    if (!head) { fill(title); fill(settings); fill(list); return; }
    const [rule, meaning] = head.rule;
    const rest = [head.target.name, ...head.settings, rule, head.target.dtype + " on " + head.target.device];
    fill(title, el("strong", {}, METHOD_NAMES[head.method] || head.method));
    settings.textContent = rest.join(" \u00b7 ");
    settings.title = rule + ": " + meaning;
    fill(list, ...store.facts.map((fact) => el("li", { class: "dtx-fact is-" + fact.tone, title: fact.help, "data-fact": fact.name },
      el("b", {}, fact.value), el("span", {}, fact.label), el("small", {}, fact.note))));
  }

  return { element: header, draw };
}

function createLegend(store, moments, onGhosts, onFold, isFolding) {
  const list = el("ul", { class: "dtx-legend", "aria-label": "Legend" });
  const foldButton = button("dtx-foldswitch", "Fold the branches that could not be reached (b)", onFold, "fold");
  const ghostButton = button("dtx-ghostswitch", "Show what was drafted but pruned before the target saw it (g)", onGhosts);
  const bar = el("div", { class: "dtx-bar" }, list, ghostButton, foldButton);

  function swatch(state) {
    const isRound = state !== "rejected";
    return svg("svg", { class: "dtx-swatch", width: 22, height: 12, "aria-hidden": "true" },
      svg("g", { class: "dtx-node is-" + state, transform: "translate(1 6)" },
        svg("rect", { class: "dtx-pill", x: 0, y: -5, width: 20, height: 10, rx: isRound ? 5 : 1.5 }),
        GLYPH_PATHS[state] ? svg("path", { class: "dtx-glyph", d: GLYPH_PATHS[state], transform: "translate(6 -3.2) scale(.64)" }) : null));
  }

  const counters = new Map(LEGEND.map((state) => [state, el("b", {}, "")]));
  const items = new Map(LEGEND.map((state) =>
    [state, el("li", { "data-state": state }, swatch(state), STATE_NAMES[state], counters.get(state))]));
  fill(list, ...items.values());
  const pruned = el("span", {});
  fill(ghostButton, swatch("ghost"), pruned);

  function draw() {
    const step = store.step(), board = moments.board();
    const states = board ? board.states.slice(0, board.step.tok.length) : step ? step.state : [];
    for (const [state, counter] of counters) {
      if (state === "root" || state === "own") continue;
      counter.textContent = " " + states.filter((each) => each === state).length;
    }
    items.get("drafted").hidden = !board;
    items.get("passing").hidden = !board || store.header.sampling.acceptance !== "typical";
    items.get("window").hidden = !store.steps.some((each) => each.state.includes("window"));
    const total = step ? step.pruned : 0, drawn = step ? step.ghosts.tok.length : 0;
    pruned.textContent = "pruned " + (board ? prunedNow(board, total) : store.ghosts && drawn < total ? drawn + " of " + total : total);
    ghostButton.setAttribute("aria-pressed", String(store.ghosts));
    ghostButton.disabled = !drawn || board !== null;
    foldButton.hidden = board !== null;
    foldButton.setAttribute("aria-pressed", String(isFolding()));
  }

  function prunedNow(board, total) { return board.states.includes("ghost") ? total : 0; }

  return { element: bar, draw };
}
