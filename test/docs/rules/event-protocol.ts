/**
 * AEP's task lifecycle: its ten states and their table, the payloads, the two phases of a cancel, time-outs, and its
 * notes on implementations. Its own envelope on the wire (Exchange) is not served yet.
 */
import { type SourceDocument, rule } from './source-rule.js';

export const EVENT_PROTOCOL: SourceDocument = {
  title: 'AEP task lifecycle',
  note: 'T the table, E events, X cancellation, D time-outs, N notes. The rows of the table themselves stand in [edges](edges.md).',
  rules: [
    rule(
      'T.1',
      'The 35 rows of the table and no others.',
      'kernel/aep.test.ts › allows exactly the rows of the document',
      'kernel/aep.test.ts › has ten states',
    ),
    rule(
      'T.2',
      'Each state, asked for each event: taken where the table has the row, refused where it has not.',
      'kernel/worker-report-aep.test.ts › an attempt that is %s',
      'kernel/worker-report-aep.test.ts › says %s',
    ),
    rule(
      'T.3',
      'What a generation shows is a legal path, whatever its attempts went through.',
      'kernel/history.property.test.ts › keep every invariant at every step',
      'exploration/explore.test.ts › %s keeps every invariant',
      'kernel/aep.test.ts › shows a retry as started, blocked, started and projects no second accepted',
    ),
    rule(
      'E.1',
      '`task.submitted` carries description, time-out and priority.',
      'kernel/history.test.ts › begins with task.submitted: revision 1, event 1, queued',
      'kernel/admission/policy.test.ts › takes everything at its bounds',
    ),
    rule(
      'E.2',
      'Progress has a message and a number from 0 to 1; a blocked task its reason; outputs their content.',
      'kernel/worker-report-aep.test.ts › is kept: progress, message, the blocked reason, the checkpoint',
      'server/work.test.ts › %s is refused and uses up its number',
      'kernel/worker-output.test.ts › outputs',
    ),
    rule(
      'E.3',
      'Completed carries the result, failed its error, cancelled its reason.',
      'kernel/worker-report-aep.test.ts › is kept: the result in the history, the ending in the record',
      'kernel/worker-report-aep.test.ts › is kept: its reason for cancelling or suspending, in its own words',
    ),
    rule(
      'X.1',
      'A request and its confirmation are two events.',
      'kernel/cancellation.test.ts › is one fact; it keeps running, and the fact is named by the record',
      'sdk/worker-stop.test.ts › a cancel is delivered at once, acknowledged when the handler hears it, and settles as cancelled',
    ),
    rule(
      'X.2',
      'Between the two the task may go on saying things.',
      'kernel/worker-report-aep.test.ts › an attempt that is %s may go on saying what the table allows',
    ),
    rule(
      'X.3',
      'The producer of a task may cancel it unasked.',
      'kernel/cancellation.test.ts › commits request and settlement together, in its own name',
    ),
    rule(
      'D.1',
      'A time-out is a deadline: what has not ended by then is timed out.',
      'timers/task-timers.test.ts › a timer of each kind fires through the scan, at its time and not before:',
      'server/update-policy.test.ts › a time-out set while it runs ends it, and its worker is told',
    ),
    rule(
      'N.1',
      'An illegal step is refused with what was found, and changes nothing.',
      'server/work.test.ts › that AEP forbids, that leave a gap, or that are repeated',
      'kernel/worker-report-numbers.test.ts › names the attempt state and the event',
    ),
    rule(
      'N.2',
      'Nothing is taken or said after an end.',
      'kernel/worker-report-numbers.test.ts › later events of the same report are LEASE_LOST, also an unasked suspend or failure',
      'kernel/history.property.test.ts › keep every invariant at every step',
    ),
    rule(
      'N.3',
      'Every event names its task; an id is made where none was given, and returned.',
      'server/submit.test.ts › keeps a task id for the key that took it',
      'server/submit-stream.test.ts › gives each submission its own verdict, in NAME view unless asked otherwise',
    ),
  ],
};
