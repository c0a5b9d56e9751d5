// A player around the controllers and rules of dash.js 5.2.1.

import { pathToFileURL } from 'node:url';

const STREAM = 'stream';
const EVENTS = {
    MEDIA_FRAGMENT_LOADED: 'mediaFragmentLoaded', // CoreEvents, which are not exported
    LOADING_PROGRESS: 'loadingProgress',
    BYTES_APPENDED_END_FRAGMENT: 'bytesAppendedEndFragment',
};
const RULES = ['BolaRule', 'ThroughputRule', 'InsufficientBufferRule', 'SwitchHistoryRule', 'DroppedFramesRule'];
// What Resource Timing adds to a body's length.
const HEADER_BYTES = 300;

export async function load5(file) {
    const { MediaPlayer, FactoryMaker } = (await import(pathToFileURL(file))).default;
    // The constructor completes the list of events.
    MediaPlayer().create();
    Object.assign(EVENTS, MediaPlayer.events);
    return FactoryMaker;
}

const silent = () => ({
    getLogger: () => ({ fatal: report, error: report, warn() {}, info() {}, debug() {} }),
});

// dash.js 5 catches its rules' exceptions; here they must not pass for a rule without a request.
function report(error) {
    throw error instanceof Error ? error : new Error(String(error));
}

export class Player5 {
    constructor(factory, session, clock) {
        this.factory = factory;
        this.session = session;
        this.clock = clock;
        this.context = {};
        this.votes = {};
        this.delay = 0;
        this.pictures = { totalVideoFrames: 0, droppedVideoFrames: 0 };
        factory.extend('Debug', silent, false, this.context);
        for (const rule of RULES) {
            factory.extend(rule, this.listener(rule), true, this.context);
        }
        this.build((name, config) => factory.getSingletonFactoryByName(name)(this.context).getInstance(config));
    }

    // Wraps a rule, so that its requests are noted.
    listener(rule) {
        const player = this;
        return function () {
            const { parent } = this;
            const original = parent.getSwitchRequest;
            return {
                getSwitchRequest: (rulesContext) => {
                    const request = original.call(parent, rulesContext);
                    if (request.representation) {
                        player.votes[rule] = request.representation.absoluteIndex;
                    }
                    return request;
                },
            };
        };
    }

    build(singleton) {
        const { ladder, duration, live, strategy, stable, top, initial, dropped } = this.session;
        this.bus = singleton('EventBus');
        const settings = singleton('Settings');
        const maxBitrate = top < ladder.length - 1 ? ladder[top] / 1000 : -1;
        settings.update({
            streaming: {
                buffer: { bufferTimeDefault: stable },
                abr: {
                    maxBitrate: { video: maxBitrate },
                    rules: {
                        bolaRule: { active: strategy !== 'throughput' },
                        throughputRule: { active: strategy !== 'bola' },
                        droppedFramesRule: { active: dropped },
                    },
                },
            },
        });
        this.streamInfo = { id: STREAM, manifestInfo: { isDynamic: live } };
        this.mediaInfo = { id: 'media', type: 'video', streamInfo: this.streamInfo };
        this.representations = ladder.map((bandwidth, absoluteIndex) => ({
            id: `r${absoluteIndex}`,
            absoluteIndex,
            bandwidth,
            bitrateInKbit: bandwidth / 1000,
            fragmentDuration: duration,
            segmentDuration: duration,
            mediaInfo: this.mediaInfo,
            pixelsPerSecond: NaN,
            qualityRanking: NaN,
        }));
        this.current = this.representations[initial];
        this.metrics = singleton('DashMetrics', { settings });
        const playbackController = {
            getIsDynamic: () => live,
            getPlaybackRate: () => 1,
            getCurrentLiveLatency: () => NaN,
            getStreamController: () => null,
            getLowLatencyModeEnabled: () => false,
            getLiveDelay: () => NaN,
        };
        this.throughput = singleton('ThroughputController');
        this.throughput.setConfig({ settings, playbackController });
        this.throughput.initialize();
        const scheduleController = {
            setTimeToLoadDelay: (ms) => { this.delay = ms; },
            getPlaybackController: () => playbackController,
        };
        const streamProcessor = {
            getScheduleController: () => scheduleController,
            getFragmentModel: () => ({ getRequests: () => [this.request] }),
            getStreamInfo: () => this.streamInfo,
            getAllMediaInfos: () => [this.mediaInfo],
            getLastSegment: () => null,
            getRepresentation: () => this.current,
            getRepresentationController: () => ({ getCurrentCompositeRepresentation: () => this.current }),
        };
        const mediaPlayerModel = {
            getBufferTimeDefault: () => stable,
            getAbrBitrateParameter: (name, type) => settings.get().streaming.abr[name][type],
        };
        this.bus.on(EVENTS.QUALITY_CHANGE_REQUESTED, (e) => { this.current = e.newRepresentation; }, this);
        const controller = singleton('AbrController');
        this.controller = controller;
        controller.setConfig({
            settings,
            mediaPlayerModel,
            dashMetrics: this.metrics,
            throughputController: this.throughput,
            streamController: { getActiveStreamInfo: () => this.streamInfo },
            domStorage: { setSavedBitrateSettings() {} },
            customParametersModel: { getAbrCustomRules: () => [] },
            cmsdModel: {},
            capabilities: { areKeyIdsUsable: () => true },
            adapter: { getVoRepresentations: () => this.representations.slice(), areMediaInfosEqual: (a, b) => a === b },
            videoModel: { getPlaybackQuality: () => this.pictures },
        });
        controller.initialize();
        controller.registerStreamType('video', streamProcessor);
        this.cmcd = singleton('CmcdModel');
        this.cmcd.setConfig({
            abrController: controller,
            dashMetrics: this.metrics,
            playbackController,
            throughputController: this.throughput,
        });
    }

    filters() {
        return { streamId: STREAM, mediaType: 'video' };
    }

    // Buffer level measured.
    L(levelMs) {
        this.metrics.addBufferLevel('video', new Date(), levelMs);
    }

    // Buffer state changed.
    S(loaded) {
        const state = loaded ? 'bufferLoaded' : 'bufferStalled';
        this.metrics.addBufferState('video', state, 0);
        this.cmcd.onBufferLevelStateChanged({ mediaType: 'video', state });
        this.bus.trigger(loaded ? EVENTS.BUFFER_LOADED : EVENTS.BUFFER_EMPTY, {}, this.filters());
    }

    // Decision due.
    D(total, dropped) {
        this.pictures = { totalVideoFrames: total, droppedVideoFrames: dropped };
        this.votes = {};
        this.delay = 0;
        this.controller.checkPlaybackQuality('video', STREAM);
        return [this.current.absoluteIndex, this.delay, this.votes];
    }

    // Request for a media segment: what CMCD has of it, rounded as when it is encoded. Its measured throughput is left out.
    R(index, representation) {
        const { duration } = this.session;
        const chosen = this.representations[representation];
        const { bandwidth } = chosen;
        const data = this.cmcd.deriveCmcdDataForRequest({
            type: 'MediaSegment', mediaType: 'video', url: '', representation: chosen, bandwidth, duration,
        });
        const only = (list) => (Array.isArray(list) ? list[0].value : list);
        const { ot } = data;
        const [bl, br, d, dl, rtp, tb] = ['bl', 'br', 'd', 'dl', 'rtp', 'tb'].map((key) => Math.round(only(data[key])));
        return { bl, br, d, dl, ot, rtp, su: data.su === true, tb };
    }

    // Progress report.
    P(index, representation, requested, first, firstBytes, bytes, total) {
        const isNew = !this.request || this.request.index !== index || this.request.requested !== requested;
        if (isNew) {
            this.request = { index, requested, traces: [], last: requested, loaded: 0 };
        }
        const { request } = this;
        request.traces.push({ s: this.clock.at(request.last), d: new Date() - this.clock.at(request.last), b: [bytes - request.loaded] });
        Object.assign(request, {
            mediaType: 'video',
            duration: this.session.duration,
            representation: this.representations[representation],
            firstByteDate: first === null ? null : this.clock.at(first),
            bytesLoaded: bytes,
            bytesTotal: total,
            last: this.clock.now,
            loaded: bytes,
        });
        let abandoned = false;
        const onChange = (e) => { abandoned = Boolean(e.reason && e.reason.forceAbandon); };
        this.bus.on(EVENTS.QUALITY_CHANGE_REQUESTED, onChange, this.request);
        this.bus.trigger(EVENTS.LOADING_PROGRESS, { request, streamId: STREAM });
        this.bus.off(EVENTS.QUALITY_CHANGE_REQUESTED, onChange, this.request);
        return abandoned ? this.current.absoluteIndex : -1;
    }

    note(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished, timing) {
        const start = this.clock.at(requested);
        const rest = { s: start, d: this.clock.at(last) - this.clock.at(first ?? requested), b: [bytes - (first === null ? 0 : firstBytes)] };
        const traces = first === null ? [rest] : [{ s: start, d: this.clock.at(first) - start, b: [firstBytes] }, rest];
        const request = {
            mediaType: 'video',
            type: 'MediaSegment',
            url: '',
            startDate: start,
            firstByteDate: first === null ? start : this.clock.at(first),
            endDate: this.clock.at(finished),
            duration: this.session.duration,
            fileLoaderType: 'xhr_loader',
            representation: this.representations[representation],
            resourceTimingValues: timing
                ? { responseStart: firstByte, responseEnd: finished, transferSize: bytes + HEADER_BYTES, decodedBodySize: bytes }
                : undefined,
        };
        this.metrics.addHttpRequest(request, '', 200, {}, aborted(traces, first, firstBytes, last, bytes), null);
        return request;
    }

    // Media segment complete.
    F(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished) {
        const { duration, progressTiming } = this.session;
        this.note(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished, !progressTiming);
        this.bus.trigger(EVENTS.MEDIA_FRAGMENT_LOADED, {
            chunk: { representation: this.representations[representation], start: index * duration, duration },
        }, this.filters());
        this.bus.trigger(EVENTS.BYTES_APPENDED_END_FRAGMENT, { startTime: index * duration }, this.filters());
    }

    // Request aborted: 5.x notes what had come, if any, and says so.
    A(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished) {
        let request = null;
        if (first !== null) {
            request = this.note(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished, false);
        }
        try {
            this.bus.trigger(EVENTS.FRAGMENT_LOADING_ABANDONED, { request }, this.filters());
        } catch (error) {
            // A mistake of BolaRule 5.2.1: a seek may abort a request before it has chosen anything. Its placeholder is zero then.
            if (!/null \(reading 'absoluteIndex'\)/.test(error.message)) {
                throw error;
            }
        }
    }

    // Initialisation segment complete.
    I() {
        const now = new Date();
        this.metrics.addHttpRequest(
            { mediaType: 'video', type: 'InitializationSegment', url: '', startDate: now, firstByteDate: now, endDate: now },
            '', 200, {}, [{ s: now, d: 1, b: [800] }], null);
    }

    // Seek.
    K() {
        this.bus.trigger(EVENTS.PLAYBACK_SEEKING, { seekTime: 0 }, this.filters());
    }

    // Another representation on screen.
    X(from, to, total, dropped) {
        this.pictures = { totalVideoFrames: total, droppedVideoFrames: dropped };
        this.bus.trigger(EVENTS.QUALITY_CHANGE_RENDERED, {
            newRepresentation: this.representations[to], oldRepresentation: this.representations[from],
        }, this.filters());
    }

    close() {
        this.controller.reset();
        this.throughput.reset();
        this.bus.reset();
        this.factory.deleteSingletonInstances(this.context);
    }
}

// An aborted request whose first report was its last has one trace only.
function aborted(traces, first, firstBytes, last, bytes) {
    return traces.length === 2 && first === last && firstBytes === bytes ? traces.slice(0, 1) : traces;
}
