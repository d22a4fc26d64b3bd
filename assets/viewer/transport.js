// Moving through the steps: a native slider over the accepted lengths, play, speed, follow.

const SPEEDS = [0.5, 1, 2, 4];
const STEP_MS = 1000;
const THUMB = 14, SPARK_HEIGHT = 26;

function createTransport(store, moments, actions) {
  const bars = svg("svg", { class: "dtx-spark", "aria-hidden": "true", preserveAspectRatio: "none" });
  const range = el("input", { type: "range", class: "dtx-range", min: 0, max: 0, step: 1, value: 0, "aria-label": "Step",
    input: () => store.go(Number(range.value)) });
  const count = el("output", { class: "dtx-stepcount" });
  const play = button("dtx-play", "Play or pause (space)", actions.togglePlay);
  const speed = el("select", { class: "dtx-speed", title: "Playing speed ([ and ])", "aria-label": "Playing speed",
    change: () => store.set({ speed: Number(speed.value) }) },
  ...SPEEDS.map((value) => el("option", { value }, value + "\u00d7")));
  const live = button("dtx-live", "Follow the newest step (End)", () => store.go(store.steps.length - 1), "live");
  const bar = el("div", { class: "dtx-transport" },
    button("dtx-prev", "Step back (left arrow)", () => store.go(store.at - 1), icon("M11 2 4 8l7 6z")), play,
    button("dtx-next", "Step on (right arrow)", () => store.go(store.at + 1), icon("M5 2l7 6-7 6z")),
    el("div", { class: "dtx-scrub" }, bars, range), count, live, speed,
    button("dtx-full", "Full screen (f)", actions.toggleFull, icon("M2 2h5v2H4v3H2zm7 0h5v5h-2V4H9zM2 9h2v3h3v2H2zm10 0h2v5H9v-2h3z")),
    button("dtx-helpbutton", "Keys (?)", actions.toggleHelp, "?"));
  let timer = null, width = 300, parts = []; // [own, accepted] of each step

  function depthOf(step) { return Math.max(0, ...step.col.filter((_, row) => step.state[row] !== "window")); }

  function draw() {
    const steps = store.steps, total = steps.length;
    range.max = String(Math.max(0, total - 1));
    range.disabled = total < 2;
    const deepest = steps.reduce((most, step) => Math.max(most, step.path.length), 2);
    const unit = SPARK_HEIGHT / deepest, pitch = total > 1 ? (width - THUMB) / (total - 1) : 0;
    const thick = clamp(pitch * 0.7, 1, 9);
    bars.setAttribute("viewBox", `0 0 ${width} ${SPARK_HEIGHT}`);
    while (parts.length > total) parts.pop().forEach((bar) => bar.remove());
    while (parts.length < total) parts.push(drawBars(parts.length));
    steps.forEach((step, i) => { // a run that grows moves its bars, it does not make them anew
      const [own, accepted] = parts[i], x = THUMB / 2 + i * pitch - thick / 2, height = (step.path.length - 1) * unit;
      place(own, x, thick, SPARK_HEIGHT - unit, unit);
      place(accepted, x, thick, SPARK_HEIGHT - unit - height, height);
    });
    mark();
  }

  function drawBars(index) {
    const both = ["own", "accepted"].map((kind) => svg("rect", { class: "dtx-sparkbar is-" + kind, "data-bar": index }));
    bars.append(...both);
    return both;
  }

  function place(bar, x, width, y, height) {
    for (const [name, value] of Object.entries({ x, width, y, height })) bar.setAttribute(name, value.toFixed(2));
  }

  function mark() {
    const step = store.step(), total = store.steps.length;
    range.value = String(store.at);
    count.textContent = total ? `step ${store.at + 1} / ${total}` : "no step yet";
    const isSecret = moments.isSecret(), end = isSecret ? "" : `, ${step ? step.path.length - 1 : 0} of ${step ? depthOf(step) : 0} levels accepted`;
    range.setAttribute("aria-valuetext", step ? `step ${store.at + 1} of ${total}${end}` : "no step yet");
    parts.forEach((both, at) => both.forEach((bar) => {
      bar.classList.toggle("is-current", at === store.at);
      bar.classList.toggle("is-hidden", store.quiz !== null && (at > store.at || (at === store.at && isSecret)));
    }));
    live.hidden = store.ended;
    live.setAttribute("aria-pressed", String(store.follow));
    speed.value = String(store.speed);
    fill(play, icon(store.playing ? "M3 2h4v12H3zm6 0h4v12H9z" : "M3 1.5 14 8 3 14.5z"));
    play.setAttribute("aria-pressed", String(store.playing));
  }

  // The clock of playing: one step per beat, or one moment, ending at the last one of a finished run.
  function beat() {
    clearTimeout(timer);
    timer = null;
    if (!store.playing) return;
    timer = setTimeout(() => {
      if (!bar.isConnected) return;
      if (store.slow) moments.tick();
      else if (store.at < store.steps.length - 1) store.go(store.at + 1);
      else if (store.done) store.set({ playing: false });
      beat();
    }, (store.slow ? moments.pause() : STEP_MS) / store.speed);
  }

  watchSize(range, (size) => {
    if (size.width === width) return;
    width = size.width;
    draw();
  });
  bars.addEventListener("pointerdown", (event) => {
    const share = (event.clientX - bars.getBoundingClientRect().left - THUMB / 2) / Math.max(1, bars.clientWidth - THUMB);
    store.go(Math.round(share * (store.steps.length - 1)));
  });

  return { element: bar, draw, mark, beat };
}
