/**
 * Sizes that hold on the wire (quality.md, "Wire limits"), where codecs and services need them.
 */

/** No frame and no page that Reeve sends is larger; lists are split before, and what cannot be split is bounded. */
export const MAX_FRAME_BYTES = 1_500_000;
/**
 * A checkpoint and a resume input travel in one claim with the args, which may be 1 MiB as received and more in their
 * canonical form: with 128 KiB each the largest claim still fits a frame (docs/decisions/0006-frame-budget.md).
 */
export const MAX_CHECKPOINT_BYTES = 131_072;
export const MAX_RESUME_INPUT_BYTES = 131_072;
/** What Reeve receives in one message; larger ones are refused by the transport. */
export const MAX_RECEIVE_BYTES = 2 * 1_048_576;
/** What Reeve sends in one message of a unary call. */
export const MAX_SEND_BYTES = 4 * 1_048_576;
export const MAX_PAGE_SIZE = 1_000;
export const DEFAULT_PAGE_SIZE = 100;
/** What workers say beside their payloads; longer messages and reasons are cut. */
export const MAX_PROGRESS_MESSAGE_BYTES = 8_192;
export const MAX_REASON_BYTES = 1_024;
export const MAX_CONTENT_TYPE_BYTES = 255;
