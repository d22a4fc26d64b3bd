// Lessons: a column beside the viewer that says what to look at and leads from stop to stop. A stop is JSON from
// explorer/views/lessons.py; the host lends the viewer the stop's run (adapter.open) and gets its own back at the end.

// Where the parts are that a stop may point at; "fact:NAME" is one of the headline numbers.
const LOOKS = { tree: ".dtx-treebox", pane: ".dtx-side", card: ".dtx-card", caption: ".dtx-caption", facts: ".dtx-facts",
  legend: ".dtx-legend", strip: ".dtx-strip", transport: ".dtx-scrub", pruned: ".dtx-ghostswitch", order: ".dtx-order",
  endings: ".dtx-runpart:nth-of-type(1)", budgets: ".dtx-runpart:nth-of-type(2)" };

function createLessons(adapter, store, root, refresh) {
  const picker = el("select", { class: "dtx-lesson-picker", "aria-label": "Lesson", change: () => go(Number(picker.value), 0) });
  const dots = el("ol", { class: "dtx-lesson-dots", "aria-label": "Stops of this lesson" });
  const title = el("h2", { class: "dtx-lesson-title", tabindex: -1 });
  const body = el("div", { class: "dtx-lesson-body", "aria-live": "polite", tabindex: 0, role: "region", "aria-label": "Lesson text" });
  const back = button("dtx-lesson-back", "Previous stop (Shift + n)", () => move(-1), "Previous");
  const next = button("dtx-lesson-next", "Next stop (n)", () => move(1), "Next");
  const count = el("span", { class: "dtx-lesson-count" });
  const column = el("aside", { class: "dtx-lesson", "aria-label": "Lesson", hidden: true },
    el("div", { class: "dtx-lesson-head" }, picker, button("dtx-lesson-close", "End the lesson (l)", close, "\u2715")),
    dots, body, el("div", { class: "dtx-lesson-foot" }, back, count, next));
  const opener = button("dtx-tab dtx-lessons", "Lessons: a guided tour on recorded runs (l)", toggle, "Lessons");
  opener.hidden = !adapter.lesson;
  let stop = null, before = null, pending = null, last = { lesson: 0, stop: 0 };

  function toggle() {
    if (!adapter.lesson) return;
    if (store.lesson) close();
    else go(last.lesson, last.stop).then(() => title.focus({ preventScroll: true }));
  }

  // The run on screen is replaced when the stop's run is there; until then the old stop stays.
  async function go(lesson, number) {
    if (!store.lesson) before = memory();
    store.set({ lesson: { lesson, stop: number } });
    column.hidden = false;
    column.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await adapter.lesson(lesson, number);
    } catch (error) {
      answer = { error: "This lesson could not be loaded: " + error.message };
    }
    if (!store.lesson || store.lesson.lesson !== lesson || store.lesson.stop !== number) return;
    column.setAttribute("aria-busy", "false");
    if (answer.error && !stop && lesson + number > 0) { go(0, 0); return; } // an old link to a stop that is no more
    if (answer.error) { fill(body, el("p", { class: "dtx-lesson-error" }, answer.error)); return; }
    stop = answer;
    last = { lesson, stop: number };
    for (const [token, label] of Object.entries(stop.vocab)) store.vocab.set(token, label);
    draw();
    adapter.emit("lesson_select", { lesson, stop: number });
    lend(stop.trace, { ...stop, at: stop.step });
  }

  function memory() {
    const { id, at, view, pane, order, ghosts, fold } = store;
    return { id, at, view, pane, order, ghosts, fold };
  }

  // Show a run and stand at a place in it, at once or when it has come.
  function lend(id, place) {
    pending = { id, place };
    adapter.open(id, place.at);
    if (!settle()) refresh();
  }

  function settle() {
    if (!pending || store.id !== pending.id || !store.header || store.steps.length <= pending.place.at) return false;
    const { place } = pending;
    pending = null;
    for (const [token, label] of Object.entries(place.vocab || {})) store.vocab.set(token, label);
    store.set({ at: place.at, view: place.view, pane: place.pane, order: place.order, ghosts: place.ghosts, fold: place.fold ?? null,
      demo: place.demo ?? null, hover: null, pin: place.pin ?? null, unfolded: new Set(), follow: false, playing: false,
      ...("others" in store && place.others ? { others: place.others } : {}) });
    if ("moment" in store) store.set({ moment: place.moment ?? null }); // after the step, whose change would clear it
    point();
    return true;
  }

  function close() {
    if (!store.lesson) return;
    column.hidden = true;
    stop = null;
    const { id, at, ...rest } = before;
    store.set({ lesson: null, demo: null, pin: null, ...rest });
    point();
    adapter.emit("lesson_select", { lesson: null, stop: null });
    adapter.open(null);
    pending = id !== null && adapter.current().id === id ? { id, place: before } : null;
    if (!settle()) refresh();
    opener.focus({ preventScroll: true });
  }

  function move(by) {
    const target = stop && neighbour(by);
    if (target) go(...target);
  }

  // The stop before or after this one, over the ends of lessons; null at the ends of the tour.
  function neighbour(by) {
    const number = stop.stop + by, lesson = stop.lesson + by;
    if (number >= 0 && number < stop.lessons[stop.lesson].stops.length) return [stop.lesson, number];
    if (lesson < 0 || lesson >= stop.lessons.length) return null;
    return [lesson, by > 0 ? 0 : stop.lessons[lesson].stops.length - 1];
  }

  function draw() {
    const stops = stop.lessons[stop.lesson].stops;
    fill(picker, ...stop.lessons.map((each, i) => el("option", { value: i }, (i + 1) + ". " + each.title)));
    picker.value = String(stop.lesson);
    fill(dots, ...stops.map((name, i) => el("li", {}, el("button", { type: "button", class: "dtx-lesson-dot", title: name,
      "aria-label": "Stop " + (i + 1) + ": " + name, "aria-current": i === stop.stop ? "step" : null, click: () => go(stop.lesson, i) }))));
    title.textContent = stop.title;
    fill(body, title, el("p", { class: "dtx-lesson-text" }, stop.text), drawTable(),
      el("p", { class: "dtx-lesson-todo" }, el("b", {}, "Try it. "), stop.todo),
      el("pre", { class: "dtx-lesson-formula", "aria-label": "Formula" }, stop.formula.join("\n")));
    body.scrollTop = 0;
    count.textContent = (stop.stop + 1) + " / " + stops.length;
    const following = neighbour(1);
    next.textContent = following && following[0] !== stop.lesson ? "Next lesson" : "Next";
    next.disabled = !following;
    back.disabled = !neighbour(-1);
  }

  function drawTable() {
    if (!stop.table) return null;
    const { head, rows } = stop.table;
    return el("table", { class: "dtx-lesson-table" },
      el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell))))));
  }

  // Outline what the stop speaks of.
  function point() {
    for (const each of root.querySelectorAll(".is-pointed")) each.classList.remove("is-pointed");
    for (const name of stop && store.lesson ? stop.look : []) {
      const selector = name.startsWith("fact:") ? `[data-fact="${name.slice(5)}"]` : LOOKS[name];
      for (const each of root.querySelectorAll(selector)) each.classList.add("is-pointed");
    }
  }

  store.onChange((changed) => {
    if (["id", "header", "steps"].some((name) => changed.has(name))) settle();
    if (["header", "facts", "insights"].some((name) => changed.has(name))) queueMicrotask(point); // once that is drawn anew
    opener.setAttribute("aria-pressed", String(store.lesson !== null));
  });
  if (adapter.lesson && adapter.firstLesson) go(adapter.firstLesson.lesson, adapter.firstLesson.stop);

  return { element: column, opener, toggle, move, isOffered: () => Boolean(adapter.lesson) };
}
