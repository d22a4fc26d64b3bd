// The race: lanes of measured time on one axis, replayed with a slow-motion clock. The clock moves veils and cursors and
// appends tokens; the spans of a lane are one path for each kind. While the clock is before the end, the tracks show a
// window around it, wide enough for the parts of a step to be seen; at the end they show the whole race.

const TRACK_HEIGHT = 16, AXIS_HEIGHT = 17;
const SPANS = { verify: [0, 16], draft: [4, 12], other: [11, 5], plain: [0, 16] }; // kind -> [y, height] in the track
const SPAN_NAMES = { draft: "draft", verify: "verify", other: "the rest" };
const STEP_PIXELS = 30, HAND = 0.7; // of the quickest lane's mean step in the window; where in it the clock stands
const MAX_CHUNKS = 40; // of a lane's text on screen
const LANE_TOKEN_CELLS = 24;
const CAPTION_NOTES = 2; // that fit the caption; further ones follow the verdicts

function createRace(store, insights, chooser, onPoint) {
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const play = button("dtx-raceplay", "Replay the race (space)", toggle, "");
  const clock = el("input", { type: "range", class: "dtx-clock", min: 0, max: 1, step: "any", value: 0, "aria-label": "Clock of the race",
    input: () => { pause(); move(Number(clock.value)); }, keydown: (event) => { if (event.key === " ") { event.preventDefault(); toggle(); } } });
  const time = el("output", { class: "dtx-racetime" });
  const speed = el("select", { class: "dtx-speed dtx-factor", "aria-label": "Slow motion", change: () => { factor = Number(speed.value); } });
  const rows = el("div", { class: "dtx-lanes" });
  const call = el("p", { class: "dtx-racecall", role: "status" });
  const words = el("ul", { class: "dtx-verdicts", "aria-label": "How fast each run was against plain decoding, and why" });
  const zoom = button("dtx-zoom", "Whole race, or a part of it around the clock", () => { isWide = !isWide; layOut(); }, "whole race");
  const bar = el("div", { class: "dtx-racebar", hidden: true }, play, clock, time, zoom, speed);
  const box = el("div", { class: "dtx-race" }, bar, rows, el("div", { class: "dtx-racewords" }, call, words));
  let race = null, raceOf = null, lanes = [], ms = 0, factor = 1, last = 0, frame = 0, isPlaying = false, width = 0;
  let isWide = false, span = 1, pointed = null; // the whole race wanted; ms across a track; lane under the pointer

  function draw() {
    const answer = chooser.isReady() ? insights.ask("race", chooser.racers()) : null;
    const isKept = !answer && race && !race.error && raceOf === store.id && store.done; // until the next one is there
    if (isKept || (answer === race && race !== null)) return;
    pause();
    [race, raceOf] = [answer, store.id];
    bar.hidden = !race || Boolean(race.error);
    if (!race || race.error) {
      lanes = [];
      fill(rows, el("p", { class: "dtx-empty" }, race ? race.error : store.done ? "Loading \u2026" : "The race is there when this run has ended."));
      fill(call); fill(words);
      return;
    }
    build();
    layOut();
    move(race.duration_ms); // the finished race says most; playing starts it anew
  }

  function build() {
    [factor, pointed] = [race.slow_motion.factor, null];
    fill(speed, ...race.slow_motion.factors.map((value) => el("option", { value, selected: value === factor }, value === 1 ? "real time" : value + "\u00d7 speed")));
    speed.title = race.slow_motion.sentence;
    clock.max = String(race.duration_ms);
    play.hidden = isStill;
    lanes = race.lanes.map(buildLane);
    const key = ["verify", "draft", "other"].map((kind) => el("span", {}, svg("svg", { width: 12, height: 12, "aria-hidden": "true" },
      svg("rect", { class: "dtx-span is-" + kind, x: 0, y: SPANS[kind][0] * 0.7, width: 12, height: SPANS[kind][1] * 0.75 })), SPAN_NAMES[kind]));
    fill(rows, ...lanes.map((lane) => lane.row), el("div", { class: "dtx-lane dtx-axisrow" },
      el("div", { class: "dtx-spankey" }, ...key), svg("svg", { class: "dtx-raceaxis", height: AXIS_HEIGHT, "aria-hidden": "true" }), el("span", {})));
    const labels = race.lanes.filter((lane) => !lane.is_baseline).map((lane) => lane.label);
    fill(words, ...race.verdicts.map((verdict, i) => el("li", { "data-verdict": i }, el("b", {}, labels[i] + ": "), verdict)),
      ...race.notes.slice(CAPTION_NOTES).map((note) => el("li", { class: "dtx-note" }, note)));
  }

  function buildLane(lane, index) {
    const track = svg("svg", { class: "dtx-track", height: TRACK_HEIGHT, "aria-hidden": "true" });
    const done = el("span", { class: "dtx-lanebar" });
    const text = el("span", { class: "dtx-lanetokens" });
    const count = el("b", { class: "dtx-lanecount" });
    const prompt = lane.prefill_ms ? [svg("svg", { width: 13, height: 10, "aria-hidden": "true" },
      svg("rect", { class: "dtx-span is-prefill", x: 0.5, y: 1, width: 9, height: 8 })), `prompt pass ${lane.prefill_ms.toFixed(0)} ms`] : [];
    const row = el("div", { class: "dtx-lane" + (lane.is_baseline ? " is-plain" : ""), "data-lane": index },
      el("div", { class: "dtx-lanename" }, el("b", {}, lane.label), el("small", {}, ...prompt)),
      el("div", { class: "dtx-lanebody" }, track, el("p", { class: "dtx-lanetext" }, text)),
      el("div", { class: "dtx-laneresult" }, count, el("div", { class: "dtx-lanemeter", "aria-hidden": "true" }, done),
        el("small", { class: lane.is_slower ? "is-bad" : "" }, lane.result)));
    row.addEventListener("pointerenter", () => { pointed = lane.trace; onPoint(); });
    row.addEventListener("pointerleave", () => { pointed = null; onPoint(); });
    track.addEventListener("pointerdown", (event) => seek(event, track));
    return { lane, row, track, text, count, done, ends: lane.arrivals.map(([at]) => at), at: -1 };
  }

  function seek(event, track) {
    pause();
    move(clamp((event.clientX - track.getBoundingClientRect().left + offset()) / scale() - lead(), 0, race.duration_ms));
  }

  // The axis begins with the longest prompt pass, so that zero is one line for all lanes.
  function lead() { return Math.max(...race.lanes.map((lane) => lane.prefill_ms)); }
  function whole() { return Math.max(1, race.duration_ms + lead()); }
  function scale() { return width / span; }
  function x(at) { return (at + lead()) * scale(); }
  function offset() { return clamp(x(ms) - HAND * width, 0, (whole() - span) * scale()); }

  function wantedSpan() {
    const steps = race.lanes.map((lane) => lane.arrivals[lane.arrivals.length - 1][0] / Math.max(1, lane.arrivals.length - 1)).filter(Boolean);
    const part = width / STEP_PIXELS * Math.min(...steps, race.duration_ms);
    return isWide || ms >= race.duration_ms ? whole() : Math.min(part, whole());
  }

  function layOut() {
    if (!race || race.error) return;
    width = rows.querySelector(".dtx-lanebody").clientWidth || width;
    if (!width) return;
    span = wantedSpan();
    for (const entry of lanes) {
      const { lane, track } = entry;
      track.setAttribute("width", width);
      entry.veil = svg("rect", { class: "dtx-veil", y: 0, height: TRACK_HEIGHT });
      entry.head = svg("line", { class: "dtx-playhead", y1: 0, y2: TRACK_HEIGHT });
      entry.inside = svg("g", {}, ...Object.keys(SPANS).map((kind) => spanPath(lane, kind)),
        svg("path", { class: "dtx-seams", d: lane.arrivals.slice(1).map(([at]) => `M${x(at).toFixed(2)} 0v${TRACK_HEIGHT}`).join("") }),
        lane.prefill_ms ? svg("rect", { class: "dtx-span is-prefill", x: x(-lane.prefill_ms), y: 4, width: lane.prefill_ms * scale(), height: 8 }) : null,
        entry.veil, svg("line", { class: "dtx-zero", x1: x(0), x2: x(0), y1: 0, y2: TRACK_HEIGHT }), entry.head);
      fill(track, entry.inside);
    }
    drawAxis();
    zoom.setAttribute("aria-pressed", String(isWide));
    move(ms);
  }

  function spanPath(lane, kind) {
    const [y, height] = SPANS[kind];
    let at = 0, d = "", count = 0;
    for (const [name, span] of lane.spans) {
      if (name === kind && span > 0) {
        d += `M${x(at).toFixed(2)} ${y}h${(span * scale()).toFixed(3)}v${height}h${(-span * scale()).toFixed(3)}z`;
        count += 1;
      }
      at += span;
    }
    return count ? svg("path", { class: "dtx-span is-" + kind, d, "data-spans": count }) : null;
  }

  function drawAxis() {
    const axis = rows.querySelector(".dtx-raceaxis");
    const wanted = span / Math.max(2, width / 90);
    const unit = 10 ** Math.floor(Math.log10(Math.max(wanted, 1e-6)));
    const pitch = unit * [1, 2, 5, 10].find((factor) => unit * factor >= wanted);
    const ticks = [];
    for (let at = 0; at <= race.duration_ms; at += pitch) ticks.push(at);
    axis.setAttribute("width", width);
    fill(axis, svg("g", {}, ...ticks.flatMap((at) => [svg("line", { class: "dtx-racetick", x1: x(at), x2: x(at), y1: 0, y2: 4 }),
      svg("text", { class: "dtx-ticklabel", x: x(at), y: 14, "text-anchor": x(at) > whole() * scale() - 16 ? "end" : at ? "middle" : "start" }, seconds(at, pitch))])));
  }

  function seconds(at, pitch) {
    if (race.duration_ms < 1000) return at.toFixed(0) + " ms";
    return (at / 1000).toFixed(Math.max(0, -Math.floor(Math.log10(pitch / 1000) + 1e-9))) + " s";
  }

  // The clock's hand: everything on screen as it was at this moment.
  function move(to) {
    ms = to;
    if (width && Math.abs(wantedSpan() - span) > 1e-6) { layOut(); return; } // which moves here again
    clock.value = String(ms);
    const isOver = ms >= race.duration_ms;
    time.textContent = `${(ms / 1000).toFixed(2)} / ${(race.duration_ms / 1000).toFixed(2)} s`;
    for (const entry of lanes) moveLane(entry);
    if (width) rows.querySelector(".dtx-raceaxis g").setAttribute("transform", `translate(${-offset()} 0)`);
    const said = isOver ? race.sentences.join(" ") : race.calls.filter(([at]) => at <= ms).pop()[1];
    if (call.textContent !== said) call.textContent = said;
    const leader = race.leads.filter(([at]) => at <= ms).pop();
    lanes.forEach((entry, index) => entry.row.classList.toggle("is-leading", Boolean(leader) && leader[1] === index));
    fill(play, icon(isPlaying ? "M3 2h4v12H3zm6 0h4v12H9z" : "M3 1.5 14 8 3 14.5z"));
  }

  function moveLane(entry) {
    const { lane, ends } = entry;
    if (entry.veil) {
      const from = x(Math.min(ms, ends[ends.length - 1]));
      entry.veil.setAttribute("x", from);
      entry.veil.setAttribute("width", Math.max(0, whole() * scale() - from));
      entry.inside.setAttribute("transform", `translate(${-offset()} 0)`);
      entry.head.setAttribute("x1", x(ms));
      entry.head.setAttribute("x2", x(ms));
    }
    let at = entry.at >= 0 && ends[entry.at] <= ms ? entry.at : 0;
    while (at + 1 < ends.length && ends[at + 1] <= ms) at += 1;
    if (at === entry.at) return;
    if (at === entry.at + 1 && entry.text.childElementCount) entry.text.append(chunk(lane, at));
    else fill(entry.text, ...Array.from({ length: Math.min(at + 1, MAX_CHUNKS) }, (_, i) => chunk(lane, at - Math.min(at, MAX_CHUNKS - 1) + i)));
    while (entry.text.childElementCount > MAX_CHUNKS) entry.text.firstChild.remove();
    entry.at = at;
    entry.count.textContent = lane.arrivals[at][1] + (at === ends.length - 1 ? ` in ${(ends[at] / 1000).toFixed(2)} s` : " / " + lane.arrivals[ends.length - 1][1]);
    entry.done.style.width = 100 * lane.arrivals[at][1] / lane.arrivals[ends.length - 1][1] + "%";
    entry.row.classList.toggle("is-there", at === ends.length - 1);
  }

  // What came at one arrival: the tokens of a step, or where the record's text ends, the note that says so.
  function chunk(lane, at) {
    const [from, to] = [at ? lane.arrivals[at - 1][1] : 0, lane.arrivals[at][1]];
    const tokens = lane.tokens.slice(from, to);
    const ends = lane.text_note && from <= lane.tokens.length && to > lane.tokens.length;
    return el("span", { class: "dtx-chunk" + (at % 2 ? " is-odd" : "") },
      ...tokens.map((token) => el("bdi", { class: "dtx-token" }, ...spanParts(shorten(store.label(token), LANE_TOKEN_CELLS)))),
      ends ? el("i", {}, lane.text_note) : null);
  }

  function toggle() {
    if (!race || race.error || isStill) return;
    if (isPlaying) { pause(); return; }
    isPlaying = true;
    last = performance.now();
    move(ms >= race.duration_ms ? 0 : ms);
    frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    if (!isPlaying || box.hidden || !box.isConnected) { pause(); return; }
    const to = Math.min(race.duration_ms, ms + Math.max(0, now - last) * factor);
    last = now;
    if (to >= race.duration_ms) isPlaying = false;
    move(to);
    if (isPlaying) frame = requestAnimationFrame(tick);
  }

  function pause() {
    cancelAnimationFrame(frame);
    if (!isPlaying) return;
    isPlaying = false;
    if (race && !race.error) move(ms);
  }

  watchSize(rows, () => {
    const body = rows.querySelector(".dtx-lanebody");
    if (body && body.clientWidth !== width) layOut();
  });

  // How fast the run under the pointer was, and why; else what these lanes can and cannot tell.
  function caption() {
    if (!race || race.error) return null;
    return pointed === null ? [race.notes.slice(0, CAPTION_NOTES).join(" ")] : [el("b", {}, race.lanes[pointed].label + ". "), race.verdicts[pointed]];
  }

  return { element: box, draw, press: toggle, caption };
}
