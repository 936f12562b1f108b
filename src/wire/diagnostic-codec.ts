/**
 * Diagnostics: what stale workers said, from the note that was kept to the wire (event.proto, Diagnostic).
 * The note is text that may have been cut anywhere, so every part of it is optional.
 */
import type { DiagnosticSchema } from '../gen/reeve/v1/event_pb.js';
import { ErrorReason } from '../gen/reeve/v1/error_reason_pb.js';
import type { Diagnostic } from '../store/commit-plan.js';
import type { Fields } from './message-fields.js';
import { sessionAlias } from './session-alias.js';
import { toTimestamp } from './time-values.js';

export function diagnosticMessage(diagnostic: Diagnostic): Fields<typeof DiagnosticSchema> {
  const note = parsed(diagnostic.text);
  const said = record(note['said']);
  const { seq, session } = note;
  const kind = said['kind'];
  return {
    epoch: BigInt(diagnostic.epoch),
    eventSeq: typeof seq === 'number' ? BigInt(seq) : 0n,
    type: typeof kind === 'string' ? `task.${kind}` : '',
    refusedAs: ErrorReason.LEASE_LOST,
    sessionAlias: typeof session === 'string' ? sessionAlias(session) : '',
    time: toTimestamp(diagnostic.at),
    payloadJson: Object.keys(note).length === 0 ? JSON.stringify({ text: diagnostic.text }) : JSON.stringify(said),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text));
  } catch {
    return {};
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
