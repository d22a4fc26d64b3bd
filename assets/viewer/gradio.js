// Inside gr.HTML: the component's value is a short handle, JSON text {id, step?}; steps come by the server function.

mountViewer({
  element: element.querySelector(".dtx"),
  current: () => JSON.parse(props.value || "{}"),
  load: async (from) => JSON.parse(await server.get_view(JSON.stringify({ id: JSON.parse(props.value).id, from }))),
  insight: async (insight, ids, step) => JSON.parse(await server.get_insight(JSON.stringify({ insight, ids, step }))),
  onChange: (callback) => watch("value", callback),
  isPresented: new URLSearchParams(window.location.search).get("present") === "1",
  emit: (name, data) => {
    element.dispatchEvent(new CustomEvent(name, { detail: data }));
    trigger(name, data);
  },
});
