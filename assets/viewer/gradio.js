// Inside gr.HTML: the component's value is a short handle, JSON text {id, step?}; steps come by the server function.
// A lesson lends the viewer another run, without the page's own value being touched.

const shell = element.querySelector(".dtx");
const numberInAddress = (name) => Math.floor(Number(new URL(window.location.href).searchParams.get(name))) || 0;
let lent = null;

function lessonInAddress() {
  const lesson = numberInAddress("lesson");
  return lesson > 0 ? { lesson: lesson - 1, stop: Math.max(0, numberInAddress("stop") - 1) } : null;
}

const current = () => lent || JSON.parse(props.value || "{}");

const pageViewer = mountViewer({
  element: shell,
  current,
  load: async (from, step) => JSON.parse(await server.get_view(JSON.stringify({ id: current().id, from, step: step || 0 }))),
  insight: async (insight, ids, step) => JSON.parse(await server.get_insight(JSON.stringify({ insight, ids, step }))),
  ...(shell.dataset.lessons ? {
    lesson: async (lesson, stop) => JSON.parse(await server.get_lesson(JSON.stringify({ lesson, stop }))),
    open: (id, step) => { lent = id === null ? null : { id, step, recorded: true }; },
    firstLesson: lessonInAddress(),
  } : {}),
  onChange: (callback) => watch("value", callback),
  isPresented: new URLSearchParams(window.location.search).get("present") === "1",
  emit: (name, data) => {
    element.dispatchEvent(new CustomEvent(name, { detail: data }));
    trigger(name, data);
  },
});
