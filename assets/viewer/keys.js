// The keyboard: one table that acts and fills the help sheet.

const VIEW_NAMES = { 1: "step", 2: "run", 3: "race", 4: "compare", 5: "diff" };
const VIEW_KEYS = Object.keys(VIEW_NAMES);

function createKeys(store, moments, actions) {
  const faster = (by) => store.set({ speed: SPEEDS[clamp(SPEEDS.indexOf(store.speed) + by, 0, SPEEDS.length - 1)] });
  const table = [
    { keys: ["ArrowLeft"], shown: "\u2190", does: "one step back", run: (event) => store.go(store.at - (event.shiftKey ? 10 : 1)) },
    { keys: ["ArrowRight"], shown: "\u2192", does: "one step on", run: (event) => store.go(store.at + (event.shiftKey ? 10 : 1)) },
    { keys: [], shown: "Shift + \u2190 \u2192", does: "ten steps" },
    { keys: ["ArrowUp"], shown: "\u2191 \u2193", does: "one moment of the step back, on", run: () => moments.move(-1) },
    { keys: ["ArrowDown"], run: () => moments.move(1) },
    { keys: [], shown: "Tab, \u2191 \u2193", does: "from node to node, once Tab has led into the tree; Esc leaves it" },
    { keys: ["Home"], shown: "Home", does: "first step", run: () => store.go(0) },
    { keys: ["End"], shown: "End", does: "last step; follows a live run", run: () => store.go(store.steps.length - 1) },
    { keys: [" "], shown: "Space", does: "play or pause; reveals a quiz", run: actions.pressSpace },
    { keys: ["s"], shown: "s", does: "slow: play moment by moment", run: actions.toggleSlow },
    { keys: ["["], shown: "[  ]", does: "slower, faster", run: () => faster(-1) },
    { keys: ["]"], run: () => faster(1) },
    { keys: VIEW_KEYS, ...(actions.isAlone ? { shown: "1 2 3", does: "views: step, this run, race" }
      : { shown: "1 \u2026 5", does: "views: step, this run, race, side by side, difference" }), run: (event) => actions.showView(VIEW_NAMES[event.key]) },
    { keys: ["r"], shown: "r", does: "race", run: () => actions.showView("race") },
    { keys: ["w"], shown: "w", does: "more room for what stands beside the tree", run: () => store.set({ wide: !store.wide }) },
    { keys: ["m"], shown: "m", does: "mask: depth-first or engine order", run: actions.toggleOrder },
    { keys: ["g"], shown: "g", does: "pruned nodes on or off", run: actions.toggleGhosts },
    { keys: ["b"], shown: "b", does: "fold branches that were not reached", run: actions.toggleFold },
    ...(actions.hasLessons ? [
      { keys: ["l"], shown: "l", does: "lessons on or off", run: actions.toggleLessons },
      { keys: ["n"], shown: "n", does: "next stop of a lesson; with Shift the one before", run: () => actions.moveLesson(1) },
      { keys: ["N"], run: () => actions.moveLesson(-1) },
    ] : []),
    { keys: ["q"], shown: "q", does: "quiz: guess the branch before the target reads it, reveal, go on", run: actions.quiz },
    { keys: ["p"], shown: "p", does: "presenter mode; Page Down and Page Up then move by moments", run: actions.togglePresent },
    { keys: ["PageUp"], isOffered: () => store.present, run: () => moments.move(-1) },
    { keys: ["PageDown"], isOffered: () => store.present, run: () => moments.move(1) },
    { keys: ["f"], shown: "f", does: "full screen", run: actions.toggleFull },
    { keys: ["Escape"], shown: "Esc", does: "close this sheet, clear the selection, end the quiz, back to the whole step", run: actions.escape },
    { keys: ["?"], shown: "?", does: "this sheet", run: actions.toggleHelp },
  ];
  const rows = table.filter((entry) => entry.shown).flatMap((entry) => [el("dt", {}, entry.shown), el("dd", {}, entry.does)]);
  const signs = [
    ["\u2605", "the target's own token, which ends a step"],
    ["\u25cb \u25b3", "drafted, no verdict yet; plausible, the path not chosen yet"],
    ["+4", "tokens that a step added to the output"],
    ["\u2423 \u21B5 \u21E5", "a space, a line break, a tab inside a token"],
    ["\u2423\u00D73", "three spaces in a row"],
    ["+5 below", "drafted tokens folded away, none of them tested"],
  ].flatMap(([sign, means]) => [el("dt", {}, sign), el("dd", {}, means)]);
  const sheet = el("div", { class: "dtx-help", role: "dialog", "aria-label": "Keys and signs", hidden: true },
    el("h3", {}, "Keys"), el("dl", { class: "dtx-keys" }, ...rows), el("h3", {}, "Signs"), el("dl", {}, ...signs), button("dtx-close", "Close", actions.toggleHelp, "close"));

  function isEditable(target) {
    const field = target instanceof Element && target.closest("input, textarea, select, [contenteditable], [role=listbox], [role=slider]");
    return Boolean(field) && !field.classList.contains("dtx-range");
  }

  // Keys count inside the viewer, and anywhere on the page while nothing that reads keys has the focus.
  function handle(event, root) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isEditable(event.target)) return;
    const isInside = root.contains(event.target);
    if (!isInside && event.target !== document.body && event.target !== document.documentElement) return;
    if (event.key === " " && event.target instanceof Element && event.target.closest("button, a, summary")) return;
    if (isInside && actions.isInTree() && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      actions.moveFocus(event.key === "ArrowDown" ? 1 : -1);
      return;
    }
    if (actions.isInTree() && event.key === "Enter") { event.preventDefault(); store.set({ pin: store.hover }); return; }
    const entry = table.find((each) => each.run && each.keys.includes(event.key));
    if (!entry || (entry.isOffered && !entry.isOffered())) return;
    event.preventDefault();
    entry.run(event);
  }

  return { sheet, handle };
}
