/**
 * Columns that several reads select. `t` is the table of tasks.
 */

/** The number of the last event in the history, out of its index alone: a record that differs from it is damaged. */
const LAST_NUMBER = '(SELECT max(h.last_number) FROM history h WHERE h.task_order = t.task_order)';

/** A TaskRow; `a` is the table of admissions. */
export const TASK = `t.task_order, t.task_id, t.version, ${LAST_NUMBER}, t.record, a.admission, t.seal`;

/** The link of a commit as hex; null for a commit from before there were links. */
export const LINK = "nullif(lower(hex(h.link)), '')";

/** `h` is the table of histories: a HistoryRow. */
export const HISTORY = `h.first_sequence, h.last_number, h.events, ${LINK}`;
