/**
 * The AbortSignal of one claim: made only when its handler asks for it, aborted once with a typed reason. Also knows
 * whether the handler has seen the abort, which is what an `acknowledged` receipt claims.
 */
import { getEventListeners } from 'node:events';
import type { StopReason } from './stop-reasons.js';

export class StopSignal {
  /** Set when the handler is to stop; the first reason stays. */
  reason: StopReason | null = null;
  private controller: AbortController | null = null;
  private listeners: ((reason: StopReason) => void)[] = [];

  /** @param onObserved the handler has seen the abort; may be called more than once. */
  constructor(private readonly onObserved: () => void) {}

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.reason !== null) this.abort(this.controller, this.reason);
    }
    return this.controller.signal;
  }

  stop(reason: StopReason): void {
    if (this.reason !== null) return;
    this.reason = reason;
    if (this.controller !== null) this.abort(this.controller, reason);
    if (this.listeners.length === 0) return;
    for (const listener of this.listeners.splice(0)) listener(reason);
    this.onObserved();
  }

  /** Rejects with the reason as soon as there is one: for a handler that waits in the SDK. */
  orStopped(wait: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.reason !== null) return reject(this.reason);
      this.listeners.push(reject);
      void wait.then(() => {
        this.listeners = this.listeners.filter((listener) => listener !== reject);
        resolve();
      });
    });
  }

  private abort(controller: AbortController, reason: StopReason): void {
    const { signal } = controller;
    const heard = getEventListeners(signal, 'abort').length > 0;
    controller.abort(reason);
    noticeReads(signal, reason, this.onObserved);
    if (heard) this.onObserved();
  }
}

/** A handler that polls has no listener; reading the aborted signal is how it sees. */
function noticeReads(signal: AbortSignal, reason: StopReason, onRead: () => void): void {
  Object.defineProperties(signal, {
    aborted: {
      configurable: true,
      get: () => {
        onRead();
        return true;
      },
    },
    throwIfAborted: {
      configurable: true,
      value: () => {
        onRead();
        throw reason;
      },
    },
  });
}
