// The row of moments under the tree: one chip for each part of a step with a tick for each of its moments, up and down,
// slow playing, the quiz and the presenter mode. Which parts a step has is read off the step, so that nothing is asked
// for before somebody looks at a moment.

const PARTS = [
  { kinds: ["start"], label: "start", title: "Start", help: "The last token of the output" },
  { kinds: ["draft"], label: "draft", title: "Draft", help: "The drafter guesses, level by level" },
  { kinds: ["prune"], label: "prune", title: "Prune", help: "Only the best nodes are kept" },
  { kinds: ["flatten"], label: "rows", title: "Rows", help: "The tree becomes the rows of one pass" },
  { kinds: ["mask"], label: "mask", title: "Mask", help: "Which row may see which" },
  { kinds: ["verify"], label: "verify", title: "Verify", help: "One pass of the target reads all rows" },
  { kinds: ["test", "choose"], label: "walk", title: "Walk", help: "The drafted tokens are tested, from the root on" },
  { kinds: ["next"], label: "own token", title: "Own token", help: "What the target adds by itself" },
  { kinds: ["commit"], label: "cache", title: "Cache", help: "Which rows the cache keeps" },
];

function partOf(kind) { return PARTS.find((part) => part.kinds.includes(kind)); }

// What a moment is called: its part, and which of its moments it is where there are several.
function titleOf(board) {
  const part = partOf(board.kind), same = (board.micro || []).filter((each) => part.kinds.includes(each.kind));
  return same.length > 1 ? `${part.title} ${same.indexOf(board.now) + 1} of ${same.length}` : part.title;
}

function createMomentBar(store, moments, actions) {
  const chips = PARTS.map((part) => {
    const ticks = el("span", { class: "dtx-ticks", "aria-hidden": "true" });
    const chip = button("dtx-moment", part.help, () => moments.visit(part.kinds), part.label, ticks);
    chip.dataset.part = part.label;
    return { part, chip, ticks };
  });
  const whole = button("dtx-moment dtx-whole", "The whole step as recorded (Esc)", () => store.set({ moment: null }), "whole step");
  const slow = button("dtx-slow", "Play moment by moment (s)", actions.toggleSlow, "slow");
  const quiz = button("dtx-quiz", "Guess the branch before the target reads it (q)", actions.quiz);
  const score = el("output", { class: "dtx-score", "aria-label": "Score" });
  const end = button("dtx-quizend", "End the quiz (Esc)", actions.endQuiz, "\u00d7");
  const present = button("dtx-present", "Presenter mode: large type for a projector (p)", actions.togglePresent, "present");
  const bar = el("div", { class: "dtx-moments", role: "group", "aria-label": "Moments of this step" },
    button("dtx-up", "Moment back (up arrow)", () => moments.move(-1), icon("M8 4 14 11H2z")),
    button("dtx-down", "Moment on (down arrow)", () => moments.move(1), icon("M8 12 2 5h12z")),
    el("div", { class: "dtx-chips" }, ...chips.map(({ chip }) => chip), whole),
    el("div", { class: "dtx-modes" }, slow, score, quiz, end, present));

  function isIn(step, { kinds: [kind] }) {
    if (kind === "prune") return step.pruned > 0;
    if (kind === "flatten" || kind === "mask") return step.tok.length > 1;
    return kind !== "test" || step.acc.some((chance) => chance !== null);
  }

  function mark() {
    const step = store.step(), board = moments.board(), micro = board ? board.micro : null;
    for (const { part, chip, ticks } of chips) {
      const mine = micro ? micro.map((each, k) => [each, k]).filter(([each]) => part.kinds.includes(each.kind)) : [];
      const isHere = board !== null && part.kinds.includes(board.kind);
      chip.disabled = !step || (micro ? !mine.length : !isIn(step, part));
      chip.classList.toggle("is-past", board !== null && mine.length > 0 && mine[mine.length - 1][1] < board.at);
      if (isHere) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
      const num = mine.length || 1;
      if (ticks.children.length !== num) fill(ticks, ...Array.from({ length: num }, () => el("i", {})));
      mine.forEach(([, k], i) => ticks.children[i].classList.toggle("is-past", k <= board.at));
      if (!mine.length) ticks.firstChild.classList.remove("is-past");
    }
    whole.setAttribute("aria-pressed", String(board === null));
    slow.setAttribute("aria-pressed", String(store.slow));
    present.setAttribute("aria-pressed", String(store.present));
    quiz.textContent = !store.quiz ? "quiz" : moments.isAsking() ? "reveal" : moments.told() ? "next question" : "question";
    quiz.classList.toggle("is-asking", moments.isAsking());
    end.hidden = score.hidden = !store.quiz;
    const counted = moments.isSecret() && moments.told() ? moments.told() : store.quiz; // as it was before this answer
    score.textContent = counted ? `${counted.right} of ${counted.total} right` : "";
    bar.classList.toggle("is-idle", store.view !== "step");
  }

  return { element: bar, mark };
}
