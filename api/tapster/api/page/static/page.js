// The little that the server can't render: the reply as it streams in, keys, and what to do when the server is gone.
(() => {
  const byId = id => document.getElementById(id);
  const offline = isOffline => { byId("offline").hidden = !isOffline; };
  document.body.addEventListener("htmx:beforeRequest", () => { byId("notice").replaceChildren(); });
  document.body.addEventListener("htmx:sendError", () => offline(true));
  document.body.addEventListener("htmx:afterOnLoad", () => offline(false));

  const root = document.querySelector("[data-stream]");
  if (!root) return;
  const live = byId("live"), said = live.querySelector(".text"), messages = byId("messages"), text = byId("text");
  const form = byId("chat");
  // Who sees the end of the conversation keeps seeing it; who has scrolled up isn't moved.
  const seesEnd = () => form.getBoundingClientRect().bottom <= innerHeight + 4;
  const keepEnd = didSee => { if (didSee) form.scrollIntoView({ block: "nearest" }); };
  // On a small screen the conversation comes first once something is bound.
  const bindings = byId("bindings-box");
  bindings.open = !("foldable" in bindings.dataset && matchMedia("(max-width: 52rem)").matches);
  const refresh = () => htmx.trigger(messages, "tapster:refresh");
  const clear = () => { live.hidden = true; said.textContent = ""; };
  const source = new EventSource(root.dataset.stream);
  let isInterrupted = false;
  source.addEventListener("open", () => {
    offline(false);
    if (isInterrupted && !live.hidden) said.append(" … ");
    isInterrupted = false;
  });
  source.addEventListener("error", () => {
    // Unless the server refused, the browser connects again by itself and says where it was.
    isInterrupted = true;
    offline(true);
  });
  source.addEventListener("chunk", event => {
    const { chunk } = JSON.parse(event.data);
    if (chunk.type !== "text-delta") return;
    const didSee = seesEnd();
    live.hidden = false;
    said.append(chunk.text);
    keepEnd(didSee);
  });
  const shown = new Set(["user/message", "assistant/message", "assistant/attempt", "agent/inbox/spliced", "turn/start", "turn/end"]);
  let stored = 0;
  source.addEventListener("event", event => {
    const { type } = JSON.parse(event.data);
    if (type === "assistant/message") stored = said.textContent.length;
    if (type === "assistant/attempt") clear();
    if (shown.has(type)) refresh();
  });
  source.addEventListener("reset", () => location.reload());
  // The streamed copy goes when the durable one is there, in the same step: nothing flickers, nothing is there twice.
  let didSee = false;
  messages.addEventListener("htmx:beforeSwap", () => { didSee = seesEnd(); });
  messages.addEventListener("htmx:afterSwap", () => {
    if (stored) said.textContent = said.textContent.slice(stored);
    stored = 0;
    live.hidden = !said.textContent;
    keepEnd(didSee);
  });

  form.addEventListener("htmx:afterRequest", event => {
    const { elt, successful, requestConfig } = event.detail;
    if (elt === form && successful && requestConfig.formData.get("text") === text.value) text.value = "";
  });
  text.addEventListener("keydown", event => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit(byId("send"));
  });
})();
