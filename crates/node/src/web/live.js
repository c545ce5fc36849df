// Brings the sections of the page up to date with what the node sends. Without this script the page is as complete, and is loaded
// again every few seconds.
"use strict";

(() => {
  const state = document.getElementById("state");
  // How long to wait before a stream is asked for again that was refused, in milliseconds.
  const AGAIN = 5000;

  function update(event) {
    state.textContent = "live";
    for (const [id, html] of Object.entries(JSON.parse(event.data))) {
      const section = document.getElementById(id);
      // All text in it was escaped by the node.
      if (section) section.innerHTML = html;
    }
  }

  function follow() {
    const source = new EventSource("events");
    source.onopen = () => { state.textContent = "live"; };
    source.onmessage = update;
    source.onerror = () => {
      state.textContent = "not connected, trying again";
      // A stream that was refused is not asked for again by the browser.
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN);
    };
  }

  follow();
})();
