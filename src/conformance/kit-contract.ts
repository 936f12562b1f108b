/**
 * What a worker program has to offer so that the kit can ask something of it (docs/conformance.md): the kinds it
 * serves and what they do, and the least it must be able to hold.
 */

export const KINDS = {
  /** Completes with its args as the result. */
  echo: 'conformance.echo',
  /** `{ ms }`: says progress every 50 ms or so, completes with `{ "slept": ms }`; stops soon when it is asked to. */
  sleep: 'conformance.sleep',
  /** `{ code, message, retryable }`: fails with just that. */
  fail: 'conformance.fail',
  /** `{ ms }`: takes that long, whatever it is asked; completes with `{ "beside": how many such ran when it began }`. */
  deaf: 'conformance.deaf',
  /** `{ count, bytes }`: so many outputs `{ "n": 0…, "text": "xxx…" }` with a text of so many bytes each. */
  output: 'conformance.output',
} as const;

export type KitKind = (typeof KINDS)[keyof typeof KINDS];

/** A kind that no worker under test serves. */
export const UNSERVED_KIND = 'conformance.nobody';

/** No case offers more claims at once. */
export const LEAST_SLOTS = 8;

/** Where the worker finds the address in its environment; in the command it is `{address}`. */
export const ADDRESS_VARIABLE = 'REEVE_ADDRESS';
export const ADDRESS_PLACEHOLDER = '{address}';

/** From SIGTERM to the exit of a worker whose handlers may finish for one second. */
export const LEAVING_LIMIT_MS = 10_000;
