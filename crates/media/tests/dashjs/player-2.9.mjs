// A player around the controllers and rules of dash.js 2.9.3.

import { createRequire } from 'node:module';

const STREAM = 'stream';
const EVENTS = {
    MEDIA_FRAGMENT_LOADED: 'mediaFragmentLoaded', // CoreEvents, which are not exported
    LOADING_PROGRESS: 'loadingProgress',
};
const RULES = ['BolaRule', 'ThroughputRule', 'InsufficientBufferRule', 'SwitchHistoryRule', 'DroppedFramesRule'];

export async function load29(file) {
    const dashjs = createRequire(import.meta.url)(file);
    const { MediaPlayer, FactoryMaker } = dashjs.MediaPlayer ? dashjs : globalThis.dashjs;
    // The constructor completes the list of events.
    MediaPlayer().create();
    Object.assign(EVENTS, MediaPlayer.events);
    return FactoryMaker;
}

const silent = () => ({
    getLogger: () => ({ fatal() {}, error() {}, warn() {}, info() {}, debug() {} }),
    getLogToBrowserConsole: () => false,
});

export class Player29 {
    constructor(factory, session, clock) {
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
        const singleton = (name) => factory.getSingletonFactoryByName(name)(this.context).getInstance({});
        this.bus = singleton('EventBus');
        this.metrics = singleton('MetricsModel');
        this.build(singleton);
    }

    // Wraps a rule, so that its requests are noted.
    listener(rule) {
        const player = this;
        return function () {
            const original = this.parent.getMaxIndex;
            return {
                getMaxIndex: (rulesContext) => {
                    const request = original(rulesContext);
                    if (request.quality >= 0) {
                        player.votes[rule] = request.quality;
                    }
                    return request;
                },
            };
        };
    }

    build(singleton) {
        const { ladder, duration, live, strategy, stable, top, initial } = this.session;
        const manifestInfo = { isDynamic: live };
        this.streamInfo = { id: STREAM, manifestInfo };
        this.mediaInfo = {
            type: 'video',
            streamInfo: this.streamInfo,
            representationCount: ladder.length,
            bitrateList: ladder.map((bandwidth) => ({ bandwidth })),
        };
        const playerModel = singleton('MediaPlayerModel');
        playerModel.setABRStrategy({ dynamic: 'abrDynamic', bola: 'abrBola', throughput: 'abrThroughput' }[strategy]);
        playerModel.setStableBufferTime(stable);
        const controller = singleton('AbrController');
        this.controller = controller;
        const scheduleController = { setTimeToLoadDelay: (ms) => { this.delay = ms; } };
        const fragmentModel = {
            getRequests: () => [this.request],
            // FragmentLoader and FragmentModel announce an abort at once.
            abortRequests: () => this.bus.trigger(EVENTS.FRAGMENT_LOADING_ABANDONED, { mediaType: 'video', request: this.request }),
        };
        const streamProcessor = {
            getScheduleController: () => scheduleController,
            getFragmentModel: () => fragmentModel,
            getStreamInfo: () => this.streamInfo,
            getMediaInfo: () => this.mediaInfo,
            getRepresentationInfo: () => ({
                mediaInfo: this.mediaInfo,
                fragmentDuration: duration,
                quality: controller.getQualityFor('video'),
            }),
        };
        controller.setConfig({
            mediaPlayerModel: playerModel,
            metricsModel: this.metrics,
            dashMetrics: singleton('DashMetrics'),
            streamController: { getActiveStreamInfo: () => this.streamInfo },
            domStorage: { getSavedBitrateSettings: () => NaN },
            videoModel: { getPlaybackQuality: () => this.pictures, getClientWidth: () => 0, getClientHeight: () => 0 },
        });
        controller.registerStreamType('video', streamProcessor);
        controller.createAbrRulesCollection();
        controller.updateTopQualityIndex(this.mediaInfo);
        if (top < ladder.length - 1) {
            // Halfway to the next bit, so that no rounding loses the limit itself.
            controller.setMaxAllowedBitrateFor('video', (ladder[top] + 0.5) / 1000);
        }
        controller.setPlaybackQuality('video', this.streamInfo, initial);
    }

    quality() {
        return this.controller.getQualityFor('video');
    }

    // Buffer level measured.
    L(levelMs) {
        this.metrics.addBufferLevel('video', new Date(), levelMs);
    }

    // Buffer state changed.
    S(loaded) {
        this.metrics.addBufferState('video', loaded ? 'bufferLoaded' : 'bufferStalled', 0);
        this.bus.trigger(loaded ? EVENTS.BUFFER_LOADED : EVENTS.BUFFER_EMPTY, { mediaType: 'video' });
    }

    // Decision due.
    D(total, dropped) {
        this.pictures = { totalVideoFrames: total, droppedVideoFrames: dropped };
        this.votes = {};
        this.delay = 0;
        this.controller.checkPlaybackQuality('video');
        return [this.quality(), this.delay, this.votes];
    }

    // Progress report.
    P(index, representation, requested, first, firstBytes, bytes, total) {
        this.request = {
            index,
            mediaType: 'video',
            quality: representation,
            duration: this.session.duration,
            firstByteDate: first === null ? null : this.clock.at(first),
            bytesLoaded: bytes,
            bytesTotal: total,
        };
        let abandoned = -1;
        const onAbandoned = () => { abandoned = 0; };
        this.bus.on(EVENTS.FRAGMENT_LOADING_ABANDONED, onAbandoned, this);
        this.bus.trigger(EVENTS.LOADING_PROGRESS, { request: this.request });
        this.bus.off(EVENTS.FRAGMENT_LOADING_ABANDONED, onAbandoned, this);
        return abandoned < 0 ? -1 : this.quality();
    }

    // Media segment complete.
    F(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished) {
        const { duration } = this.session;
        const start = this.clock.at(requested);
        const response = first === null ? start : this.clock.at(first);
        const traces = [{ s: start, d: 0, b: [bytes] }];
        this.metrics.addHttpRequest('video', null, 'MediaSegment', '', null, null, null, start, response,
            this.clock.at(finished), 200, duration, '', traces);
        this.bus.trigger(EVENTS.MEDIA_FRAGMENT_LOADED, {
            chunk: { mediaInfo: this.mediaInfo, start: index * duration, duration, quality: representation },
        });
    }

    // Request aborted: 2.x forgets it.
    A() {}

    // Initialisation segment complete.
    I() {
        const now = new Date();
        this.metrics.addHttpRequest('video', null, 'InitializationSegment', '', null, null, null, now, now, now, 200, NaN, '',
            [{ s: now, d: 1, b: [800] }]);
    }

    // Seek.
    K() {
        this.bus.trigger(EVENTS.PLAYBACK_SEEKING, { seekTime: 0 });
    }

    // Another representation on screen.
    X(from, to, total, dropped) {
        this.pictures = { totalVideoFrames: total, droppedVideoFrames: dropped };
        this.bus.trigger(EVENTS.QUALITY_CHANGE_RENDERED, { mediaType: 'video', oldQuality: from, newQuality: to });
    }

    close() {
        this.controller.reset();
        this.bus.reset();
    }
}
