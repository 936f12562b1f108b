/**
 * Frames of claims, written by hand: one claim per task and attempt, so one of the most frequent messages there is
 * (worker_service.proto, Claims; field numbers as there).
 */
import type { DeliveredClaim } from '../kernel/delivery.js';
import { executionTargets } from './enum-tables.js';
import { splitIntoFrames } from './frame-split.js';
import { ProtoWriter } from './proto-writer.js';

/** What a claim takes at most besides its texts of free size: names and tokens, tags and lengths. */
const CLAIM_OVERHEAD_BYTES = 2_048;
/** Tags and lengths of an entry in a list or a map. */
const ENTRY_OVERHEAD_BYTES = 12;
const writer = new ProtoWriter();

/** In bytes, at most about; never less than it takes in a frame. */
export function claimWeight({ record, checkpointJson, inputJson }: DeliveredClaim): number {
  const { application, traceContext } = record.admission;
  let weight = CLAIM_OVERHEAD_BYTES + Buffer.byteLength(application.argsJson);
  if (checkpointJson !== null) weight += Buffer.byteLength(checkpointJson);
  if (inputJson !== null) weight += Buffer.byteLength(inputJson);
  if (application.libraryRef !== null) weight += Buffer.byteLength(application.libraryRef);
  for (const label of application.requiredCapabilities) weight += ENTRY_OVERHEAD_BYTES + Buffer.byteLength(label);
  return weight + entriesWeight(traceContext) + entriesWeight(record.policy.labels);
}

function entriesWeight(entries: Readonly<Record<string, string>>): number {
  let weight = 0;
  for (const key in entries) {
    weight += ENTRY_OVERHEAD_BYTES + Buffer.byteLength(key) + Buffer.byteLength(entries[key] ?? '');
  }
  return weight;
}

/** The claims in lists that each fit a frame; any single claim does (docs/decisions/0006-frame-budget.md). */
export function splitClaims<Claim extends DeliveredClaim>(claims: readonly Claim[]): readonly (readonly Claim[])[] {
  return splitIntoFrames(claims, claimWeight);
}

/** An encoded WorkResponse. */
export function claimsFrame(frameId: number, claims: readonly DeliveredClaim[]): Uint8Array {
  writer.integer(1, frameId);
  const frame = writer.begin(2);
  for (const claim of claims) writeClaim(claim);
  writer.end(frame);
  return writer.take();
}

function writeClaim(claim: DeliveredClaim): void {
  const { record, epoch } = claim;
  const { admission, policy } = record;
  const { application } = admission;
  const start = writer.begin(1);
  writer.string(1, admission.taskId);
  writer.integer(2, epoch);
  writer.integer(3, record.generation);
  writer.integer(4, record.attempt);
  writer.string(5, application.actionKind);
  writer.string(6, application.argsJson);
  writer.string(7, claim.cancellationToken);
  writer.string(8, claim.leaseToken);
  writer.string(9, record.generationId);
  writer.string(10, admission.queue);
  writer.string(11, admission.namespace);
  writer.integer(12, executionTargets.value(application.executionTarget));
  writer.integer(13, policy.retry.maxAttempts);
  if (claim.deadlineAt !== null) writeTimestamp(14, claim.deadlineAt);
  for (const key in admission.traceContext) writeEntry(15, key, admission.traceContext[key] ?? '');
  writer.string(16, claim.checkpointJson ?? '');
  writer.string(17, claim.inputJson ?? '');
  for (const capability of application.requiredCapabilities) writer.string(18, capability);
  if (application.libraryRef !== null) writer.string(19, application.libraryRef);
  if (application.libraryContentHash !== null) writer.string(20, application.libraryContentHash);
  for (const key in policy.labels) writeEntry(21, key, policy.labels[key] ?? '');
  writer.end(start);
}

function writeEntry(field: number, key: string, value: string): void {
  const start = writer.begin(field);
  writer.string(1, key);
  writer.string(2, value);
  writer.end(start);
}

function writeTimestamp(field: number, epochMs: number): void {
  const start = writer.begin(field);
  const seconds = Math.floor(epochMs / 1_000);
  writer.integer(1, seconds);
  writer.integer(2, (epochMs - seconds * 1_000) * 1_000_000);
  writer.end(start);
}
