// Side by side: the step on screen and what another run had drafted at the same place of the same text.

const MARK_NAMES = { alone: "drafted only here", pruned: "drafted only here; the other thought of it and pruned it" };

function createCompare(store, insights, chooser) {
  const question = el("h3", { class: "dtx-question" });
  const words = el("p", { class: "dtx-comparewords" });
  const move = el("div", { class: "dtx-shared" });
  const fold = button("dtx-smallfold", "Fold branches that were not reached, so that both trees fit", () => { isWhole = !isWhole; size = null; drawTrees(); }, "fold");
  const sides = el("div", { class: "dtx-sides" });
  const box = el("div", { class: "dtx-compare" }, el("div", { class: "dtx-comparehead" }, el("div", {}, question, words), move, fold), sides);
  let answer = null, shown = null, size = null, isWhole = false;

  function draw() {
    const rival = chooser.rival();
    answer = rival && store.step() ? insights.ask("compare", [store.id, rival], store.at) : null;
    const isSame = answer === shown && answer !== null;
    drawWay(rival);
    if (isSame) return;
    shown = answer;
    question.textContent = answer && answer.question ? answer.question : "What would the other method have drafted here?";
    words.textContent = !answer ? (rival ? "Loading \u2026" : "") : answer.error || answer.sentences.join(" ");
    words.classList.toggle("is-bad", Boolean(answer && answer.error));
    drawSides();
  }

  // Steps at which both runs stand at the same token: the nearest one is offered where this is none of them.
  function drawWay(rival) {
    const diff = rival && answer ? insights.ask("diff", [store.id, rival]) : null;
    const shared = diff && !diff.error ? diff.shared.map(([step]) => step) : [];
    const nearest = shared.reduce((best, step) => (best === null || Math.abs(step - store.at) < Math.abs(best - store.at) ? step : best), null);
    const isOffered = nearest !== null && nearest !== store.at;
    fill(move, isOffered ? button("dtx-nearest", `Nearest step that both begin at the same token: step ${nearest + 1}`, () => store.go(nearest),
      `nearest shared step: ${nearest + 1}`) : null);
  }

  function drawSides() {
    if (!answer || answer.error) { fill(sides); fold.hidden = true; return; }
    fill(sides, ...answer.sides.map((side, index) => {
      const other = answer.sides[1 - index];
      const alone = side.rows.length - answer.num_both, pruned = side.pruned_there.length;
      return el("section", { class: "dtx-side2", "data-side": index, "aria-label": side.label },
        el("p", { class: "dtx-sidehead" }, el("b", {}, side.label), ` step ${side.step + 1} \u00b7 ${side.num_accepted} of ${side.rows.length} accepted `,
          el("span", { class: "dtx-sidekey", title: MARK_NAMES.alone }, `${alone - pruned} only here`),
          pruned ? el("span", { class: "dtx-sidekey is-pruned", title: MARK_NAMES.pruned }, `${pruned} pruned by ${other.label}`) : null),
        el("div", { class: "dtx-smallbox" }));
    }));
    size = null;
    drawTrees();
  }

  function drawTrees() {
    if (!answer || answer.error) return;
    const boxes = [...sides.querySelectorAll(".dtx-smallbox")];
    const now = { width: boxes[0].clientWidth, height: boxes[0].clientHeight };
    if (!now.width || (size && now.width === size.width && now.height === size.height)) return;
    size = now;
    boxes.forEach((each, index) => {
      const side = answer.sides[index], step = index ? answer.other : store.steps[side.step];
      const marks = new Map(side.rows.filter((_, k) => side.matches[k] === null)
        .map((row) => [row, side.pruned_there.includes(row) ? "pruned" : "alone"]));
      fill(each, drawSmallTree(store, step, { nodes: [side.base, ...side.rows], marks, names: MARK_NAMES, isWhole, ...size }));
    });
    fold.hidden = !isWhole && !sides.querySelector(".dtx-more");
    fold.setAttribute("aria-pressed", String(!isWhole));
  }

  // The node under the pointer, and the same path in the other tree.
  function link(event) {
    const node = event.target.closest("[data-small]"), section = event.target.closest("[data-side]");
    const index = section ? Number(section.dataset.side) : 0;
    const side = node && answer && !answer.error ? answer.sides[index] : null;
    const row = side ? Number(node.dataset.small) : null;
    const match = !side ? null : row === side.base ? answer.sides[1 - index].base : side.matches[side.rows.indexOf(row)];
    for (const each of sides.querySelectorAll("[data-small]")) {
      const at = Number(each.closest("[data-side]").dataset.side), number = Number(each.dataset.small);
      each.classList.toggle("is-active", side !== null && (at === index ? number === row : number === match));
    }
  }

  sides.addEventListener("pointerover", link);
  sides.addEventListener("pointerleave", link);
  watchSize(sides, drawTrees);

  return { element: box, draw };
}
