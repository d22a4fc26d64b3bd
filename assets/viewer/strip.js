// The output so far: the end of the prompt, then one segment per step. A click on a segment goes to its step.

const PROMPT_TAIL = 24;
const STRIP_LABEL_CELLS = 40;
const LINE_HEIGHT = 22; // as in viewer.css

function createStrip(store, moments) {
  const list = el("ol", { class: "dtx-segments" });
  const box = el("div", { class: "dtx-strip", role: "group", "aria-label": "Output, step by step" }, list);
  let segments = [], head = null, lines = [], height = 0, scrolling = 0, marked = 0;

  function token(id, kind) {
    const text = store.label(id);
    const part = el("bdi", { class: "dtx-token is-" + kind + " is-kind-" + store.kind(id), title: shorten(text, 60) },
      ...spanParts(shorten(text, STRIP_LABEL_CELLS)));
    return [part, el("wbr")]; // a line may break between tokens
  }

  // The prompt's last tokens and the token that the prompt pass chose: the root of step 1.
  function drawHead() {
    const ids = store.header.prompt_tokens, tail = ids.slice(-PROMPT_TAIL), hidden = ids.length - tail.length;
    head = el("li", { class: "dtx-segment is-prompt" },
      hidden ? el("span", { class: "dtx-count" }, "\u2026 " + hidden + " more ") : null,
      ...tail.flatMap((id) => token(id, "prompt")), ...token(store.header.first_token, "own"));
    list.append(head);
  }

  function drawSegment(step, index) {
    const isComplete = step.emitted.length === step.path.length;
    const accepted = step.emitted.length - (isComplete ? 1 : 0);
    const what = `step ${index + 1}: ` + (step.plain ? "a plain pass, because " + step.plain
      : `${accepted} accepted` + (isComplete ? " and the target's own token" : ", cut here"));
    const isRest = step.plain && !(index && store.steps[index - 1].plain); // named where the plain steps begin
    const tokens = step.emitted.flatMap((id, k) => token(id, isComplete && k === step.emitted.length - 1 ? "own" : "accepted"));
    const kind = (index % 2 ? " is-odd" : "") + (step.plain ? " is-plain" : "") + (index > store.at ? " is-future" : "");
    return el("li", { class: "dtx-segment" + kind, "data-step": index, title: what },
      el("sup", { class: "dtx-count" }, (isRest ? "plain +" : "+") + step.emitted.length), ...tokens);
  }

  function draw() {
    fill(list);
    segments = []; lines = []; head = null; marked = 0;
    if (!store.header) return;
    drawHead();
    append();
  }

  function append() {
    if (!head) { draw(); return; }
    while (segments.length < store.steps.length) {
      const segment = drawSegment(store.steps[segments.length], segments.length);
      segments.push(segment);
      list.append(segment);
    }
    mark();
  }

  // The step on screen, what lies before it (its prefix), and its root: the last token before it.
  function mark() {
    const from = Math.max(0, Math.min(marked, store.at) - 1), to = Math.min(segments.length - 1, Math.max(marked, store.at));
    for (let index = from; index <= to; index += 1) { // those that changed since the last time
      const segment = segments[index], isCurrent = index === store.at;
      segment.classList.toggle("is-current", isCurrent);
      segment.classList.toggle("is-future", index > store.at);
      segment.classList.toggle("is-root-holder", index === store.at - 1);
      if (isCurrent) segment.setAttribute("aria-current", "step");
      else segment.removeAttribute("aria-current");
    }
    marked = store.at;
    if (head) head.classList.toggle("is-root-holder", store.at === 0 && segments.length > 0);
    if (!segments[store.at]) return;
    cancelAnimationFrame(scrolling); // reading and moving the scroll position lays out the page: once, with the frame
    scrolling = requestAnimationFrame(scroll);
  }

  function scroll() {
    if (!segments[store.at]) return;
    if (lines.length !== segments.length) lines = segments.map((segment) => Math.floor(segment.offsetTop / LINE_HEIGHT));
    const room = store.moment === null ? 2.5 : 1.5; // among moments what came before matters, what follows is hidden
    const before = height > room * LINE_HEIGHT ? 1 : 0;
    list.scrollTop = Math.max(0, lines[store.at] - before) * LINE_HEIGHT;
  }

  // While the moments of a step are shown its tokens come as the walk reaches them, and later steps have not been.
  function veil() {
    const board = moments.board(), segment = segments[store.at];
    if (!board && !box.classList.contains("is-veiling")) return;
    box.classList.toggle("is-veiling", board !== null);
    for (const token of list.querySelectorAll(".is-veiled")) token.classList.remove("is-veiled");
    if (!board || !segment) return;
    const { path } = board.step, reached = [...path.slice(1), modelOf(board.step).own].map((node) =>
      board.states[node] === (node < board.step.tok.length ? "accepted" : "own"));
    segment.querySelectorAll(".dtx-token").forEach((token, i) => token.classList.toggle("is-veiled", !reached[i]));
    segment.querySelector(".dtx-count").classList.toggle("is-veiled", !reached[reached.length - 1]);
  }

  watchSize(list, (size) => {
    height = size.height;
    lines = [];
    mark();
  });

  function link() { box.classList.toggle("is-linking", store.active() !== null && store.step() !== null); }

  box.addEventListener("click", (event) => {
    const segment = event.target.closest("[data-step]");
    if (segment) store.go(Number(segment.dataset.step));
  });

  return { element: box, draw, append, mark, veil, link };
}
