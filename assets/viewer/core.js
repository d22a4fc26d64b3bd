// The viewer as a whole. The host's adapter: {element, scheme, current() -> {id, step?, visit?, recorded?, others?, view?},
// load(from, step) -> Promise of view JSON from that step on, holding the other (a long run comes in parts),
// insight(kind, ids, step) -> Promise of insight JSON, onChange(callback), emit(name, data), isAlone?: it has one run,
// isPresented?}; the viewer asks only for steps that it does not have.

const WIDE_ICON = "M1 8l4-4v3h6V4l4 4-4 4V9H5v3z";

function mountViewer(adapter) {
  const root = adapter.element;
  const store = createStore();
  const quitter = new AbortController();
  let isLoading = false, isStale = false, wishedPlace;

  const actions = {
    togglePlay: () => { if (moments.isAsking()) moments.reveal(); else store.set({ playing: !store.playing }); },
    toggleOrder: () => store.set({ order: store.order === "tree" ? "engine" : "tree" }),
    toggleGhosts: () => store.set({ ghosts: !store.ghosts }),
    toggleFold: () => store.set({ fold: !tree.isFolding(), unfolded: new Set() }),
    hasLessons: Boolean(adapter.lesson),
    isAlone: Boolean(adapter.isAlone),
    toggleLessons: () => lessons.toggle(),
    moveLesson: (by) => lessons.move(by),
    toggleHelp: () => { keys.sheet.hidden = !keys.sheet.hidden; },
    toggleFull: () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen().catch(() => {})),
    escape,
    toggleSlow: () => store.set({ slow: !store.slow }),
    togglePresent: () => store.set({ present: !store.present }),
    endQuiz: () => store.set({ quiz: null }),
    quiz: () => { if (moments.isAsking()) moments.reveal(); else moments.ask(moments.told() ? store.at + 1 : store.at); },
    isInTree: () => tree.hasFocus(),
    moveFocus: (direction) => tree.moveFocus(direction),
    pressSpace: () => (views.shown().press || actions.togglePlay)(),
    showView: (name) => { if (views.isOffered(name)) store.set({ view: name }); },
  };
  const insights = createInsights(adapter, store);
  const chooser = createChooser(store, insights, Boolean(adapter.isAlone));
  const moments = createMoments(store, insights);
  const tree = createTree(store, moments, () => legend.draw());
  const legend = createLegend(store, moments, actions.toggleGhosts, actions.toggleFold, tree.isFolding);
  const mask = createMask(store, moments, actions.toggleOrder);
  const card = createCard(store, moments);
  const strip = createStrip(store, moments);
  const momentBar = createMomentBar(store, moments, actions);
  const transport = createTransport(store, moments, actions);
  const keys = createKeys(store, moments, actions);
  const cuts = createCutsPane(store, insights, tree);
  const panes = createSwitch(store, "pane", "Beside the tree", [mask, createPanelPane(store, insights), cuts, createHistogram(store)]);
  const wide = button("dtx-tool dtx-wide", "More room for this, less for the tree (w)", () => store.set({ wide: !store.wide }), icon(WIDE_ICON));
  panes.bar.append(wide);
  const stepView = {
    name: "step", label: "Step", help: "One step: its tree, its mask, its nodes (1)",
    element: el("div", { class: "dtx-main" },
      el("section", { class: "dtx-treebox", "aria-label": "Draft tree" }, tree.element),
      el("div", { class: "dtx-side" }, panes.bar, ...panes.elements), card.element),
    draw: drawStep,
  };
  const views = createSwitch(store, "view", "Views", [stepView, createRunView(store, insights),
    { name: "race", label: "Race", help: "Race: measured time, replayed (3 or r)", ...createRace(store, insights, chooser, () => describe()) },
    { name: "compare", label: "Side by side", help: "Side by side: what another run drafted here (4)", ...createCompare(store, insights, chooser),
      isOffered: () => !adapter.isAlone },
    { name: "diff", label: "Difference", help: "Difference: two runs aligned, gain and loss per step (5)", ...createDiff(store, insights, chooser),
      isOffered: () => !adapter.isAlone }]);
  const lessons = createLessons(adapter, store, root, refresh);
  const numbers = createNumbers(store, el("div", { class: "dtx-tabs" }, lessons.opener, views.bar));
  const caption = el("p", { class: "dtx-caption" });
  const spoken = el("p", { class: "dtx-spoken", "aria-live": "polite" });

  const stage = el("div", { class: "dtx-body" }, numbers.element,
    el("div", { class: "dtx-legendrow" }, legend.element, chooser.element), ...views.elements,
    caption, momentBar.element, transport.element, strip.element, spoken, keys.sheet);
  fill(root, el("style", {}, VIEWER_CSS), el("div", { class: "dtx-layout" }, lessons.element, el("div", { class: "dtx-stage" }, stage)));
  if (adapter.scheme) root.setAttribute("data-scheme", adapter.scheme);

  function drawStep() {
    stepView.element.classList.toggle("is-wide", store.wide);
    wide.setAttribute("aria-pressed", String(store.wide));
    tree.draw();
    if (panes.shown() !== cuts) cuts.leave();
    legend.draw();
    panes.draw();
    card.draw();
  }

  // Every view stands at a step, which the strip and the slider mark.
  function drawView() {
    views.draw();
    chooser.draw();
    legend.element.classList.toggle("is-idle", views.shown() !== stepView);
    strip.mark();
    strip.veil();
    momentBar.mark();
    transport.mark();
    describe();
    strip.link();
  }

  // One thing at a time: the sheet, the selection, the quiz, the moment.
  function escape() {
    if (tree.hasFocus()) root.focus({ preventScroll: true });
    if (!keys.sheet.hidden) keys.sheet.hidden = true;
    else if (store.active() !== null || store.lit) store.set({ pin: null, hover: null, lit: null, column: null });
    else if (store.quiz) store.set({ quiz: null });
    else store.set({ moment: null });
  }

  function drawLinks() {
    tree.link();
    panes.link();
    strip.link();
    card.draw();
    describe();
  }

  // The caption tells the moment, the step, or the node under the pointer; the live region speaks moments, steps and
  // keyboard focus only.
  function describe() {
    const step = store.step(), board = moments.board(), active = board ? store.hover : store.active();
    const own = step && views.shown().caption ? views.shown().caption() : null; // a view may have its own
    if (own) fill(caption, ...own);
    else if (!step || store.message || moments.fault()) caption.textContent = step ? store.message || moments.fault() : "";
    else if (moments.isAsking() || (board && active === null && store.column === null)) describeMoment(board);
    else if (active === null && store.column !== null) describeColumn(step);
    else if (active === null) tell("Step " + (store.at + 1) + ".", step.captions[0], timesOf(step));
    else describeNode(step, board, active);
  }

  function describeColumn(step) {
    fill(caption, el("b", {}, el("bdi", {}, shorten(store.label(modelOf(step).token[store.column]), 24)), ": "), visibilityOf(step, store.column), ".");
  }

  function tell(title, text, small) { fill(caption, el("b", {}, title + " "), text, small ? el("small", {}, small) : null); }

  function describeMoment(board) {
    const told = moments.told(), { ms } = board.now, { pin } = store;
    if (moments.isAsking()) {
      const guess = pin === null ? null : "your guess: " + shorten(store.label(modelOf(board.step).token[pin]), 24);
      tell("Quiz.", moments.question().question, guess);
    } else if (told && board.kind === "next") tell(told.text || "Here it is.", board.step.captions[0]);
    else tell(titleOf(board) + ".", board.now.caption, ms === null ? null : milliseconds(ms));
  }

  function describeNode(step, board, active) {
    const model = modelOf(step), state = board && board.states[active];
    const isTold = moments.isTold(board, active), attention = !board || board.isFlat ? attentionOf(step, active) : "";
    const why = isTold ? reasonOf(step, active) : (STATE_NAMES[state] || "not there yet") + ".";
    fill(caption, el("b", {}, el("bdi", {}, shorten(store.label(model.token[active]), 24)), ": "), why, attention ? " " + attention + "." : "");
  }

  function timesOf(step) {
    const { draft, verify, commit, other } = step.ms;
    const total = draft.reduce((sum, each) => sum + each, 0);
    return `draft ${total.toFixed(1)} ms \u00b7 verify ${verify.toFixed(1)} ms \u00b7 rest ${(commit + other).toFixed(1)} ms`;
  }

  function speak(changed) {
    const step = store.step();
    if (!step) return;
    if (changed.has("announce") && store.announce !== null) spoken.textContent = caption.textContent;
    else if (moments.board()) {
      if (["at", "moment", "insights", "quiz"].some((field) => changed.has(field))) spoken.textContent = caption.textContent;
    } else if (changed.has("at")) spoken.textContent = "Step " + (store.at + 1) + ". " + step.captions[0];
  }

  store.onChange((changed) => {
    const has = (...names) => names.some((name) => changed.has(name));
    if (has("header", "facts")) numbers.draw();
    if (has("header")) strip.draw();
    if (has("steps")) { strip.append(); transport.draw(); }
    if (has("view", "insights", "id", "done")) chooser.settle();
    if (has("present")) root.classList.toggle("is-presenting", store.present);
    if (has("at", "steps", "ghosts", "fold", "unfolded", "message", "view", "pane", "insights", "wide", "cut", "others", "own",
      "moment", "present", "quiz", "demo")) drawView();
    else if (has("hover", "pin", "lit", "column")) drawLinks();
    if (has("slow")) momentBar.mark();
    if (has("order")) mask.reorder();
    if (has("playing", "speed", "done", "follow")) transport.mark();
    if (has("playing", "speed", "slow")) transport.beat();
    speak(changed);
    if (has("pin") && store.pin !== null) adapter.emit("node_select", { step: store.at, index: store.pin });
    if (has("at")) adapter.emit("step_select", { step: store.at });
    if (has("present")) adapter.emit("present_change", { on: store.present });
  });

  function merge(payload, wished) {
    for (const [token, label] of Object.entries(payload.vocab)) store.vocab.set(token, label);
    const steps = store.steps.slice(0, payload.from).concat(payload.steps), isWhole = steps.length >= payload.num_steps;
    const last = steps.length - 1;
    const start = wished === undefined ? store.at : wished;
    const isFollowing = store.header === null ? !payload.done : store.follow && !store.done;
    const at = clamp(isFollowing ? last : start, 0, Math.max(0, last));
    store.set({
      ...(payload.header && !store.ended ? { header: payload.header } : {}),
      facts: payload.facts, steps, done: payload.done && isWhole, ended: payload.done, message: "",
      follow: isFollowing, at, hover: null, lit: null, column: null,
      ...(at === store.at ? {} : { pin: null, unfolded: new Set(), moment: null }),
    });
    return isWhole;
  }

  // One request at a time; a change that comes meanwhile is looked at when the answer is in. A long run comes in parts.
  async function refresh() {
    if (isLoading) { isStale = true; return; }
    isLoading = true;
    do {
      isStale = false;
      const current = adapter.current(), { id = null, step } = current, place = step + "/" + current.visit;
      const isNew = id !== store.id, isSent = isNew || place !== wishedPlace; // the host may send it to another step
      wishedPlace = place; // or, on another visit, to the same one again
      if (isNew) reset(id);
      chooser.see(current);
      if (id === null) { store.set({ message: "No run is open." }); break; }
      try {
        const payload = await adapter.load(store.steps.length, step);
        if ((adapter.current().id ?? null) !== id) isStale = true;
        else if (payload.error) store.set({ message: payload.error });
        else if (!merge(payload, isSent ? step : undefined)) isStale = true;
      } catch (error) {
        store.set({ message: "This run could not be loaded: " + error.message });
      }
    } while (isStale && root.isConnected);
    isLoading = false;
  }

  function reset(id) {
    store.vocab.clear();
    store.set({ id, header: null, facts: [], steps: [], done: false, ended: false, message: "Loading \u2026", at: 0, hover: null,
      lit: null, column: null, pin: null, follow: true, playing: false, unfolded: new Set(), moment: null, quiz: null });
  }

  document.addEventListener("keydown", (event) => {
    if (root.isConnected) keys.handle(event, root);
    else quitter.abort();
  }, { signal: quitter.signal });
  adapter.onChange(refresh);
  if (adapter.isPresented) queueMicrotask(() => store.set({ present: true })); // when the host has its listeners
  const ready = refresh();
  return { store, refresh, ready };
}
