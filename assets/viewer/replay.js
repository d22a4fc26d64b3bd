// On a page of its own: all steps lie in the page as JSON; the address may name one, counted from 1, and the presenter
// mode (#step=12&present).

const replay = JSON.parse(document.getElementById("replay").textContent);
const shell = document.querySelector(".dtx");
const schemeButton = document.getElementById("scheme");
const shown = { step: replay.start, present: false };
const addressParts = () => new URLSearchParams(location.hash.slice(1));

function stepInAddress() {
  const step = addressParts().get("step");
  return step !== null && /^\d{1,6}$/.test(step) ? Math.max(0, Number(step) - 1) : null;
}

function showAddress() {
  try {
    history.replaceState(null, "", "#step=" + (shown.step + 1) + (shown.present ? "&present" : ""));
  } catch {
    // Safari allows a hundred changes in half a minute, a sandboxed frame none; the replay goes on without.
  }
}

// As inside Gradio: a class of the body makes the viewer dark. The page around it takes the viewer's colours.
function setScheme(isDark) {
  document.body.classList.toggle("dark", isDark);
  const { backgroundColor, color, colorScheme } = getComputedStyle(shell);
  Object.assign(document.body.style, { backgroundColor, color, colorScheme });
  schemeButton.textContent = isDark ? "light" : "dark";
}

// What the page knows of its one run; nothing of others.
function insightInPage(kind, ids, step) {
  if (ids.length !== 1 || ids[0] !== replay.id) return null;
  return kind === "step" ? replay.insights.steps[step] : replay.insights[kind];
}

const replayViewer = mountViewer({
  element: shell,
  isAlone: true, // no other run is in the file
  current: () => ({ id: replay.id, step: stepInAddress() ?? replay.start }),
  load: async () => replay,
  insight: async (kind, ids, step) => insightInPage(kind, ids, step) || { error: "A replay holds one run: other runs are in the explorer." },
  onChange: () => {},
  isPresented: addressParts().has("present"),
  emit: (name, data) => {
    if (name === "step_select") shown.step = data.step;
    else if (name === "present_change") shown.present = data.on;
    else return;
    document.body.classList.toggle("is-presenting", shown.present);
    showAddress();
  },
});
const systemScheme = matchMedia("(prefers-color-scheme: dark)");
setScheme(systemScheme.matches);
systemScheme.addEventListener("change", () => setScheme(systemScheme.matches));
schemeButton.addEventListener("click", () => setScheme(!document.body.classList.contains("dark")));
addEventListener("hashchange", () => {
  const step = stepInAddress();
  replayViewer.store.set({ present: addressParts().has("present") });
  if (step !== null && step !== replayViewer.store.at) replayViewer.store.go(step);
});
