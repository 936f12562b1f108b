/**
 * How long the answer to an operator's call that concerns no single task is kept under its key. A repetition after that
 * is a new call.
 */
export const OPERATION_REMEMBERED_MS = 30 * 86_400_000;
