// Pictures that take turns in one place: the views in the viewer's middle, the panes beside the tree. Each part is
// {name, label, help, element, draw(), link?(), isOffered?(), tools?}; only the shown one is drawn. tools: its buttons,
// at the end of the row of tabs.

function createSwitch(store, field, title, parts) {
  const tabs = new Map(parts.map((part) => [part.name, button("dtx-tab", part.help, () => store.set({ [field]: part.name }), part.label)]));
  for (const [name, tab] of tabs) tab.dataset[field] = name;
  const bar = el("div", { class: "dtx-tabs", role: "group", "aria-label": title }, ...tabs.values(),
    ...parts.map((part) => part.tools));

  function has(part) { return !part.isOffered || part.isOffered(); }

  function shown() { return parts.find((part) => part.name === store[field] && has(part)) || parts[0]; }

  // Which tab is pressed, which part is there; parts that a run has nothing for are not offered.
  function mark() {
    for (const part of parts) {
      part.element.hidden = part !== shown();
      if (part.tools) part.tools.hidden = part !== shown();
      tabs.get(part.name).hidden = !has(part);
      tabs.get(part.name).setAttribute("aria-pressed", String(part === shown()));
    }
  }

  function draw() {
    mark();
    shown().draw();
  }

  function link() { if (shown().link) shown().link(); }

  return { bar, elements: parts.map((part) => part.element), mark, draw, link, shown,
    isOffered: (name) => parts.some((part) => part.name === name && has(part)) };
}
