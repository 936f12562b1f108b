/**
 * Sizes that hold on the wire (quality.md, "Wire limits"), where codecs and services need them.
 */

/** No frame and no page that Reeve sends is larger; lists are split before. */
export const MAX_FRAME_BYTES = 1_500_000;
/** What Reeve receives in one message; larger ones are refused by the transport. */
export const MAX_RECEIVE_BYTES = 2 * 1_048_576;
/** What Reeve sends in one message of a unary call. */
export const MAX_SEND_BYTES = 4 * 1_048_576;
export const MAX_PAGE_SIZE = 1_000;
export const DEFAULT_PAGE_SIZE = 100;
