/**
 * A claim as its handler sees it. Reads from the message on demand: most handlers look at little of it.
 */
import type * as pb from '../../gen/reeve/v1/worker_service_pb.js';
import { type JsonObject, type JsonValue, parseJson } from '../transport/json.js';
import { toDate } from '../transport/time.js';

export class Claim<Args = JsonObject> {
  readonly #message: pb.Claim;
  #args: Args | undefined;

  constructor(message: pb.Claim) {
    this.#message = message;
  }

  get taskId(): string {
    return this.#message.taskId;
  }

  /** Number of the generation, from 1. */
  get generation(): number {
    return this.#message.generation;
  }

  /** Opaque id of the generation; a child names it as its parent's. */
  get generationId(): string {
    return this.#message.generationId;
  }

  /** With the generation, the fencing token for outside resources: refuse what comes with a lower one. */
  get epoch(): number {
    return Number(this.#message.epoch);
  }

  /** From 1. */
  get attempt(): number {
    return this.#message.attempt;
  }

  get maxAttempts(): number {
    return this.#message.maxAttempts;
  }

  get kind(): string {
    return this.#message.actionKind;
  }

  get namespace(): string {
    return this.#message.namespace;
  }

  get queue(): string {
    return this.#message.queue;
  }

  /** The arguments. They come from outside: their type is the caller's promise, not a check. */
  get args(): Args {
    return (this.#args ??= parseJson(this.#message.argsJson) as Args);
  }

  /** Their exact text. */
  get argsJson(): string {
    return this.#message.argsJson;
  }

  /** What an earlier attempt saved; undefined for nothing. */
  get checkpoint(): JsonValue | undefined {
    return parseJson(this.#message.checkpointJson);
  }

  /** Its exact text; empty for nothing. */
  get checkpointJson(): string {
    return this.#message.checkpointJson;
  }

  /** What the last Resume brought; undefined for nothing. */
  get resumeInput(): JsonValue | undefined {
    return parseJson(this.#message.resumeInputJson);
  }

  /** Its exact text; empty for nothing. */
  get resumeInputJson(): string {
    return this.#message.resumeInputJson;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.#message.labels;
  }

  get capabilities(): readonly string[] {
    return this.#message.requiredCapabilities;
  }

  get libraryRef(): string | undefined {
    return this.#message.libraryRef;
  }

  get libraryContentHash(): string | undefined {
    return this.#message.libraryContentHash;
  }

  /** By the store's clock; undefined for none. */
  get deadline(): Date | undefined {
    return toDate(this.#message.deadline);
  }

  /** W3C trace context of the submission. */
  get traceContext(): Readonly<Record<string, string>> {
    return this.#message.traceContext;
  }

  /** Proves the claim in Report and Transition. Show it to nobody. */
  get leaseToken(): string {
    return this.#message.leaseToken;
  }
}
