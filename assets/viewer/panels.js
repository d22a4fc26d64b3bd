// What only one method has to show of a step. Python says it all (insight "step", field panel); a function per kind
// paints it. Pieces that stand for nodes light them in the tree and are lit by them.

const PANEL_DRAWERS = {
  medusa: drawMedusa, eagle: drawEagle, draft_model: drawDraftModel, prompt_lookup: drawPromptLookup, jacobi: drawJacobi,
  lookahead: drawLookahead,
};

// What the drawers work with.
function createKit(store, step) {
  const model = modelOf(step);
  const strongest = (nodes) => ["accepted", "rejected", "untried", "unreachable", "window", "ghost"].find((state) =>
    nodes.some((node) => model.state[node] === state));
  const token = (id, cells) => el("bdi", { title: shorten(store.label(id), 80) }, ...spanParts(shorten(store.label(id), cells)));
  const entry = (nodes, kind, ...children) => el("span", { class: "dtx-entry " + kind, "data-nodes": nodes.join(" ") }, ...children);
  return {
    store, step, model, token, entry,
    // A token of these nodes with the sign of its verdict; without nodes it is only a word.
    chip(id, nodes, cells, ...more) {
      const state = strongest(nodes);
      return entry(nodes, state ? "is-" + state : "is-absent",
        GLYPHS[state] ? el("i", { class: "dtx-sign" }, GLYPHS[state]) : null, token(id, cells), ...more);
    },
    // The node that the panel is about: the one under the pointer, or the pinned one; of rows only.
    active() {
      const node = store.active();
      return node !== null && node < model.count ? node : null;
    },
    texts: (sentences) => el("div", { class: "dtx-texts" }, ...sentences.filter(Boolean).map((text) => el("p", {}, text))),
  };
}

// Fills an area with what an answer about the step holds; while it is on its way the old picture stays, faded and deaf.
function createStepPainter(store, insights, area, paint) {
  let shown = null, stamp = null;

  function draw() {
    const step = store.step();
    const answer = step ? insights.ask("step", [store.id], store.at) : null;
    area.classList.toggle("is-waiting", Boolean(step) && !answer);
    shown = null;
    if (step && !answer) return;
    if (!step || answer.error) { fill(area, el("p", { class: "dtx-empty" }, step ? answer.error : store.message)); stamp = null; return; }
    shown = answer;
    if (answer !== stamp || !area.hasChildNodes()) area.scrollTop = 0;
    stamp = answer;
    paint(step, answer);
  }

  return { draw, answer: () => shown };
}

function createPanelPane(store, insights) {
  const area = el("div", { class: "dtx-panel" });
  const section = el("section", { class: "dtx-panebox", "aria-label": "What only this method has" }, area);
  const painter = createStepPainter(store, insights, area, paint);
  let follow = () => {};

  function paint(step, answer) {
    const kit = createKit(store, step), panel = answer.panel;
    const drawing = panel ? PANEL_DRAWERS[panel.kind](panel, kit) : { parts: [kit.texts(step.captions.slice(0, 1))] };
    follow = drawing.follow || (() => {});
    fill(area, ...drawing.parts);
    if (drawing.atEnd) for (const box of area.querySelectorAll(".dtx-scroll")) box.scrollLeft = box.scrollWidth;
    link();
  }

  function link() {
    if (!painter.answer() || !store.step()) return;
    const model = modelOf(store.step()), active = store.active();
    const chain = new Set(active === null || active >= model.count ? store.lit || [] : chainOf(model, active));
    for (const piece of area.querySelectorAll("[data-nodes]")) {
      const nodes = nodesOf(piece);
      piece.classList.toggle("is-linked", nodes.some((node) => chain.has(node)));
      piece.classList.toggle("is-active", nodes.includes(active));
    }
    follow();
  }

  function nodesOf(piece) { return piece.dataset.nodes ? piece.dataset.nodes.split(" ").map(Number) : []; }

  function point(event) {
    const piece = event.target.closest("[data-nodes]");
    if (!painter.answer()) return;
    const nodes = piece ? nodesOf(piece) : [];
    const lit = piece && piece.dataset.group ? piece.dataset.group.split(" ").map(Number) : nodes;
    const hover = nodes.length === 1 ? nodes[0] : null;
    if (hover !== store.hover || lit.join() !== (store.lit || []).join()) store.set({ hover, lit: lit.length ? lit : null });
  }

  area.addEventListener("pointerover", point);
  area.addEventListener("pointerleave", () => store.set({ hover: null, lit: null }));
  area.addEventListener("click", (event) => {
    const piece = event.target.closest("[data-nodes]"), leap = event.target.closest("[data-leap]");
    if (leap) store.go(Number(leap.dataset.leap));
    else if (piece && painter.answer() && nodesOf(piece).length === 1) store.set({ pin: nodesOf(piece)[0] === store.pin ? null : nodesOf(piece)[0] });
  });

  return {
    name: "method", label: "Method", help: "What only this method has: its lists, levels, window or match",
    element: section, draw: painter.draw, link,
    isOffered: () => Boolean(store.header) && store.header.method !== "autoregressive",
  };
}
