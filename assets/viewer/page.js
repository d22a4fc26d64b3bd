// On the app's page, after the viewer: the address bar follows what is shown, and what is on screen can be taken away,
// as a file or as a link. Files are made in the browser from the server's answer: nothing is written on the server.

const FORM_PARAMETERS = ["prompt", "system", "method", "target", "drafter", "max_new_tokens", "adaptive", "temperature",
  "top_p", "top_k", "seed", "acceptance"];
const PICTURE_SCALE = 2, MAX_PICTURE_SIDE = 8192; // pixels per px; pixels that every browser's canvas takes

const shownRun = () => JSON.parse(props.value || "{}");
let lesson = null; // {lesson, stop} while one runs

function replaceAddress(address) {
  // Safari throws above a hundred changes in thirty seconds; a link that lags must not stop the viewer.
  try { window.history.replaceState(null, "", address); } catch (error) { return; }
}

// A recorded trace has a name that anybody may know; the address of a visitor's own run says nothing of it.
function showAddress() {
  const { id, recorded } = shownRun(), { store } = pageViewer;
  if (lesson) return;
  if (recorded && id !== store.id) return; // the viewer is about to show it
  const address = new URL(window.location.href), query = address.searchParams;
  for (const [name, value] of [["trace", id], ["step", store.at + 1], ["view", store.view === "step" ? null : store.view]]) {
    if (recorded && value !== null) query.set(name, value);
    else query.delete(name);
  }
  if (!recorded) for (const name of [...query.keys()]) if (FORM_PARAMETERS.includes(name) || name.startsWith("set.")) query.delete(name);
  replaceAddress(address);
}

async function ask(serverFunction, request) {
  const answer = JSON.parse(await serverFunction(JSON.stringify(request)));
  if (answer.error) throw new Error(answer.error);
  return answer;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function drawPicture(drawing) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([drawing], { type: "image/svg+xml" }));
  await image.decode();
  const scale = Math.min(PICTURE_SCALE, MAX_PICTURE_SIDE / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(scale * image.width), Math.round(scale * image.height)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("This browser cannot draw a picture of that size: take the SVG.");
  return blob;
}

async function takeFile(kind) {
  const { store } = pageViewer, isPicture = kind === "png";
  const scheme = document.body.classList.contains("dark") ? "dark" : "light";
  const request = { id: store.id, kind: isPicture ? "svg" : kind, step: store.at + 1, scheme, ghosts: store.ghosts };
  const { name, type, text } = await ask(server.get_export, request);
  if (isPicture) save(await drawPicture(text), name.replace(/svg$/, "png"));
  else save(new Blob([text], { type }), name);
  return "Saved " + (isPicture ? name.replace(/svg$/, "png") : name) + ".";
}

async function copyLink() {
  const { store } = pageViewer;
  const { query } = await ask(server.get_link, { id: store.id, step: store.at + 1 });
  const address = new URL(window.location.href);
  const page = shell.dataset.page || ""; // links lead to the first page
  address.pathname = address.pathname.slice(0, address.pathname.length - page.length);
  address.search = query;
  address.hash = "";
  try {
    await navigator.clipboard.writeText(address.href);
  } catch (error) { // no clipboard on an unencrypted page, or none that may be written
    window.prompt("Copy this link:", address.href);
    return "";
  }
  return "Link copied.";
}

// The buttons stand outside the viewer's element: they send it an event with a function to tell how it went.
document.querySelector("#viewer").addEventListener("explorer-take", async (event) => {
  const { kind, tell } = event.detail;
  try {
    if (pageViewer.store.id === null) throw new Error("No run is open.");
    tell(await (kind === "link" ? copyLink() : takeFile(kind)), false);
  } catch (error) {
    tell(error.message, true);
  }
});
// Until the server has looked at the address, it stays as it was typed; elsewhere the viewer comes after that.
let isOpened = Boolean(shell.dataset.page);
watch("value", () => { isOpened = true; showAddress(); });
pageViewer.store.onChange((changed) => {
  if (changed.has("at") || changed.has("view") || (isOpened && changed.has("header"))) showAddress();
});
const wishedView = new URLSearchParams(window.location.search).get("view");
if (wishedView && /^[a-z]{1,20}$/.test(wishedView)) pageViewer.ready.then(() => pageViewer.store.set({ view: wishedView }));

// Presenter mode shows the viewer alone; the address keeps it.
element.addEventListener("present_change", (event) => {
  document.body.classList.toggle("is-presenting", event.detail.on);
  const address = new URL(window.location.href);
  if (event.detail.on) address.searchParams.set("present", "1");
  else address.searchParams.delete("present");
  replaceAddress(address);
});

// While a lesson runs, its stop is the address, and what belongs to the page's own run is out of sight.
element.addEventListener("lesson_select", (event) => {
  lesson = event.detail.lesson === null ? null : event.detail;
  document.body.classList.toggle("in-lesson", lesson !== null);
  const address = new URL(window.location.href);
  for (const name of ["trace", "step", "view", "lesson", "stop"]) address.searchParams.delete(name);
  if (lesson) {
    address.searchParams.set("lesson", lesson.lesson + 1);
    address.searchParams.set("stop", lesson.stop + 1);
  }
  replaceAddress(address);
});
