"use strict";
// Plays an MPD with dash.js and writes down what the viewer sees. Times are in seconds since the session began.

const anabranch = {
  events: [], // [time, kind, numbers], as `_core.viewer_report` takes them; representations as their bandwidths
  samples: [], // [time, playing time, buffered, bandwidth on screen, pictures shown, pictures dropped]
  errors: [],
  over: false,

  /** Begins; `settings` are dash.js's own, `largest` are width and height of the largest pictures, if any. */
  begin(mpd, { settings, largest }) {
    const video = document.querySelector("video");
    const began = performance.now();
    const seconds = (milliseconds) => Math.max(0, (milliseconds - began) / 1000);
    const now = () => seconds(performance.now());
    // dash.js notes calendar times.
    const noted = (date) => (date ? seconds(date.getTime() - performance.timeOrigin) : now());
    const say = (time, kind, ...numbers) => this.events.push([time, kind, numbers]);
    const state = { started: false, stalled: false, shown: null, dropped: 0 };
    const numbers = new Map(); // of open requests
    const spans = new Map(); // playing time of media segments, by index
    const bandwidths = new Map(); // of representations, by their names
    const rates = new Map(); // what is buffered of media segments, by index
    let requests = 0;
    const isMedia = (request) => request && request.type === "MediaSegment" && request.mediaType === "video";
    const buffered = () => {
      const at = video.currentTime;
      for (let i = 0; i < video.buffered.length; i += 1) {
        // Pictures may begin a little after the clock.
        if (video.buffered.start(i) <= at + 0.1 && at <= video.buffered.end(i)) return video.buffered.end(i) - at;
      }
      return 0;
    };

    const player = dashjs.MediaPlayer().create();
    this.player = player;
    player.updateSettings(settings);
    if (largest.length === 2) {
      const fits = (representation) => representation.width <= largest[0] && representation.height <= largest[1];
      player.registerCustomCapabilitiesFilter(fits);
    }
    // What goes wrong here must not stop dash.js, whose own code comes after its listeners'.
    const on = (what, listener) => {
      player.on(what, (event) => {
        try {
          listener(event);
        } catch (error) {
          this.errors.push(`${what}: ${error}`);
        }
      });
    };
    on("fragmentLoadingStarted", ({ request }) => {
      if (!isMedia(request)) return;
      const { id, bandwidth } = request.representation;
      bandwidths.set(id, bandwidth);
      numbers.set(request, requests);
      spans.set(request.index, { from: request.startTime, to: request.startTime + request.duration });
      say(noted(request.startDate), "requested", requests, request.index, bandwidth);
      requests += 1;
    });
    on("fragmentLoadingCompleted", ({ request, error }) => {
      const number = numbers.get(request);
      if (number === undefined || error) return;
      numbers.delete(request);
      say(noted(request.firstByteDate), "first-byte", number);
      say(noted(request.endDate), "complete", number, request.bytesLoaded);
    });
    on("fragmentLoadingAbandoned", ({ request }) => {
      const number = numbers.get(request);
      if (number === undefined) return;
      // What it will be instead is decided afterwards; the next request tells.
      say(now(), "abandoned", number, request.index, request.bytesLoaded || 0, request.representation.bandwidth);
    });
    on("bytesAppendedEndFragment", (event) => {
      const rate = bandwidths.get(event.representationId);
      if (event.mediaType !== "video" || event.segmentType !== "MediaSegment" || rate === undefined) return;
      // What replaces the picture on screen, or one before it, comes too late: Chromium goes on with the old pictures up to
      // the next key picture, and our media segments have one each.
      if (state.shown !== null && event.index <= state.shown) return;
      rates.set(event.index, rate);
      say(now(), "appended", event.index, rate, buffered());
    });
    on("error", (event) => this.errors.push(String((event.error && event.error.message) || event.error)));

    const look = () => {
      const at = video.currentTime;
      if (!state.started) return;
      for (const [index, rate] of rates) {
        const span = spans.get(index);
        if (span.from <= at && at < span.to && state.shown !== index) {
          [state.shown, state.rate] = [index, rate];
          say(now(), "shown", index, rate);
        }
      }
    };
    video.addEventListener("playing", () => {
      if (!state.started) say(now(), "started");
      else if (state.stalled) say(now(), "stall-ended");
      [state.started, state.stalled] = [true, false];
      look();
    });
    video.addEventListener("waiting", () => {
      if (!state.started || state.stalled || video.ended) return;
      state.stalled = true;
      say(now(), "stall-began");
    });
    video.addEventListener("ended", () => {
      look();
      say(now(), "ended");
      this.over = true;
    });
    video.addEventListener("error", () => this.errors.push(video.error ? video.error.message : "video error"));

    setInterval(look, 50);
    const sample = () => {
      const pictures = video.getVideoPlaybackQuality();
      for (; state.dropped < pictures.droppedVideoFrames; state.dropped += 1) {
        say(now(), "discarded", pictures.totalVideoFrames);
      }
      const shown = pictures.totalVideoFrames - pictures.droppedVideoFrames;
      this.samples.push([now(), video.currentTime, buffered(), state.rate || 0, shown, pictures.droppedVideoFrames]);
      this.draw(video, state);
    };
    setInterval(sample, 250);
    player.initialize(video, mpd, true);
  },

  /** What the page shows: rate and buffer over time. */
  draw(video, state) {
    const [time, at, buffer, rate, shown, dropped] = this.samples[this.samples.length - 1];
    const stalls = this.events.filter((event) => event[1] === "stall-began").length;
    document.querySelector("#status").textContent =
      `dash.js ${this.player.getVersion()}   ${time.toFixed(1)} s   playing ${at.toFixed(1)} s   ` +
      `buffer ${buffer.toFixed(1)} s\n${(rate / 1000).toFixed(0)} kb/s   ${video.videoWidth}x${video.videoHeight}   ` +
      `stalls ${stalls}${state.stalled ? " (stalled)" : ""}   pictures ${shown}, dropped ${dropped}` +
      this.errors.map((error) => `\n${error}`).join("");
    const canvas = document.querySelector("canvas");
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const line = (column, colour, name, left) => {
      const most = Math.max(...this.samples.map((sample) => sample[column]), 1);
      context.strokeStyle = context.fillStyle = colour;
      context.beginPath();
      this.samples.forEach((sample, i) => {
        const x = (sample[0] / Math.max(time, 1)) * canvas.width;
        const y = canvas.height - 4 - (sample[column] / most) * (canvas.height - 26);
        if (i === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
      });
      context.stroke();
      context.fillText(`${name}, up to ${column === 3 ? `${(most / 1000).toFixed(0)} kb/s` : `${most.toFixed(1)} s`}`, left, 12);
    };
    line(3, "#ffb454", "bitrate", 6);
    line(2, "#59c2ff", "buffer", 200);
  },

  /** Everything that was written down, as JSON. */
  log() {
    const { events, samples, errors, over } = this;
    return JSON.stringify({ events, samples, errors, over, version: this.player.getVersion() });
  },
};
