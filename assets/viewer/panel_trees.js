// The panels of the methods that draft trees: Medusa's lists and ranks, EAGLE's levels and confidence.

const HEAD_CELLS = 9, LEVEL_CELLS = 9;

function share(value) { return el("i", { class: "dtx-share", style: "width:" + (100 * clamp(value, 0, 1)).toFixed(1) + "%" }); }

function drawMedusa(panel, kit) {
  const ranks = el("p", { class: "dtx-ranks" });
  const columns = panel.heads.map((head) => el("li", { class: "dtx-head", title: head.blind },
    el("h4", {}, "head " + head.depth, el("small", {}, "%")),
    el("ol", {}, ...head.candidates.map((candidate, rank) => el("li", { class: rank === head.came_rank ? "is-came" : null },
      kit.chip(candidate.token, candidate.rows, HEAD_CELLS, el("small", {}, percent(candidate.prob).replace(" %", "")), share(candidate.prob))))),
    head.came_token !== null && head.came_rank === null
      ? el("p", { class: "dtx-missed is-came" }, kit.entry([], "is-absent", kit.token(head.came_token, HEAD_CELLS)), el("small", {}, "not listed")) : null));
  const words = panel.heads.map((head, i) => el("p", {}, el("b", {}, "Head " + head.depth + ". "), head.blind + " ",
    panel.sentences[i] ? el("span", {}, panel.sentences[i]) : null));

  function follow() {
    const node = kit.active(), path = node === null ? null : panel.ranks[node];
    if (!path || !path.length) { fill(ranks, panel.product); return; }
    fill(ranks, el("b", {}, "rank path "), ...path.flatMap((rank, i) => [i ? " \u00d7 " : "", el("span", { class: "dtx-rank" },
      String(rank + 1), el("small", {}, "of head " + (i + 1)))]));
  }

  return { follow, parts: [el("ol", { class: "dtx-heads dtx-scroll" }, ...columns), ranks,
    el("p", { class: "dtx-key" }, el("span", { class: "is-came" }, "came"), " what the output really has there; boxed: in the tree"),
    el("div", { class: "dtx-texts" }, ...words)] };
}

function drawEagle(panel, kit) {
  const { model, store } = kit;
  const words = el("div", { class: "dtx-texts" });
  const levels = panel.levels.map((level) => {
    const isShown = (each) => each.node < model.n || store.ghosts;
    const hidden = level.nodes.filter((each) => !isShown(each)).length;
    return el("li", { class: "dtx-level" }, el("h4", {}, "depth " + level.depth), el("div", {},
      ...level.nodes.filter(isShown).map((each) => kit.chip(model.token[each.node], [each.node], LEVEL_CELLS, el("small", {}, percent(each.confidence)),
        each.is_expanded ? el("i", { class: "dtx-grown", title: "expanded: the drafter's next pass read it" }, "\u25b8") : null, share(each.confidence))),
      hidden ? button("dtx-more", "Show what was pruned (g)", () => store.set({ ghosts: true }), "+" + hidden + " pruned") : null));
  });

  function follow() {
    const node = kit.active(), level = node === null ? null : panel.levels.find((each) => each.depth === model.col[node]);
    fill(words, el("p", {}, level && node !== model.own ? level.sentence : panel.sentences[0]));
  }

  return { follow, parts: [el("ol", { class: "dtx-levels" }, ...levels), el("p", { class: "dtx-key" },
    "%: the product of draft probabilities along the path; \u25b8: expanded ",
    button("dtx-more", "Whether this confidence can be trusted, counted over the run (2)", () => store.set({ view: "run" }), "trust \u203a")), words] };
}
