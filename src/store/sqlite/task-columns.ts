/**
 * Columns that both kinds of reads select. `t` is the table of tasks.
 */

/** The number of the last event in the history, out of its index alone: a record that differs from it is damaged. */
export const LAST_NUMBER = '(SELECT max(h.last_number) FROM history h WHERE h.task_order = t.task_order)';

/** The link of a commit as hex; null for a commit from before there were links. */
export const LINK = "nullif(lower(hex(h.link)), '')";

/** `h` is the table of histories: a HistoryRow. */
export const HISTORY = `h.first_sequence, h.last_number, h.events, ${LINK}`;
