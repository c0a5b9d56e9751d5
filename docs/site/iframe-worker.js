// Browsers make no workers for pages that were opened as files. There the search runs in a hidden frame instead of a worker, so that the
// site needs no server. Only what the theme's search uses is here: messages in both directions.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(url, location.href).href;
      this.waiting = new Promise((loaded) => script.addEventListener("load", loaded));
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.waiting.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
