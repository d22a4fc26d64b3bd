// The panels of the methods that draft a chain from another text: a draft model's, or an earlier place's.

const CHAIN_CELLS = 12, PAIR_CELLS = 12;

// Both models on one axis: hollow the draft, filled the target, the overlap (what acceptance keeps) in blue.
function overlayBar(draft, target, shared) {
  const x = (value) => (98 * clamp(value, 0, 1)).toFixed(1);
  const bar = (kind, y, height, value) => value === null ? null : svg("rect", { class: "dtx-over is-" + kind, x: 1, y, width: x(value), height });
  return svg("svg", { class: "dtx-overlay", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { class: "dtx-over is-axis", d: "M1 0V14" }), bar("shared", 1, 12, shared), bar("draft", 1.5, 5, draft), bar("target", 8, 4, target));
}

function drawDraftModel(panel, kit) {
  const detail = el("div", { class: "dtx-detail" });
  const numbers = (row) => percent(row.draft_prob) + " \u00b7 " + percent(row.target_prob);
  const test = (row) => row.accept_prob === null || row.uniform === null ? ""
    : `${percent(row.accept_prob)}, drew ${Number(row.uniform.toPrecision(2))}`;
  const chain = panel.rows.map((row) => el("li", { class: "dtx-link", "data-nodes": row.row },
    kit.chip(row.token, [row.row], CHAIN_CELLS), overlayBar(row.draft_prob, row.target_prob, row.shared),
    el("small", {}, numbers(row)), el("small", { title: "acceptance probability, and the number drawn" }, test(row))));
  const pair = (each) => el("li", { class: "dtx-pair" }, kit.token(each.token, PAIR_CELLS), overlayBar(each.draft_prob, each.target_prob, each.shared),
    el("small", {}, percent(each.draft_prob) + " \u00b7 " + percent(each.target_prob)));
  const left = ([token, prob]) => el("li", { class: "dtx-pair" }, kit.token(token, PAIR_CELLS), overlayBar(null, prob, null), el("small", {}, percent(prob)));

  // The place in full: of the node under the pointer, else where the walk ended.
  function follow() {
    const failed = panel.rows.find((row) => kit.model.state[row.row] === "rejected");
    const row = panel.rows.find((each) => each.row === kit.active()) || failed || panel.rows[panel.rows.length - 1];
    fill(detail, el("p", {}, row.sentence), el("ol", {}, ...row.pairs.map(pair)),
      row.residual_tops.length ? el("h4", {}, "what the rejection left") : null,
      row.residual_tops.length ? el("ol", { class: "is-residual" }, ...row.residual_tops.map(left)) : null);
  }

  return { follow, parts: [
    el("p", { class: "dtx-key" }, el("i", { class: "dtx-mark is-draft" }), "draft ", el("i", { class: "dtx-mark is-target" }), "target ",
      el("i", { class: "dtx-mark is-shared" }), "min of both"),
    el("ol", { class: "dtx-links" }, ...chain), detail, kit.texts(panel.sentences)] };
}

function drawPromptLookup(panel, kit) {
  const quiet = (id) => kit.entry([], "is-absent", kit.token(id, CHAIN_CELLS));
  const matched = () => panel.matched_tokens.map((id) => kit.entry([], "is-matched", kit.token(id, CHAIN_CELLS)));
  const line = (title, ...pieces) => el("div", { class: "dtx-lookup" }, el("h4", {}, title), el("div", {}, ...pieces));
  const arrow = (sign) => el("b", { class: "dtx-arrow", "aria-hidden": "true" }, sign);
  return { parts: [
    kit.texts(panel.sentences),
    line((panel.is_prompt ? "in the prompt" : "in the text") + ", from token " + panel.start,
      ...panel.before_tokens.map(quiet), ...matched(), arrow("\u2192"), ...panel.copied_tokens.map(quiet)),
    line("now, at its end", ...matched(), arrow("\u21d2"), ...panel.copied_tokens.map((id, i) => kit.chip(id, [panel.rows[i]], CHAIN_CELLS)))] };
}
