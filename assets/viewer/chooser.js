// Which runs stand beside the one on screen: store.others. The server finds recorded ones of the same prompt and target;
// store.own holds the ids of the visitor's own runs, known to this page only, for as long as it is open.

const MAX_RACERS = 6, MAX_OWN = 16; // what the server takes
const SEVERAL = "race", ONE = ["compare", "diff"]; // the views that need others

const ALONE = { current: null, others: [], sentence: "" };

// isAlone: the host has no other run, so there is nothing to choose.
function createChooser(store, insights, isAlone) {
  const bar = el("div", { class: "dtx-chooser", role: "group", "aria-label": "Runs of this prompt", hidden: true });
  let settledFor = null, drawn = "";

  function isNeeded() { return store.view === SEVERAL || ONE.includes(store.view); }

  // Remembers an own run; a handle may bring others along and say which view they are for.
  function see({ id, recorded, others, view }) {
    const seen = [id, ...(others || [])].filter((each) => !store.own.includes(each));
    if (id && !recorded && seen.length) store.set({ own: [...store.own, ...seen].slice(-MAX_OWN - 1) });
    if (!others) return;
    settledFor = id;
    store.set({ others, ...(view ? { view } : {}) });
  }

  // {current, others, sentence}, or null while that is on its way and while the run still grows.
  function found() {
    if (!store.done || !store.steps.length) return null;
    if (isAlone) return ALONE;
    const answer = insights.ask("comparable", [store.id, ...store.own.filter((id) => id !== store.id)]);
    return answer && answer.error ? { current: null, others: [], sentence: answer.error } : answer;
  }

  // Once for each run on screen: everything that can be shown with it, what was chosen before in front.
  function settle() {
    const answer = isNeeded() ? found() : null;
    if (!answer || settledFor === store.id) return;
    settledFor = store.id;
    const known = answer.others.map((run) => run.id), kept = store.others.filter((id) => known.includes(id));
    store.set({ others: [...new Set([...kept, ...known])].slice(0, Math.max(kept.length, MAX_RACERS - 1)) });
  }

  function runs() { const answer = found(); return answer ? answer.others : []; }

  // Whether it is known what can be chosen.
  function isReady() { return found() !== null; }

  // The ids of a race, the run on screen first.
  function racers() {
    return [store.id, ...runs().map((run) => run.id).filter((id) => store.others.includes(id)).slice(0, MAX_RACERS - 1)];
  }

  // The one other run of a comparison; null where there is none.
  function rival() {
    const known = runs().map((run) => run.id);
    return store.others.find((id) => known.includes(id)) || known[0] || null;
  }

  function speedOf(run) { return run.speedup === null ? "" : " " + run.speedup.toFixed(2) + "\u00d7"; }
  function titleOf(run) { return `${run.title}: ${run.settings}; ${run.num_tokens} tokens`; }

  function drawSeveral(answer) {
    const isFull = store.others.length >= MAX_RACERS - 1;
    const toggle = (id) => store.set({ others: store.others.includes(id) ? store.others.filter((each) => each !== id) : [...store.others, id] });
    return answer.others.map((run) => el("label", { class: "dtx-choice", title: titleOf(run) },
      el("input", { type: "checkbox", "data-run": run.id, checked: store.others.includes(run.id),
        disabled: isFull && !store.others.includes(run.id), change: () => toggle(run.id) }),
      run.label, el("small", {}, (run.is_own ? " your run" : "") + speedOf(run))));
  }

  function drawOne(answer) {
    const chosen = rival();
    return [el("select", { class: "dtx-speed dtx-rival", "aria-label": "The other run",
      change: (event) => store.set({ others: [event.target.value, ...store.others.filter((id) => id !== event.target.value)] }) },
    ...answer.others.map((run) => el("option", { value: run.id, selected: run.id === chosen, title: titleOf(run) },
      run.label + " \u00b7 " + run.title + (run.speedup === null ? "" : " \u00b7" + speedOf(run)))))];
  }

  function draw() {
    bar.hidden = isAlone || !isNeeded();
    if (bar.hidden) return;
    const answer = found(), key = JSON.stringify([store.view === SEVERAL, answer, store.others, rival()]);
    if (key === drawn) return; // a control that has the focus stays
    drawn = key;
    const title = store.view === SEVERAL ? "Race with" : "Compare with";
    if (!answer) fill(bar, store.done ? "Looking for runs of the same prompt \u2026" : "Runs can be shown together when this one has ended.");
    else if (!answer.others.length) fill(bar, answer.sentence);
    else fill(bar, el("b", {}, title), ...(store.view === SEVERAL ? drawSeveral(answer) : drawOne(answer)));
  }

  return { element: bar, see, settle, draw, isReady, racers, rival };
}
