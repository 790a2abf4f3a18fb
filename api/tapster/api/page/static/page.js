// Live replies: chunks are shown as they arrive; every durable event refreshes the transcript.
(() => {
  const root = document.querySelector("[data-session]");
  if (!root) return;
  const live = document.getElementById("live");
  const messages = document.getElementById("messages");
  const source = new EventSource(`/sessions/${encodeURIComponent(root.dataset.session)}/stream`);
  const refresh = () => htmx.trigger(messages, "tapster:refresh");
  source.addEventListener("chunk", event => {
    const { chunk } = JSON.parse(event.data);
    if (chunk.type !== "text-delta") return;
    live.hidden = false;
    live.textContent += chunk.text;
  });
  source.addEventListener("event", event => {
    const { type } = JSON.parse(event.data);
    if (type === "assistant/message" || type === "turn/end") {
      live.hidden = true;
      live.textContent = "";
    }
    if (type === "user/message" || type === "assistant/message" || type === "turn/end") refresh();
  });
  const text = document.getElementById("text");
  document.getElementById("chat").addEventListener("htmx:afterRequest", event => {
    if (event.detail.successful && event.detail.elt.id === "chat") text.value = "";
  });
  // What the server refused is shown in place of the transcript's message.
  document.body.addEventListener("htmx:responseError", event => {
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    alert(page.querySelector("main")?.textContent.trim() || event.detail.xhr.statusText);
  });
})();
