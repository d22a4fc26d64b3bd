// On a page of its own: all steps lie in the page as JSON; the address may name one (#step=12, counted from 0).

const replay = JSON.parse(document.getElementById("replay").textContent);
const shell = document.querySelector(".dtx");
const schemeButton = document.getElementById("scheme");

function stepInAddress() {
  const found = /^#step=(\d{1,6})$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

function showAddress(step) {
  try {
    history.replaceState(null, "", "#step=" + step);
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

const replayViewer = mountViewer({
  element: shell,
  isAlone: true, // no other run is in the file
  current: () => ({ id: replay.id, step: stepInAddress() ?? replay.start }),
  load: async () => replay,
  insight: async (kind, ids, step) => (kind === "step" ? replay.insights.steps[step] : replay.insights[kind])
    || { error: "This replay does not hold the answer." },
  onChange: () => {},
  emit: (name, data) => { if (name === "step_select") showAddress(data.step); },
});
const systemScheme = matchMedia("(prefers-color-scheme: dark)");
setScheme(systemScheme.matches);
systemScheme.addEventListener("change", () => setScheme(systemScheme.matches));
schemeButton.addEventListener("click", () => setScheme(!document.body.classList.contains("dark")));
addEventListener("hashchange", () => {
  const step = stepInAddress();
  if (step !== null && step !== replayViewer.store.at) replayViewer.store.go(step);
});
