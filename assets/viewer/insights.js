// What the record says beside its steps (moments, panels, races): asked for when something on screen needs it, kept
// afterwards. An answer about a run that still grows is asked for anew when the run has grown.

const MAX_ANSWERS = 300;

function createInsights(adapter, store) {
  const answers = new Map();

  // The answer, or null while it is on its way: then store.insights changes when it is there. A mistake is an answer
  // too: {error: sentence}. ids: the traces it is about, the first one usually store.id.
  function ask(kind, ids = [store.id], step = 0) {
    const growth = store.done || !ids.includes(store.id) ? "" : store.steps.length;
    const key = JSON.stringify([kind, ids, step, growth]);
    if (!answers.has(key)) {
      if (answers.size >= MAX_ANSWERS) answers.delete(answers.keys().next().value);
      answers.set(key, null);
      fetchAnswer(key, kind, ids, step);
    }
    return answers.get(key);
  }

  async function fetchAnswer(key, kind, ids, step) {
    let answer;
    try {
      answer = await adapter.insight(kind, ids, step);
    } catch (error) {
      answer = { error: "This could not be asked for: " + error.message };
    }
    for (const [token, label] of Object.entries(answer.vocab || {})) store.vocab.set(token, label);
    answers.set(key, answer);
    store.set({ insights: store.insights + 1 });
    if (answer.error) answers.delete(key); // said once, asked again when somebody comes back to it
  }

  return { ask };
}
