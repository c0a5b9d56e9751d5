// A player around the controllers and rules of dash.js 2.2.0.

import fs from 'node:fs';
import vm from 'node:vm';

const STREAM = 'stream';
const LOADING_PROGRESS = 'loadingProgress';
const PLAYBACK_SEEKING = 'playbackSeeking';
// In the order in which ABRRulesCollection makes them.
const RULES = ['ThroughputRule', 'BufferOccupancyRule', 'InsufficientBufferRule'];

// This release exports neither its rules nor its factories. But its bundle is an expression whose value is the function that
// loads a module by number, and the modules say their names.
export async function load22(file) {
    const text = fs.readFileSync(file, 'utf8');
    const loadModule = vm.runInThisContext(`(${text.replace(/;?\s*\/\/# sourceMappingURL.*\s*$/, '')}\n)`, { filename: file });
    const starts = [...text.matchAll(/(\d+):\[function\(_dereq_,module,exports\)\{/g)];
    const numbers = {};
    starts.forEach((start, i) => {
        const body = text.slice(start.index, starts[i + 1]?.index);
        const name = body.match(/__dashjs_factory_name = '(\w+)'/)?.[1] ?? body.match(/^var (FactoryMaker) = \(function/m)?.[1];
        if (name) {
            numbers[name] ??= Number(start[1]);
        }
    });
    const part = (name) => {
        const exported = loadModule(numbers[name]);
        return exported.default ?? exported;
    };
    // The constructor completes the list of events.
    part('MediaPlayer')().create();
    return part;
}

export class Player22 {
    constructor(part, session, clock) {
        this.session = session;
        this.clock = clock;
        this.votes = {};
        this.context = {};
        part('FactoryMaker').setSingletonInstance(this.context, 'Debug', { log() {} });
        const singleton = (name) => part(name)(this.context).getInstance();
        this.bus = singleton('EventBus');
        this.metrics = singleton('MetricsModel');
        this.metrics.setConfig({ adapter: { metricsList: {} } });
        this.build(singleton);
    }

    build(singleton) {
        const { ladder, duration, live, top, initial } = this.session;
        this.streamInfo = { id: STREAM, manifestInfo: {} };
        this.mediaInfo = {
            type: 'video',
            streamInfo: this.streamInfo,
            representationCount: ladder.length,
            bitrateList: ladder.map((bandwidth) => ({ bandwidth })),
        };
        const rules = singleton('ABRRulesCollection');
        rules.initialize();
        rules.getRules('qualitySwitchRules').forEach((rule, i) => this.listenTo(rule, RULES[i]));
        const rulesController = singleton('RulesController');
        rulesController.initialize();
        rulesController.setConfig({ abrRulesCollection: rules });
        const controller = singleton('AbrController');
        this.controller = controller;
        const fragmentModel = { getRequests: () => [this.request], abortRequests: () => { this.abandoned = true; } };
        const scheduleController = {
            setTimeToLoadDelay() {},
            getFragmentModel: () => fragmentModel,
            replaceRequests() {},
        };
        this.processor = {
            getType: () => 'video',
            getABRController: () => controller,
            getScheduleController: () => scheduleController,
            getStreamInfo: () => this.streamInfo,
            getMediaInfo: () => this.mediaInfo,
            isDynamic: () => live,
            getCurrentRepresentationInfo: () => ({
                mediaInfo: this.mediaInfo,
                fragmentDuration: duration,
                quality: this.quality(),
            }),
        };
        controller.setConfig({
            abrRulesCollection: rules,
            rulesController,
            streamController: { getActiveStreamInfo: () => this.streamInfo },
        });
        controller.initialize('video', this.processor);
        controller.updateTopQualityIndex(this.mediaInfo);
        if (top < ladder.length - 1) {
            // Halfway to the next bit, so that no rounding loses the limit itself.
            controller.setMaxAllowedBitrateFor('video', (ladder[top] + 0.5) / 1000);
        }
        controller.setPlaybackQuality('video', this.streamInfo, initial);
    }

    // Wraps a rule, so that its requests are noted.
    listenTo(rule, name) {
        const original = rule.execute;
        rule.execute = (rulesContext, callback) => original(rulesContext, (request) => {
            if (request.value < this.session.ladder.length && request.value >= 0) {
                this.votes[name] = request.value;
            }
            callback(request);
        });
    }

    quality() {
        return this.controller.getQualityFor('video', this.streamInfo);
    }

    // Buffer level measured.
    L(levelMs) {
        this.metrics.addBufferLevel('video', new Date(), levelMs);
    }

    // Buffer state changed.
    S(loaded) {
        this.state = loaded ? 'bufferLoaded' : 'bufferStalled';
        this.metrics.addBufferState('video', this.state, 0);
    }

    // Decision due.
    D(total, dropped, targetS) {
        if (this.state) {
            this.metrics.addBufferState('video', this.state, targetS);
        }
        this.votes = {};
        this.controller.getPlaybackQuality(this.processor);
        return [this.quality(), 0, this.votes];
    }

    // Progress report.
    P(index, representation, requested, first, firstBytes, bytes, total) {
        this.request = {
            index,
            mediaType: 'video',
            duration: this.session.duration,
            firstByteDate: first === null ? null : this.clock.at(first),
            bytesLoaded: bytes,
            bytesTotal: total,
        };
        this.abandoned = false;
        this.bus.trigger(LOADING_PROGRESS, { request: this.request });
        return this.abandoned ? this.quality() : -1;
    }

    // Media segment complete.
    F(index, representation, requested, firstByte, first, firstBytes, last, bytes, finished) {
        const start = this.clock.at(requested);
        const response = first === null ? start : this.clock.at(first);
        this.metrics.addHttpRequest('video', null, 'MediaSegment', '', null, null, null, start, response,
            this.clock.at(finished), 200, this.session.duration, '', [{ s: start, d: 0, b: [bytes] }]);
    }

    // Request aborted: forgotten.
    A() {}

    // Initialisation segment complete.
    I() {
        const now = new Date();
        this.metrics.addHttpRequest('video', null, 'InitializationSegment', '', null, null, null, now, now, now, 200, NaN, '',
            [{ s: now, d: 1, b: [800] }]);
    }

    // Seek.
    K() {
        this.bus.trigger(PLAYBACK_SEEKING, { seekTime: 0 });
    }

    // Another representation on screen: no rule cares.
    X() {}

    close() {
        this.bus.reset();
    }
}
