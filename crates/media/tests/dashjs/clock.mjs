// A clock that stands still until a test advances it. Times are milliseconds since the session began.

// Any date will do, but a player of 2016 expects more than a second since 1970.
const EPOCH = Date.UTC(2019, 2, 18);
const RealDate = Date;

export class Clock {
    reset() {
        this.now = 0;
        this.timers = new Map();
        this.nextTimer = 1;
    }

    install() {
        this.reset();
        const clock = this;
        globalThis.Date = class extends RealDate {
            constructor(...args) {
                super(...(args.length ? args : [clock.date()]));
            }

            static now() {
                return clock.date();
            }
        };
        globalThis.setTimeout = (callback, ms) => {
            const id = clock.nextTimer++;
            clock.timers.set(id, { due: clock.date() + ms, callback });
            return id;
        };
        globalThis.clearTimeout = (id) => clock.timers.delete(id);
    }

    // What Date.now() says.
    date() {
        return EPOCH + Math.floor(this.now);
    }

    // The Date of a time of the session.
    at(ms) {
        return new RealDate(EPOCH + Math.floor(ms));
    }

    advance(to) {
        this.now = to;
        for (const [id, { due, callback }] of this.timers) {
            if (due <= this.date()) {
                this.timers.delete(id);
                callback();
            }
        }
    }
}
