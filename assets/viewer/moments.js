// The moments of a step: how the states stand at the one on screen, replayed from the record's marks, and the moves
// from one to the next. A quiz is a beat of them: it asks before the target's pass and then shows what came of it.

const MOMENT_MS = 1100, READING_MS = 11; // a moment's time on screen while playing: so much, and so much a character
const PENDING = { kind: "start", caption: "", marks: [["root", [0]]], focus: [0], ms: null, kept: [] };

function createMoments(store, insights) {
  const answers = new WeakMap(); // step -> what was said of it: moments stay, though the run may grow
  let wish = null, fault = "", latest = null;

  function answerOf(at) {
    const step = store.steps[at];
    if (answers.has(step)) return answers.get(step);
    const answer = insights.ask("step", [store.id], at);
    if (answer && !answer.error) answers.set(step, answer);
    return answer;
  }

  // The list on screen, or null while it is on its way.
  function list() {
    const answer = store.moment === null || !store.step() ? null : answerOf(store.at);
    return answer && answer.micro ? answer.micro : null;
  }

  // Null where the whole step is on screen; else what is there at this moment. Until the moments have come it is the
  // first one, which all steps share.
  function board() {
    const step = store.step(), micro = list();
    if (store.moment === null || !step) return null;
    const at = micro ? clamp(store.moment, 0, micro.length - 1) : 0;
    if (!latest || latest.step !== step || latest.micro !== micro || latest.at !== at) latest = replay(step, micro, at);
    return latest;
  }

  function replay(step, micro, at) {
    const before = micro ? micro.slice(0, at + 1) : [PENDING], now = before[before.length - 1];
    const states = new Array(modelOf(step).count).fill(null);
    for (const { marks } of before) for (const [state, nodes] of marks) for (const node of nodes) states[node] = state;
    const has = (...kinds) => before.some((each) => kinds.includes(each.kind));
    const isRead = has("verify"), masked = before.filter((each) => each.kind === "mask").flatMap((each) => each.focus);
    return {
      step, micro, at, now, states, isRead, kind: now.kind, isFlat: isRead || has("flatten"),
      lit: new Set(now.focus), fresh: new Set(now.marks.flatMap(([, nodes]) => nodes)),
      built: new Set(isRead ? step.tok.map((_, row) => row) : masked), kept: new Map(now.kept),
    };
  }

  // The node that the details show while none is chosen.
  function subject(shown) {
    const { kind, now, step } = shown, own = modelOf(step).own;
    if (kind === "next" || kind === "commit") return own;
    if (kind === "draft" && now.marks.length) return now.marks[0][1][0];
    const accepted = now.focus.filter((node) => shown.fresh.has(node) && ["accepted", "passing"].includes(shown.states[node]));
    return [...accepted, ...now.focus.filter((node) => shown.fresh.has(node)), now.focus[0]][0];
  }

  // Whether the picture already tells what the record says in the end of a node.
  function isTold(shown, node) {
    return !shown || node === 0 || (shown.isRead && shown.states[node] === modelOf(shown.step).state[node]);
  }

  function show(at, moment, more = {}) {
    const moved = at === store.at ? {} : { pin: null, unfolded: new Set(), follow: at === store.steps.length - 1 };
    store.set({ at, moment, hover: null, view: "step", ...moved, ...more });
  }

  // Shows the moment of step `at` that `place` finds in its list; waits for the list where it has not come yet.
  function enter(at, place) {
    if (!store.steps[at]) return;
    const answer = answerOf(at);
    wish = answer ? null : { at, place };
    if (!answer) return;
    if (answer.error) {
      store.set({ moment: null, playing: false });
      fault = answer.error;
    } else show(at, clamp(place(answer.micro), 0, answer.micro.length - 1));
  }

  function move(by) {
    const micro = list(), next = store.moment + by, first = () => 0, last = (all) => all.length - 1;
    if (!store.step()) return;
    if (store.moment === null) enter(store.at, by > 0 ? first : last);
    else if (by > 0 && isAsking()) reveal(store.moment + 1); // pass and walk first, the answer when they get there
    else if (micro && next < 0) enter(store.at - 1, last);
    else if (micro && next >= micro.length) enter(store.at + 1, first);
    else if (micro) show(store.at, next);
  }

  // The first moment of these kinds; if one of them is on screen, the one after it.
  function visit(kinds) {
    const micro = list(), isHere = micro && kinds.includes(micro[store.moment].kind);
    const next = isHere && micro[store.moment + 1] && kinds.includes(micro[store.moment + 1].kind) ? store.moment + 1 : null;
    enter(store.at, (all) => next ?? all.findIndex((each) => kinds.includes(each.kind)));
  }

  // One beat of playing. The next step's moments are asked for in time.
  function tick() {
    const micro = list();
    if (isAsking()) store.set({ playing: false });
    else if (micro && store.moment === micro.length - 1 && store.at === store.steps.length - 1) store.set({ playing: !store.done });
    else move(1);
    const now = list();
    if (now && store.moment > now.length - 3 && store.steps[store.at + 1]) answerOf(store.at + 1);
  }

  function pause() {
    const shown = board();
    return shown ? MOMENT_MS + READING_MS * shown.now.caption.length : 0;
  }

  function question() { return list() ? answerOf(store.at).quiz : null; }

  function hasQuestion(step) { return step.state.some((state) => state !== "root" && state !== "window"); }

  function isAnswered() { return Boolean(store.quiz && store.quiz.told && store.quiz.told.at === store.at); }

  function isAsking() {
    const micro = store.quiz && question() ? list() : null;
    return Boolean(micro) && !isAnswered() && micro[store.moment + 1] !== undefined && micro[store.moment + 1].kind === "verify";
  }

  // To the question of this step, or of the nearest later one that has any.
  function ask(from) {
    const order = store.steps.map((_, i) => (from + i) % store.steps.length);
    const at = order.find((i) => hasQuestion(store.steps[i]));
    if (at === undefined) return;
    store.set({ quiz: { right: 0, total: 0, ...store.quiz, told: null }, playing: false, pin: null, hover: null });
    enter(at, (micro) => micro.findIndex((each) => each.kind === "verify") - 1);
  }

  // Whether the end of the step on screen must not be seen yet: a quiz asks for it, or walks to it.
  function isSecret() {
    if (!store.quiz) return false;
    const micro = list(), end = micro ? micro.findIndex((each) => each.kind === "next") : 0;
    return !isAnswered() || (store.moment !== null && (!micro || store.moment < end));
  }

  // The answer, at the moment that shows it, or at an earlier one from which the visitor goes on.
  function reveal(from = null) {
    const quiz = question(), guess = store.pin === null || quiz.verdict[store.pin] === undefined ? null : store.pin;
    const [isRight, text] = guess === null ? [false, ""] : quiz.verdicts[quiz.verdict[guess]];
    const { right, total } = store.quiz, told = { at: store.at, guess, isRight, text, right, total };
    const score = guess === null ? { right, total } : { right: right + Number(isRight), total: total + 1 };
    show(store.at, from ?? list().findIndex((each) => each.kind === "next"), { pin: null, quiz: { ...score, told } });
  }

  store.onChange((changed) => {
    if (["at", "moment", "id"].some((field) => changed.has(field))) { wish = null; fault = ""; }
    if (!changed.has("insights")) return;
    if (wish) enter(wish.at, wish.place);
    const answer = store.moment === null || !store.step() ? null : answerOf(store.at);
    if (answer && answer.error) enter(store.at, () => 0);
  });

  return {
    board, list, subject, isTold, move, visit, tick, pause, ask, reveal: () => reveal(), isAsking, isSecret, question,
    told: () => (isAnswered() && store.moment !== null ? store.quiz.told : null), fault: () => fault,
  };
}
